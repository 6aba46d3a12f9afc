/** Rows of a table and the keys under which its indexes find them. */
export interface Row<R> {
  readonly place: number;
  readonly record: R;
  /** Of a damaged row, whose record cannot be read: what it was. */
  readonly was?: Row<R>;
}

/** Keys under which a record is found; null for none. */
export type KeysOf<R> = (record: R) => string | null | readonly string[];

export function keyList(keys: ReturnType<KeysOf<never>>): readonly string[] {
  return keys === null ? [] : typeof keys === "string" ? [keys] : keys;
}

/** What a row was before it was damaged: the columns beside a body outlive it. */
export function storedOf<R>(row: Row<R>): R {
  return row.was?.record ?? row.record;
}
