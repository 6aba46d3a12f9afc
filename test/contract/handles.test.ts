/** What the handles of trees, agents and works say holds of them, at their edges, too. */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { RejectedError, TransientError } from "../../src/protocol/errors.ts";
import type { PageOptions } from "../../src/runtime/agent.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";

describe.each(STORES)("handles on %s", (store) => {
  const open = (options: HarnessOptions = {}): Promise<Harness> =>
    harness({ store, scripts: { "*": [repeat(say("ok"))] }, ...options });

  test("MBX-1 input whose signal aborts before it is stored is not sent, and what is stored goes on", async () => {
    await using h = await open();
    await expect(h.tree.root.send("no", { signal: AbortSignal.abort("early") })).rejects.toBe("early");
    const late = new AbortController();
    const sending = h.tree.root.send("no", { signal: late.signal });
    late.abort("late");
    await expect(sending).rejects.toBe("late");
    expect((await h.tree.works()).rows).toEqual([]);
    const stored = new AbortController();
    const work = await h.tree.root.send("yes", { signal: stored.signal });
    stored.abort();
    expect((await work.outcome()).ending).toBe("completed");
  });

  test.each([
    ["another tree was lost", new RejectedError("FENCED", "another tree was taken over")],
    ["a store failed", new TransientError("STORE_IO", "the disk of something else")],
    ["a row is broken", null],
  ])("REC-2 REC-3 a reason to abort is the caller's, whatever it says: %s", async (_, given) => {
    await using h = await open();
    const first = await h.tree.root.send("one");
    await first.outcome();
    const [run] = (await h.tree.root.runs()).rows;
    const reason = given ?? new RejectedError("STORE_CORRUPT", "unreadable", { table: "runs", id: run!.id });
    const stop = new AbortController();
    const sending = h.tree.root.send("two", { signal: stop.signal });
    stop.abort(reason);
    await expect(sending).rejects.toBe(reason);
    expect(h.tree.owned).toBe(true);
    expect(h.tree.control.tree.doubt).toBeNull();
    expect((await h.tree.root.runs()).rows).toEqual([run]);
    expect(await (await h.tree.root.send("three")).outcome()).toMatchObject({ ending: "completed" });
  });

  test("WAI-4 an ended work answers at once, also when its tree was closed", async () => {
    await using h = await open({ scripts: { "*": [say("done"), together(gate("never"), say("late"))] } });
    const ended = await h.tree.root.send("one");
    const outcome = await ended.outcome();
    const late = await h.tree.root.send("two");
    await h.provider.gates.arrived("never");
    const waiting = late.outcome().catch((error: { code: string }) => error.code);
    await h.tree.close();
    expect(await ended.outcome()).toEqual(outcome);
    expect(await waiting).toBe("RUNTIME_CLOSED");
    await expect(late.outcome()).rejects.toMatchObject({ code: "RUNTIME_CLOSED" });
    await expect(ended.outcome({ signal: AbortSignal.abort("gone") })).rejects.toBe("gone");
  });

  test("LST-1 records are those of every agent, however many there are", async () => {
    await using h = await open();
    const count = 501;
    const record = await h.tree.root.record();
    const { tree } = h.tree.control;
    await tree.transact((tx) => {
      for (let n = 0; n < count; n += 1) {
        const threadId = tx.id("thread");
        tx.store.putAgent({
          ...record,
          threadId,
          path: `/root/a${n}`,
          parent: h.tree.id,
          depth: 1,
          tokenDigest: `${n}`.padStart(64, "0"),
          state: n % 2 === 0 ? "closed" : "open",
        });
      }
    });
    expect(await h.tree.records()).toHaveLength(count + 1);
  });

  test("REC-2 MBX-3 HDR-4 what holds for one opening is not passed over where the tree is open already", async () => {
    await using h = await open({ tree: { profile: "codex" } });
    const { id } = h.tree;
    for (const same of [{}, { wakeOnAgentMessages: false }, { onHostGone: "keep" }] as const)
      expect(await h.runtime.openTree({ id, ...same })).toBe(h.tree);
    for (const [other, words] of [
      [{ wakeOnAgentMessages: true }, /open here with another wakeOnAgentMessages; close it/],
      [{ onHostGone: "interrupt" }, /another onHostGone/],
      [{ wakeOnAgentMessages: true, onHostGone: "interrupt" }, /wakeOnAgentMessages and onHostGone/],
    ] as const)
      await expect(h.runtime.openTree({ id, ...other })).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringMatching(words),
      });
    await h.tree.close();
    // Of two at once the second is looked at when the first has opened it.
    const [first, second, third] = await Promise.allSettled([
      h.runtime.openTree({ id, wakeOnAgentMessages: true }),
      h.runtime.openTree({ id, wakeOnAgentMessages: false }),
      h.runtime.openTree({ id }),
    ]);
    expect(second).toMatchObject({ status: "rejected", reason: { code: "INVALID_ARGUMENT" } });
    expect(third).toEqual(first);
    expect((first as PromiseFulfilledResult<Harness["tree"]>).value.owned).toBe(true);
  });

  test("LST-1 a page behind a row that there is not is refused, and says what to pass", async () => {
    await using h = await open();
    for (let n = 0; n < 3; n += 1) await h.ask(`a${n}`);
    const { root } = h.tree;
    const { threads } = h.runtime;
    const lists: Record<string, (page: PageOptions) => Promise<unknown>> = {
      mail: (page) => root.mail(page),
      runs: (page) => root.runs(page),
      works: (page) => h.tree.works(page),
      list: (page) => h.tree.list(page),
      threads: (page) => threads.list({}, page),
      executions: (page) => threads.executions(h.tree.id, page),
      history: (page) => threads.history(h.tree.id, page),
      transfers: (page) => threads.transfers(h.tree.id, page),
      handoffs: (page) => threads.handoffs(h.tree.id, page),
    };
    for (const [name, list] of Object.entries(lists)) {
      for (const after of ["garbage", "99", "/root/nobody"]) {
        const refused = await list({ after }).catch((error: unknown) => error);
        expect([name, refused]).toMatchObject([
          name,
          {
            code: "INVALID_ARGUMENT",
            message: expect.stringContaining(`\`${after}\` is no place in this list; pass the \`next\``),
          },
        ]);
      }
    }
    const first = await root.runs({ limit: 2 });
    expect((await root.runs({ after: first.next })).rows).toHaveLength(1);
  });
});
