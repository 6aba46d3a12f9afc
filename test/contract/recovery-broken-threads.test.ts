/** Rows of threads that cannot be read, in lists of them (REC-1): each costs its own line, and no other. */
import { describe, expect, test } from "vitest";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { warningsTo } from "../support/logger.ts";

const scripts = { "*": [repeat(say("ok"))] };

test("REC-1 C19 a thread whose row cannot be read is named beside the list, which goes on behind it, and is told", async () => {
  const warnings: object[] = [];
  const logger = warningsTo((fields) => void warnings.push(fields));
  await using h = await harness({ store: "sqlite", scripts, runtime: { logger } });
  const ids = [h.tree.id];
  for (const title of ["a", "b", "c", "d"]) ids.unshift((await h.runtime.openTree({ title })).id);
  const [newest, second, third, fourth, oldest] = ids as [string, string, string, string, string];
  for (const id of [newest, third, fourth])
    h.edit("UPDATE agents SET body = substr(body, 1, 9) WHERE id = ?", id);
  await h.crash();
  const { threads } = h.runtime;
  const page = async (limit?: number, after: string | null = null) => {
    const asked = { after, ...(limit === undefined ? {} : { limit }) };
    const { rows, next, unreadable } = await threads.list({}, asked);
    return [rows.map(({ id }) => id), next, unreadable];
  };
  warnings.length = 0;
  expect(await page()).toEqual([[second, oldest], null, [newest, third, fourth]]);
  expect(warnings).toMatchObject([{ threadId: newest }, { threadId: third }, { threadId: fourth }]);
  expect(await page(1)).toEqual([[second], second, [newest]]);
  expect(await page(1, second)).toEqual([[oldest], null, [third, fourth]]);
  expect(await page(2)).toEqual([[second, oldest], null, [newest, third, fourth]]);
  // A page of readable ones is what it was.
  expect(await page(1, fourth)).toEqual([[oldest], null, []]);
  for (const read of ["show", "get", "transcript", "context", "executions", "transfers"] as const)
    await expect(threads[read](third)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  expect(await h.ask("and on")).toMatchObject({ ending: "completed" });
});

test("REC-1 C1.6 a thread with a conversation that cannot be read is named beside the list", async () => {
  await using h = await harness({ store: "sqlite", scripts });
  await h.ask("first");
  const other = await h.runtime.openTree({ title: "other" });
  h.edit("UPDATE provider_threads SET body = substr(body, 1, 9)");
  await h.crash();
  const { rows, next, unreadable } = await h.runtime.threads.list();
  expect([rows.map(({ id }) => id), next, unreadable]).toEqual([[other.id], null, [h.tree.id]]);
});

describe.each(STORES)("a fork over a run that cannot be read on %s", (store) => {
  test.for(["owned", "nobody's"] as const)(
    "REC-1 C5.1 it is set aside first, and the fork begins at the run before; the tree is %s",
    async (whose) => {
      await using h = await harness({ store, scripts });
      const { threads } = h.runtime;
      const { id } = h.tree;
      for (const text of ["one", "two"]) await h.ask(text);
      if (whose === "nobody's") await h.tree.close();
      const [first, second] = (await threads.executions(id)).rows;
      h.damageRow("runs", second!.executionId);
      expect((await threads.planFork(id)).point.runId).toBe(first!.executionId);
      const { thread, transfer } = await threads.fork(id);
      expect(transfer.sourcePoint.runId).toBe(first!.executionId);
      expect((await threads.executions(id)).rows).toHaveLength(2);
      expect(await (await threads.continue(thread.id, "three")).outcome()).toMatchObject({
        ending: "completed",
      });
    },
  );
});
