/** Walks of paged lists. */
import assert from "node:assert/strict";
import type { Page, PageRequest, StoreView } from "../store/port.ts";
import type { World } from "./store-harness.ts";

export type List = (view: StoreView, page: PageRequest) => Page<object>;

/** All rows of a list, taken by pages of this size. */
export async function walk({ store }: World, list: List, limit: number): Promise<object[]> {
  const rows: object[] = [];
  for (let after: string | null = null; ;) {
    const page: Page<object> = await store.read((view) => list(view, { limit, after }));
    assert.ok(page.rows.length <= limit);
    rows.push(...page.rows);
    if (page.next === null) return rows;
    after = page.next;
  }
}

/** A page behind a row that is not there is refused, whatever the cursor looks like. */
export async function refusesUnknown({ store }: World, list: List): Promise<void> {
  for (const after of ["garbage", "", "-1", "1e9", `run_${"0".repeat(21)}`, "/root/worker/nobody"])
    await assert.rejects(
      store.read((view) => list(view, { limit: 5, after })),
      { code: "INVALID_ARGUMENT" },
    );
}
