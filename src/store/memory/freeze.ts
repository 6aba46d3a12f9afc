/** Keeps stored records from being changed by those who put or read them. */

/** The record itself, which is what a careless `Object.assign` would reach; nested data is guarded by its types. */
export function freezeTop<R extends object>(record: R): R {
  return Object.freeze(record);
}

/** Everything below it too: for tests, where a mutation must be loud. */
export function freezeDeep<R extends object>(record: R): R {
  if (Object.isFrozen(record) && isShallow(record)) return record;
  Object.freeze(record);
  for (const value of Object.values(record)) {
    if (typeof value === "object" && value !== null) freezeDeep(value as object);
  }
  return record;
}

function isShallow(record: object): boolean {
  return Object.values(record).every((value) => typeof value !== "object" || value === null);
}
