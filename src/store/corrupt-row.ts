/** Rows that are there and cannot be read: the error that names one, and what is done where one is such. */
import { CoppiceError, RejectedError } from "../protocol/errors.ts";

/** `name` is the store's: its file, or "memory". */
export function corruptRow(name: string, table: string, id: string, cause?: unknown): RejectedError {
  return new RejectedError(
    "STORE_CORRUPT",
    `The row ${id} of table ${table} in ${name} cannot be read; restore the file from a copy.`,
    { path: name, table, id },
    cause,
  );
}

export function isCorrupt(error: unknown): error is CoppiceError {
  return CoppiceError.is(error) && error.code === "STORE_CORRUPT";
}

/** What is read; `otherwise` where reading fails for what is stored. @throws what else is in the way. */
export function unlessCorrupt<T, Otherwise>(read: () => T, otherwise: Otherwise): T | Otherwise {
  try {
    return read();
  } catch (error) {
    if (isCorrupt(error)) return otherwise;
    throw error;
  }
}

/** Whether reading fails for what is stored. @throws what else is in the way. */
export function isUnreadable(read: () => unknown): boolean {
  const unreadable = Symbol("unreadable");
  return unlessCorrupt<unknown, typeof unreadable>(read, unreadable) === unreadable;
}
