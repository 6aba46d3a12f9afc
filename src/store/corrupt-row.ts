/** Rows that are there and cannot be read: the error that names one, and the question whether one is such. */
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

/** Whether reading fails for what is stored. @throws what else is in the way. */
export function isUnreadable(read: () => unknown): boolean {
  try {
    read();
    return false;
  } catch (error) {
    if (CoppiceError.is(error) && error.code === "STORE_CORRUPT") return true;
    throw error;
  }
}
