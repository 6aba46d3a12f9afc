/** The stored approval of a call of ours cannot be read: no part of the transcript tells of it, and the call is refused (REC-1). */
import { describe, expect, test } from "vitest";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { approve, call, repeat, say } from "../../src/providers/scripted/script.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const threadTools = { allow: "all", approval: "ask" } as const;
const asking = {
  "a call of a tool": call("create_thread", { threads: [{ message: "hello" }] }),
  "a question of a provider": approve("may I?"),
} as const;

async function broken(options: HarnessOptions) {
  const h = await harness({ ...options, runtime: { threadTools } });
  const work = await h.tree.root.send("go");
  await waitUntil("it asks", async () => (await h.tree.root.status()).kind === "awaiting_approval");
  const [asked] = await h.store.read((view) => view.openRequestsOf(h.tree.id));
  h.damageRow("requests", asked!.id);
  return { h, work, asked: asked! };
}

/** The tree is as good as before. */
async function sound(h: Harness): Promise<void> {
  expect(await h.tree.requests()).toEqual([]);
  expect(await h.ask("still there?")).toMatchObject({ ending: "completed" });
  expect(await h.store.read((view) => invariants(h.tree.id).check(view))).toEqual([]);
  expect((await look(h).events("record.set_aside")).map(({ data }) => data["table"])).toEqual(["requests"]);
  expect(await h.tree.root.close()).toHaveLength(1);
}

describe.each(STORES)("an approval that cannot be read on %s", (store) => {
  test.each(["a call of a tool", "a question of a provider"] as const)(
    "REC-1 of %s, after a restart: it is cancelled, and its run goes on",
    async (kind) => {
      const { h, work, asked } = await broken({
        store,
        scripts: { "/root": [asking[kind], repeat(say((context) => context.lastToolText ?? ""))] },
      });
      await using _ = h;
      await h.crash();
      const outcome = await h.tree.work(work.id).outcome();
      expect(outcome).toMatchObject({ ending: "completed" });
      expect(outcome.text).toContain("the stored question cannot be read");
      expect(await h.store.read((view) => view.request(asked.id))).toMatchObject({
        runId: asked.runId,
        kind: "approval",
        status: "cancelled",
        createdAt: asked.createdAt,
      });
      expect((await h.runtime.threads.list({}, { limit: 10 })).rows).toHaveLength(1);
      await sound(h);
    },
  );

  test.each(["answer", "interrupt", "close"] as const)(
    "REC-1 of a call of a tool, while its tree is open: %s finds it cancelled",
    async (verb) => {
      const { h, work, asked } = await broken({
        store,
        scripts: { "/root": [asking["a call of a tool"], repeat(say("on"))] },
      });
      await using _ = h;
      if (verb === "close") {
        expect(await h.tree.root.close()).toHaveLength(1);
        return;
      }
      if (verb === "interrupt") await h.tree.root.interrupt();
      else
        await expect(h.tree.answer(asked.id, "yes")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
      expect(await h.tree.work(work.id).outcome()).toMatchObject({
        ending: verb === "answer" ? "completed" : "interrupted",
      });
      await sound(h);
    },
  );

  test("REC-1 of a call within a turn that a provider drives: the call is told, and the turn goes on", async () => {
    const able = turnFork({ "/root": [asking["a call of a tool"], repeat(say("on"))] });
    const { h, work, asked } = await broken({ store, others: { able }, tree: { provider: "able" } });
    await using _ = h;
    await expect(h.tree.answer(asked.id, "yes")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    await waitUntil("it goes on", async () => (await h.tree.root.status()).kind === "idle", {
      step: () => h.clock.advance(500),
    });
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "on" });
  });
});
