/** Mends the rows that a failure comes from, one after the other as they turn up, in one commit (REC-1). */
import { brokenRow, mend, type RowName } from "./broken-rows.ts";
import type { Transaction } from "./transaction.ts";

/** How the rows of a tree are mended. */
export interface Mender {
  commit(plan: (tx: Transaction) => void): Promise<void>;
  goesOn(): boolean;
  tell(row: RowName, error: unknown): void;
}

/** Rows that turn up while one is mended are mended with it. False where no row is behind the failure, or one that was mended. */
export async function mendBehind(failure: unknown, mended: Set<string>, by: Mender): Promise<boolean> {
  const rows: RowName[] = [];
  for (let error = failure; ;) {
    const row = brokenRow(error);
    if (row === null && error !== failure) throw error;
    if (row === null || mended.has(row.id) || !by.goesOn()) return false;
    mended.add(row.id);
    rows.push(row);
    by.tell(row, error);
    const cause = error;
    try {
      await by.commit((tx) => mend(tx, rows, cause));
      return true;
    } catch (next) {
      error = next;
    }
  }
}
