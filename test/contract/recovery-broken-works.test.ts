/** Rows of works that cannot be read (REC-1): an open one ends with one result, an ended one stays as it ended. */
import { describe, expect, test } from "vitest";
import type { WorkRecord } from "../../src/protocol/work.ts";
import { gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const heard = repeat(say((context) => `heard: ${context.lastToolText ?? ""}`));
const scripts = {
  "/root": [spawn("a", "first"), wait({ targets: ["a"] }), heard],
  "/root/a": [together(gate("a"), say("from a")), repeat(say("a again"))],
};

/** What a broken row must not disturb: every promise, and permits that come back. */
async function sound(h: Harness): Promise<void> {
  await h.tree.idle();
  expect(await h.store.read((view) => invariants(h.tree.id).check(view))).toEqual([]);
  expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
  expect(h.tree.control.tree.permits.inUse).toBe(0);
}

async function setAside(h: Harness) {
  return (await look(h).events("record.set_aside")).map(({ path, data }) => ({ path, ...data }));
}

/** What is known of a work without its row. */
function known({
  requester,
  replyTo,
  executorPath,
  parents,
  servedRuns,
  requestMailId,
  createdAt,
}: WorkRecord) {
  return { requester, replyTo, executorPath, parents, servedRuns, requestMailId, createdAt };
}

const FAILED = { ending: "failed", error: { code: "STORE_CORRUPT" } };

describe.each(STORES)("a work that cannot be read on %s", (store) => {
  test("REC-1 WRK-5 an open one ends failed, with one result to whoever waits for it, and the rest goes on", async () => {
    await using h = await harness({ store, scripts });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await waitUntil("the root waits", async () => (await h.tree.root.status()).kind === "waiting");
    const before = await look(h).work("/root/a");
    h.damageRow("works", before.id);
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({
      ending: "completed",
      text: expect.stringContaining("the stored record of the work cannot be read"),
    });
    const after = await look(h).work("/root/a");
    expect(after).toMatchObject({ ...known(before), outcome: FAILED });
    const results = (await look(h).mail("/root")).filter((mail) => mail.resultOf === before.id);
    expect(results).toMatchObject([{ id: after.resultMailId, kind: "final_answer" }]);
    expect(await setAside(h)).toEqual([{ path: "/root/a", table: "works", id: before.id, open: true }]);
    if (store === "sqlite") expect(h.setAside(before.id)).toBe(JSON.stringify(before).slice(0, 40));
    h.provider.gates.openAll();
    const again = await (await h.tree.agent("a")).send("again");
    expect(await again.outcome()).toMatchObject({ ending: "completed" });
    await sound(h);
    await h.crash();
    expect(await setAside(h)).toHaveLength(1);
  });

  test("REC-1 one that was not taken up yet ends failed, and nothing runs for it", async () => {
    await using h = await harness({
      store,
      scripts: { ...scripts, "/root/b": [say("b")] },
      tree: { limits: { running: 1 } },
    });
    const busy = await h.tree.root.spawn("a", "first");
    await h.provider.gates.arrived("a");
    const queued = await h.tree.root.spawn("b", "later");
    h.damageRow("works", queued.work.id);
    await h.crash();
    h.provider.gates.openAll();
    expect(await h.tree.work(queued.work.id).outcome()).toMatchObject(FAILED);
    expect(await h.tree.work(busy.work.id).outcome()).toMatchObject({ ending: "runtime_lost" });
    await sound(h);
    expect((await look(h).work("/root/b")).requester).toEqual({ kind: "user", name: "library" });
  });

  test("REC-1 WRK-4 of a chain of works, all broken at once: each ends, and nobody waits for ever", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("a", "first"), say("started"), repeat(say("woken"))],
        "/root/a": [spawn("b", "second"), say("a waits"), repeat(say("a woken"))],
        "/root/a/b": [together(gate("b"), say("from b"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("b");
    await waitUntil("both await", async () =>
      (await look(h).works()).every(({ state, executorPath }) =>
        executorPath === "/root/a/b" ? state === "running" : state === "awaiting_children",
      ),
    );
    for (const { id } of await look(h).works()) h.damageRow("works", id);
    await h.crash();
    h.provider.gates.openAll();
    await h.tree.idle();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "failed" });
    await waitUntil("all have ended", async () =>
      (await look(h).works()).every(({ state }) => state === "ended"),
    );
    expect((await look(h).works()).map(({ executorPath }) => executorPath)).toEqual([
      "/root",
      "/root/a",
      "/root/a/b",
    ]);
    await sound(h);
  });

  test("REC-1 WRK-4 of one that others wait under: they go on, and whoever asked for it has its one result", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("a", "first"), say("started"), heard],
        "/root/a": [spawn("b", "second"), say("a waits"), repeat(say("a woken"))],
        "/root/a/b": [together(gate("b"), say("from b"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("b");
    await waitUntil("a awaits", async () => (await look(h).work("/root/a")).state === "awaiting_children");
    const { id } = await look(h).work("/root/a");
    h.damageRow("works", id);
    h.provider.gates.openAll();
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    expect((await look(h).work("/root/a")).outcome).toMatchObject(FAILED);
    await sound(h);
  });

  test("REC-1 one whose runs were stopped in order, and one lost: the stand-in has lost one", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [repeat(together(gate("cut"), say("whole")))] },
      tree: { onLostRun: "retry" },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("cut");
    await h.crash();
    for (const times of [2, 3]) {
      await h.provider.gates.arrived("cut", times);
      await h.runtime.close();
      h.runtime = await h.newRuntime();
      h.tree = await h.runtime.openTree({ id: h.tree.id });
    }
    await h.provider.gates.arrived("cut", 4);
    h.damageRow("works", work.id);
    expect(await h.tree.work(work.id).record()).toMatchObject({ state: "ended", lostRuns: 1 });
    h.provider.gates.openAll();
    await sound(h);
  });

  test("REC-1 WRK-3 an ended one stays as it ended, for whoever asks for it", async () => {
    await using h = await harness({ store, scripts: { ...scripts, "/root/a": [say("from a")] } });
    await h.ask("go");
    const { id, outcome, ...before } = await look(h).work("/root/a");
    h.damageRow("works", id);
    await h.crash();
    const { usage, ...ended } = outcome!;
    expect(await h.tree.work(id).outcome()).toMatchObject({ ...ended, usage: { own: usage.own } });
    expect(await h.tree.work(id).record()).toMatchObject({
      ...known({ id, outcome, ...before }),
      resultMailId: before.resultMailId,
      resultPending: false,
      resultTransferId: before.resultTransferId,
    });
    expect(await setAside(h)).toEqual([{ path: "/root/a", table: "works", id, open: false }]);
    await sound(h);
  });

  test("REC-1 WRK-6 the result of one that answers to somebody else goes there", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/a": [together(gate("a"), say("from a"))], "*": [repeat(say("ok"))] },
    });
    await (await h.tree.root.spawn("b", "go")).work.outcome();
    const { work } = await h.tree.root.spawn("a", "go", { replyTo: "b" });
    await h.provider.gates.arrived("a");
    h.damageRow("works", work.id);
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject(FAILED);
    const results = (await look(h).mail("/root/b")).filter((mail) => mail.resultOf === work.id);
    expect(results).toHaveLength(1);
    expect((await look(h).mail("/root")).filter((mail) => mail.resultOf === work.id)).toEqual([]);
    await sound(h);
  });
});
