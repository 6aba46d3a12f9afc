/** Commands on threads of trees that nobody owns: what is one commit, or none, runs nothing and keeps no tree (lineage C3, REC-2). */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const ANSWERS = { "*": [repeat(say("done"))] };
const isOwned = (h: Harness) => h.store.read((view) => view.lease(h.tree.id)?.live);
const runsOf = async (h: Harness) => (await h.runtime.threads.get(h.tree.id)).executions;
const first = { to: { kind: "ordinal", ordinal: 1 } } as const;

describe.each(STORES)("a thread of a tree that nobody owns on %s", (store) => {
  test("S2-52 C4 REC-2 is previewed as its owner would, and nothing runs by it", async () => {
    const b = scripted(ANSWERS);
    await using h = await harness({
      store,
      scripts: ANSWERS,
      others: { b },
      runtime: { threadTools: { allow: "read" } },
    });
    const { threads } = h.runtime;
    for (let n = 0; n < 6; n += 1) await h.ask(`question ${n} ${"y".repeat(30_000)}`);
    const choice = { provider: "b" };
    const owned = await threads.preview(h.tree.id, choice);
    expect(owned.tells[0]?.text).toContain("Read them with `read_thread`");
    await h.tree.close();
    expect(await threads.preview(h.tree.id, choice)).toEqual(owned);
    const message = { thread: h.tree.id, message: "go" };
    await commandTree(h.store, h.tree.id, "continue", message, { clock: h.clock });
    await threads.preview(h.tree.id, choice);
    await h.clock.settle();
    expect([await isOwned(h), await runsOf(h)]).toEqual([false, 6]);
    await expect(threads.preview(h.tree.id, { provider: "none" })).rejects.toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
    });
    const second = await h.newRuntime();
    await second.openTree({ id: h.tree.id });
    expect(await threads.preview(h.tree.id, choice)).toMatchObject({ strategy: "full" });
    await second.close();
  });

  test("C9.1 REC-2 has its rollback undone in one commit, and is nobody's after it", async () => {
    await using h = await harness({ store, scripts: ANSWERS });
    const { threads } = h.runtime;
    for (const text of ["one", "two"]) await h.ask(text);
    await threads.rollBack(h.tree.id, first);
    await h.tree.close();
    expect(await threads.undoRollback(h.tree.id)).toMatchObject({ executions: 2 });
    expect(await isOwned(h)).toBe(false);
    expect((await look(h).view((view) => view.runAt(h.tree.id, 2)))?.status).toBe("completed");
  });

  test("C8.9 REC-2 gets a result that was kept back in one commit, and is nobody's after it", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          say("one"),
          spawn("late", "dig", { fork_turns: "none", detached: true, wake: "never" }),
          together(gate("on"), say("asked")),
          repeat(say("done")),
        ],
        "/root/late": [say("found it")],
      },
    });
    const results = () => look(h).transfers("subagent_result");
    await h.ask("one");
    const work = await h.tree.root.send("two");
    await h.provider.gates.arrived("on");
    await look(h).until("the result is there", async () => (await results()).length === 1);
    h.provider.gates.open("on");
    await work.outcome();
    await h.runtime.threads.rollBack(h.tree.id, first);
    await h.tree.close();
    const [kept] = await results();
    expect(await h.runtime.threads.inject(kept!.id)).toMatchObject({ staleBase: false });
    expect(await isOwned(h)).toBe(false);
  });
});
