/**
 * An index for lists that are long and read by the page: a page costs what it returns, whatever the length of the list.
 * The ids of a key stand in an array, in the order of their rows' places or of a position that never changes and that no
 * other record of the key has. What is added last mostly stands last, which costs nothing.
 */
import { unknownCursor } from "../cursor.ts";
import type { Page, PageRequest } from "../port.ts";
import { keyList, type KeysOf, type Row, storedOf } from "./keys.ts";

type Order = "oldest first" | "newest first";

/** The id of a row, with its place. */
interface Entry {
  readonly id: string;
  readonly place: number;
}

export class PagedIndex<R> {
  readonly #rows: ReadonlyMap<string, Row<R>>;
  readonly #keysOf: KeysOf<R>;
  readonly #positionOf: ((record: R) => number) | undefined;
  readonly #entries = new Map<string, Entry[]>();

  constructor(
    rows: ReadonlyMap<string, Row<R>>,
    keysOf: KeysOf<R>,
    positionOf: ((record: R) => number) | undefined,
  ) {
    this.#rows = rows;
    this.#keysOf = keysOf;
    this.#positionOf = positionOf;
  }

  /** The cursor is the id of the last row, which may have left the list since. */
  page(key: string, request: PageRequest, order: Order): Page<R> {
    const { ids, next } = this.#idsOf(key, request, order);
    return { rows: ids.map((id) => this.#rows.get(id)!.record), next };
  }

  /** The same, without the damaged ones, which are named. */
  readablePage(key: string, request: PageRequest, order: Order): Page<R> {
    const { ids, next } = this.#idsOf(key, request, order);
    const unreadable = ids.filter((id) => this.#rows.get(id)!.was !== undefined);
    const rows = ids.filter((id) => !unreadable.includes(id)).map((id) => this.#rows.get(id)!.record);
    return { rows, next, ...(unreadable.length === 0 ? {} : { unreadable }) };
  }

  #idsOf(
    key: string,
    { after = null, limit }: PageRequest,
    order: Order,
  ): { readonly ids: readonly string[]; readonly next: string | null } {
    const entries = this.#entries.get(key) ?? [];
    const step = order === "oldest first" ? 1 : -1;
    const ids: string[] = [];
    for (let at = startOf(entries, this.#placeOf(after), step); ; at += step) {
      const entry = entries[at];
      if (entry === undefined) return { ids, next: null };
      if (ids.length >= limit) return { ids, next: ids.at(-1) ?? null };
      ids.push(entry.id);
    }
  }

  move(id: string, before: R | undefined, after: R | undefined, rowPlace: number): void {
    const place = this.#positionOf?.((after ?? before)!) ?? rowPlace;
    const from = before === undefined ? [] : keyList(this.#keysOf(before));
    const to = after === undefined ? [] : keyList(this.#keysOf(after));
    for (const key of from) if (!to.includes(key)) this.#remove(key, place);
    for (const key of to) if (!from.includes(key)) this.#add(key, { id, place });
  }

  #placeOf(id: string | null): number | null {
    if (id === null) return null;
    const row = this.#rows.get(id);
    if (row === undefined) throw unknownCursor(id);
    return this.#positionOf?.(storedOf(row)) ?? row.place;
  }

  #add(key: string, entry: Entry): void {
    const entries = this.#entries.get(key);
    if (entries === undefined) return void this.#entries.set(key, [entry]);
    const at = firstFrom(entries, entry.place);
    if (at === entries.length) return void entries.push(entry);
    // The same key twice, as of a transfer within one thread.
    if (entries[at]?.place !== entry.place) entries.splice(at, 0, entry);
  }

  #remove(key: string, place: number): void {
    const entries = this.#entries.get(key);
    if (entries === undefined) return;
    const at = firstFrom(entries, place);
    if (entries[at]?.place === place) entries.splice(at, 1);
    if (entries.length === 0) this.#entries.delete(key);
  }
}

/** Where a page begins that follows this place. */
function startOf(entries: readonly Entry[], after: number | null, step: 1 | -1): number {
  if (after === null) return step === 1 ? 0 : entries.length - 1;
  return step === 1 ? firstFrom(entries, after + 1) : firstFrom(entries, after) - 1;
}

/** Index of the first entry whose place is not before this one. */
function firstFrom(entries: readonly Entry[], place: number): number {
  let low = 0;
  let high = entries.length;
  if (high === 0 || entries[high - 1]!.place < place) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle]!.place < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
