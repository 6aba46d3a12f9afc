/** Rows that cannot be read, as commands that only look tell of them: the rest is shown, and the command ends with exit code 5. */
import type { UnreadableRow } from "../runtime/tree-reader.ts";
import { CommandError, EXIT } from "./failure.ts";

/** An agent whose row it is, or the row alone. */
export function rowName({ table, id, path }: UnreadableRow): string {
  return path === null ? `${table} ${id}` : `${path} (${table} ${id})`;
}

/** @throws CommandError `STORE_CORRUPT` that names them, when the others were printed (REC-1). */
export function requireReadable(rows: readonly UnreadableRow[]): void {
  if (rows.length === 0) return;
  const what = rows.length === 1 ? "a row of this tree" : "rows of this tree";
  throw new CommandError(
    EXIT.store,
    "STORE_CORRUPT",
    `${what} cannot be read: ${rows.map(rowName).join(", ")}. Restore the store from a backup; whoever runs the tree next goes on without what they held.`,
  );
}
