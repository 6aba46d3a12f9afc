/** What fails at a stored row that cannot be read is tried again when that row was mended, each row once (REC-1). */
import type { TreeId } from "../protocol/ids.ts";
import type { Logger } from "../platform/logger.ts";
import { brokenRow, mend, type RowName } from "./broken-rows.ts";
import type { Transaction } from "./transaction.ts";

/** The tree whose rows are mended. */
export interface Mender {
  readonly treeId: TreeId;
  readonly shared: { readonly logger: Logger };
  commit(plan: (tx: Transaction) => void): Promise<void>;
}

export async function untilMended<T>(attempt: () => Promise<T>, by: Mender): Promise<T> {
  const mended = new Set<string>();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(await mendBehind(error, mended, by))) throw error;
    }
  }
}

/**
 * In one commit; rows that turn up while one is mended are mended with it. False where no row is behind the failure, or one that was
 * mended.
 */
async function mendBehind(failure: unknown, mended: Set<string>, by: Mender): Promise<boolean> {
  const rows: RowName[] = [];
  for (let error = failure; ;) {
    const row = brokenRow(error);
    if (row === null && error !== failure) throw error;
    if (row === null || mended.has(row.id)) return false;
    mended.add(row.id);
    rows.push(row);
    by.shared.logger.warn(
      { treeId: by.treeId, ...row, err: error },
      "a stored row cannot be read, and is set aside",
    );
    const cause = error;
    try {
      await by.commit((tx) => mend(tx, rows, cause));
      return true;
    } catch (next) {
      error = next;
    }
  }
}
