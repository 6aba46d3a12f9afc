/**
 * Records by id, with indexes, over a journal. Rows keep the place of their first insert, which is the order of every
 * list, so that a rollback changes no order. Records are values: they are frozen as they come in and handed out as
 * they are.
 */
import type { Journal } from "./journal.ts";
import { keyList, type KeysOf, type Row, storedOf } from "./keys.ts";
import { PagedIndex } from "./paged-index.ts";

/** How a table keeps records from being changed by whoever holds them. */
export type Freeze = <R extends object>(record: R) => R;

export class Table<R extends object> {
  readonly #idOf: (record: R) => string;
  readonly #journal: Journal;
  readonly #freeze: Freeze;
  readonly #rows = new Map<string, Row<R>>();
  readonly #indexes: (Index<R> | PagedIndex<R>)[] = [];
  #places = 0;

  constructor(journal: Journal, freeze: Freeze, idOf: (record: R) => string) {
    this.#journal = journal;
    this.#freeze = freeze;
    this.#idOf = idOf;
  }

  index(keysOf: KeysOf<R>): Index<R> {
    const index = new Index<R>(this.#rows, keysOf);
    this.#indexes.push(index);
    return index;
  }

  /** For lists that are long and read by the page; `positionOf` orders them by something else than their rows' places. */
  paged(keysOf: KeysOf<R>, positionOf?: (record: R) => number): PagedIndex<R> {
    const index = new PagedIndex<R>(this.#rows, keysOf, positionOf);
    this.#indexes.push(index);
    return index;
  }

  get(id: string): R | undefined {
    return this.#rows.get(id)?.record;
  }

  /** Answers the record that was there before. */
  put(given: R): R | undefined {
    const record = this.#freeze(given);
    const id = this.#idOf(record);
    const found = this.#rows.get(id);
    const before = found?.was ?? found;
    const after = { place: before?.place ?? (this.#places += 1), record };
    this.#journal.record(() => {
      this.#replace(id, after, before);
      if (found !== undefined) this.#rows.set(id, found);
    });
    this.#replace(id, before, after);
    return before?.record;
  }

  remove(id: string): void {
    const before = this.#rows.get(id);
    if (before === undefined) return;
    this.#journal.record(() => this.#replace(id, undefined, before));
    this.#replace(id, before, undefined);
  }

  /** Makes a row unreadable, as a broken one of a file would be, until its record is put again. */
  damage(id: string, error: () => Error): void {
    const was = this.#rows.get(id);
    if (was === undefined || was.was !== undefined) return;
    this.#rows.set(id, {
      place: was.place,
      was,
      get record(): R {
        throw error();
      },
    });
  }

  /** What a damaged row was; undefined for one that can be read. */
  damaged(id: string): R | undefined {
    return this.#rows.get(id)?.was?.record;
  }

  #replace(id: string, from: Row<R> | undefined, to: Row<R> | undefined): void {
    if (to === undefined) this.#rows.delete(id);
    else this.#rows.set(id, to);
    for (const index of this.#indexes) index.move(id, from?.record, to?.record, (to ?? from)!.place);
  }
}

/** The ids of a key that has several, in the order of their rows' places as long as `ordered` says so. */
interface Several {
  ids: Set<string>;
  last: number;
  ordered: boolean;
}

/** Most keys have one record, whose id then stands alone. */
type Ids = string | Several;

/** Lists are in the order of their rows' first insert, however their records moved between keys since. */
export class Index<R> {
  readonly #rows: ReadonlyMap<string, Row<R>>;
  readonly #keysOf: KeysOf<R>;
  readonly #ids = new Map<string, Ids>();

  constructor(rows: ReadonlyMap<string, Row<R>>, keysOf: KeysOf<R>) {
    this.#rows = rows;
    this.#keysOf = keysOf;
  }

  get(key: string): R[] {
    return Array.from(this.#idsOf(key), (id) => this.#rows.get(id)!.record);
  }

  first(key: string): R | undefined {
    for (const id of this.#idsOf(key)) return this.#rows.get(id)!.record;
    return undefined;
  }

  /** The same list without making one, for whoever stops early. It may not change meanwhile. */
  *each(key: string): Generator<R> {
    for (const id of this.#idsOf(key)) yield this.#rows.get(id)!.record;
  }

  keys(): Iterable<string> {
    return this.#ids.keys();
  }

  has(key: string): boolean {
    return this.#ids.has(key);
  }

  /** Without the damaged ones. */
  readable(key: string): R[] {
    return Array.from(this.#idsOf(key), (id) => this.#rows.get(id)!).flatMap((row) =>
      row.was === undefined ? [row.record] : [],
    );
  }

  /** What damaged rows were, too: for what a file's columns tell without their bodies. */
  stored(key: string): R[] {
    return Array.from(this.#idsOf(key), (id) => storedOf(this.#rows.get(id)!));
  }

  move(id: string, before: R | undefined, after: R | undefined, place: number): void {
    const from = before === undefined ? null : this.#keysOf(before);
    const to = after === undefined ? null : this.#keysOf(after);
    if (from === to) return;
    for (const key of keyList(from)) this.#remove(key, id);
    for (const key of keyList(to)) this.#add(key, id, place);
  }

  #idsOf(key: string): Iterable<string> {
    const ids = this.#ids.get(key);
    if (ids === undefined) return [];
    if (typeof ids === "string") return [ids];
    if (!ids.ordered) {
      ids.ids = new Set([...ids.ids].sort((a, b) => this.#rows.get(a)!.place - this.#rows.get(b)!.place));
      ids.ordered = true;
    }
    return ids.ids;
  }

  #add(key: string, id: string, place: number): void {
    const ids = this.#ids.get(key);
    if (ids === undefined) {
      this.#ids.set(key, id);
    } else if (typeof ids === "string") {
      const other = this.#rows.get(ids)!.place;
      this.#ids.set(key, { ids: new Set([ids, id]), last: Math.max(place, other), ordered: place > other });
    } else {
      // A record that came back to a key stands at its end and not in its place.
      if (place < ids.last) ids.ordered = false;
      else ids.last = place;
      ids.ids.add(id);
    }
  }

  #remove(key: string, id: string): void {
    const ids = this.#ids.get(key);
    if (typeof ids === "string" || ids?.ids.size === 1) this.#ids.delete(key);
    else ids?.ids.delete(id);
  }
}
