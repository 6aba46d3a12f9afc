/**
 * Records by id, with indexes, over a journal. Rows keep the place of their first insert, which is the order of every
 * list, so that a rollback changes no order. Records are values: they are frozen as they come in and handed out as
 * they are.
 */
import type { Page, PageRequest } from "../port.ts";
import type { Journal } from "./journal.ts";

interface Row<R> {
  readonly place: number;
  readonly record: R;
}

/** Keys under which a record is found; null for none. */
type KeysOf<R> = (record: R) => string | null | readonly string[];

/** How a table keeps records from being changed by whoever holds them. */
export type Freeze = <R extends object>(record: R) => R;

export class Table<R extends object> {
  readonly #idOf: (record: R) => string;
  readonly #journal: Journal;
  readonly #freeze: Freeze;
  readonly #rows = new Map<string, Row<R>>();
  readonly #indexes: Index<R>[] = [];
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

  get(id: string): R | undefined {
    return this.#rows.get(id)?.record;
  }

  /** Answers the record that was there before. */
  put(given: R): R | undefined {
    const record = this.#freeze(given);
    const id = this.#idOf(record);
    const before = this.#rows.get(id);
    const after = { place: before?.place ?? (this.#places += 1), record };
    this.#journal.record(() => this.#replace(id, after, before));
    this.#replace(id, before, after);
    return before?.record;
  }

  remove(id: string): void {
    const before = this.#rows.get(id);
    if (before === undefined) return;
    this.#journal.record(() => this.#replace(id, undefined, before));
    this.#replace(id, before, undefined);
  }

  /** All records, in the order of their first insert. */
  all(): R[] {
    return inOrder([...this.#rows.values()]);
  }

  #replace(id: string, from: Row<R> | undefined, to: Row<R> | undefined): void {
    if (to === undefined) this.#rows.delete(id);
    else this.#rows.set(id, to);
    for (const index of this.#indexes) index.move(id, from?.record, to?.record);
  }
}

/** Most keys have one record, whose id then stands alone. */
type Ids = string | Set<string>;

export class Index<R> {
  readonly #rows: ReadonlyMap<string, Row<R>>;
  readonly #keysOf: KeysOf<R>;
  readonly #ids = new Map<string, Ids>();

  constructor(rows: ReadonlyMap<string, Row<R>>, keysOf: KeysOf<R>) {
    this.#rows = rows;
    this.#keysOf = keysOf;
  }

  /** In the order of their first insert. */
  get(key: string): R[] {
    const ids = this.#ids.get(key);
    if (ids === undefined) return [];
    if (typeof ids === "string") return [this.#rows.get(ids)!.record];
    return inOrder(Array.from(ids, (id) => this.#rows.get(id)!));
  }

  keys(): Iterable<string> {
    return this.#ids.keys();
  }

  move(id: string, before: R | undefined, after: R | undefined): void {
    const from = before === undefined ? null : this.#keysOf(before);
    const to = after === undefined ? null : this.#keysOf(after);
    if (from === to) return;
    for (const key of keyList(from)) this.#remove(key, id);
    for (const key of keyList(to)) this.#add(key, id);
  }

  #add(key: string, id: string): void {
    const ids = this.#ids.get(key);
    if (ids === undefined) this.#ids.set(key, id);
    else if (typeof ids === "string") this.#ids.set(key, new Set([ids, id]));
    else ids.add(id);
  }

  #remove(key: string, id: string): void {
    const ids = this.#ids.get(key);
    if (typeof ids === "string" || ids?.size === 1) this.#ids.delete(key);
    else ids?.delete(id);
  }
}

/** A page of a list whose rows are numbered by the cursor's function. */
export function pageOf<R>(rows: readonly R[], page: PageRequest, idOf: (row: R) => string): Page<R> {
  const { after, limit } = page;
  const start = after === null || after === undefined ? 0 : rows.findIndex((row) => idOf(row) === after) + 1;
  const slice = rows.slice(start, start + limit);
  const last = slice.at(-1);
  return { rows: slice, next: last !== undefined && start + slice.length < rows.length ? idOf(last) : null };
}

function keyList(keys: string | null | readonly string[]): readonly string[] {
  return keys === null ? [] : typeof keys === "string" ? [keys] : keys;
}

function inOrder<R>(rows: Row<R>[]): R[] {
  return rows.sort((a, b) => a.place - b.place).map(({ record }) => record);
}
