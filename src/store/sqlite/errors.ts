/** SQLite's result codes as errors of the runtime (REC-3). What is not SQLite's passes through untouched. */
import { CoppiceError, InvariantError, RejectedError, TransientError } from "../../protocol/errors.ts";

/** Primary result codes of SQLite. */
const PERM = 3;
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const CORRUPT = 11;
const FULL = 13;
const CONSTRAINT = 19;
const NOTADB = 26;

/** The primary result code, or undefined for an error of somebody else. */
export function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number")
    return undefined;
  return error.errcode & 0xff;
}

/** True when the transaction cannot go on; a refused row or value is the fault of who wrote it. */
export function endsTransaction(error: unknown): boolean {
  const code = resultCode(error);
  return code !== undefined && code !== CONSTRAINT;
}

export function storeError(error: unknown, path: string): unknown {
  const code = resultCode(error);
  if (code === undefined || CoppiceError.is(error)) return error;
  const text = (error as Error).message;
  const details = { path, sqlite: (error as Error & { readonly errcode: number }).errcode };
  switch (code) {
    case BUSY:
    case LOCKED:
      return new TransientError(
        "STORE_BUSY",
        `The store ${path} is locked by another connection (${text}); try again, or close the process that holds it.`,
        details,
        { retryAfterMs: 100, cause: error },
      );
    case FULL:
      return new TransientError(
        "STORE_FULL",
        `The store ${path} has no space left (${text}); nothing was stored. Free some space and try again.`,
        details,
        { cause: error },
      );
    case CORRUPT:
    case NOTADB:
      return new RejectedError(
        "STORE_CORRUPT",
        `The file ${path} is damaged or is not a database (${text}); restore it from a copy or use another store.`,
        details,
        error,
      );
    case CONSTRAINT:
      return new InvariantError(`A record contradicts the rows of the store (${text}).`, details);
    default:
      return new TransientError(
        "STORE_IO",
        `The store ${path} failed: ${text}. ${adviceFor(code)}`,
        details,
        {
          cause: error,
        },
      );
  }
}

function adviceFor(code: number): string {
  if (code === READONLY)
    return "It was opened for reading only, or the file is; open it with the right to write.";
  if (code === PERM) return "Check who owns the file and its folder.";
  return "Check that the folder exists, the disk, and the rights of the file.";
}
