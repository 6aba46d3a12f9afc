/** What SQLite does for each read of the store: it looks up and never walks a table, so that a read costs what it returns. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { makeFolder, openRaw } from "../../support/stores.ts";

/** The newest trees, read from the end, and what is open now, which is little. */
const ALLOWED = [
  "SCAN trees",
  "SCAN mail USING COVERING INDEX mail_ready",
  "SCAN commands USING COVERING INDEX commands_pending",
  "SCAN runs USING COVERING INDEX runs_open",
];

test("S1-55 no read of the store walks a table, and no list of threads is sorted", async () => {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "store.db");
  const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
  onTestFinished(() => prepare.mockRestore());
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  const reads = prepare.mock.calls
    .map(([sql]) => sql)
    .filter((sql) => /^\s*SELECT/.test(sql) && !/pragma_|sqlite_schema/.test(sql));
  expect(reads.length).toBeGreaterThan(40);

  using raw = openRaw(path);
  const planOf = (sql: string): string[] =>
    raw.database
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map((row) => String(row["detail"]));
  const walks = reads.flatMap(planOf).filter((step) => /^SCAN (?!\()/.test(step) && !ALLOWED.includes(step));
  expect(walks).toEqual([]);

  // Each by an index of its own, and not by one of a whole tree.
  for (const [sql, index] of [
    [/FROM agents WHERE open = 1 AND workspace/, "agents_worked_in"],
    [/FROM waits .*threads = 1/, "waits_threads"],
    [/result_mail IS NOT NULL/, "works_result_mail"],
  ] as const) {
    const found = reads.filter((read) => sql.test(read));
    expect(found.map((read) => planOf(read)[0]?.split(" ")[4])).toEqual(found.map(() => index));
    expect(found).not.toEqual([]);
  }

  const paged = reads.filter((sql) => /FROM (agents|transfers|handoffs|history|compactions)\b/.test(sql));
  expect(paged.length).toBeGreaterThan(15);
  expect(paged.filter((sql) => planOf(sql).some((step) => step.includes("TEMP B-TREE")))).toEqual([]);
});
