/** A thread whose process has died: looked at, reconciled, continued (lineage C14). */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, spawn, stall, together, wait } from "../../src/providers/scripted/script.ts";
import { recoverUnowned } from "../../src/control/recovery.ts";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const PAGE = { limit: 100 };
const TTL = 120_000;

/** Takes requests and never says that it has. */
function deaf(adapter: OwnLoopAdapter): OwnLoopAdapter {
  return {
    ...adapter,
    openSession: async () => ({
      async *step(_request, signal) {
        await new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
        );
        yield { type: "accepted" };
      },
      close: async () => undefined,
    }),
  };
}

describe.each(STORES)("a thread without a process on %s", (store) => {
  /** `kill -9` in the middle of what the thread is doing, and another runtime that has opened nothing. */
  const abandoned = async (more: HarnessOptions): Promise<Harness> => {
    const h = await harness({ store, ...more });
    await h.runtime.threads.continue(h.tree.id, "go");
    await h.clock.settle();
    await h.crash();
    await h.tree.close();
    return h;
  };
  /** The same, with what recovery on a claim would do still to be done. */
  const left = async (more: HarnessOptions, until: (h: Harness) => Promise<void>): Promise<Harness> => {
    const h = await harness({ store, ...more });
    await h.runtime.threads.continue(h.tree.id, "go");
    await until(h);
    h.cut();
    h.runtime = await h.newRuntime({ providers: { scripted: h.provider, other: h.provider } });
    return h;
  };
  const midRun = {
    scripts: {
      "/root": [
        repeat(({ inputs }) =>
          inputs.at(-1)!.endsWith("go") ? together(say("half"), gate("hold"), stall()) : say("done"),
        ),
      ],
    },
  };
  const scripts = { "/root": [repeat(say("done"))] };
  /** Its provider never hears of the run; the next process has one that does. */
  const unheard: HarnessOptions = {
    scripts,
    others: { other: deaf(scripted(scripts)) },
    tree: { provider: "other" },
  };
  const held = (h: Harness) => h.provider.gates.arrived("hold");

  test("S1-61 S1-63 S1-64 C14.4 C14.6 show settles what a vanished process was at, then shows it", async () => {
    await using h = await left(midRun, held);
    const { threads } = h.runtime;
    // What is stored still says that it runs.
    expect(await h.store.read((view) => view.openRuns(h.tree.id).map(({ status }) => status))).toHaveLength(
      1,
    );
    const { thread, executions, context, history } = await threads.show(h.tree.id);
    expect(thread).toMatchObject({ activity: { kind: "idle" }, currentContext: { revision: 1 } });
    expect(executions.rows).toMatchObject([{ settled: { outcome: "interrupted", nextContextRevision: 1 } }]);
    expect(context).toMatchObject({ revision: 1 });
    expect(context?.nextActions[0]?.text).toContain("not completed");
    expect(history).toEqual({ level: null, entries: 0 });
    // Nobody owns it by that, and nothing runs.
    expect((await h.store.read((view) => view.lease(h.tree.id)))?.live).not.toBe(true);
    expect(h.provider.requests("/root")).toHaveLength(1);
    const again = await threads.reconcile(h.tree.id);
    expect(again).toEqual(thread);
  });

  test("S1-66 C12.7 a continue reconciles, projects, and opens on it: no revision is missing", async () => {
    await using h = await left(midRun, held);
    const { threads } = h.runtime;
    await threads.continue(h.tree.id, "go on");
    await (await h.runtime.openTree({ id: h.tree.id })).idle();
    const { rows } = await threads.executions(h.tree.id, PAGE);
    expect(
      rows.map(({ contextRevision, settled }) => [
        contextRevision,
        settled?.outcome,
        settled?.nextContextRevision,
      ]),
    ).toEqual([
      [0, "interrupted", 1],
      [1, "completed", 2],
    ]);
    expect(rows[1]!.contextDigest).toBe(await h.store.read((view) => view.snapshot(h.tree.id, 1)!.digest));
  });

  test("S1-65 C14.2 a reservation younger than its time is left alone, an older one is interrupted", async () => {
    await using h = await left(unheard, (one) => one.clock.settle());
    const reserved = await h.store.read((view) => view.openRuns(h.tree.id)[0]!);
    expect(reserved.acceptedAt).toBeNull();
    const { threads } = h.runtime;
    await h.clock.advance(TTL - 1);
    expect((await threads.show(h.tree.id)).thread.activity).toEqual({
      kind: "unsettled",
      executionId: reserved.id,
    });
    await h.clock.advance(1);
    const { executions, thread } = await threads.show(h.tree.id);
    expect(thread.activity).toEqual({ kind: "idle" });
    expect(executions.rows).toMatchObject([{ settled: { outcome: "interrupted", nextContextRevision: 1 } }]);
    // Its message is still there, and whoever opens the tree answers it.
    await (await h.runtime.openTree({ id: h.tree.id })).idle();
    expect((await threads.executions(h.tree.id, PAGE)).rows.map(({ settled }) => settled?.outcome)).toEqual([
      "interrupted",
      "completed",
    ]);
  });

  test("C14.2 an owner decides at once, whatever the time", async () => {
    await using h = await left(unheard, (one) => one.clock.settle());
    await (await h.runtime.openTree({ id: h.tree.id })).idle();
    expect(
      (await h.runtime.threads.executions(h.tree.id, PAGE)).rows.map(({ settled }) => settled?.outcome),
    ).toEqual(["cancelled", "completed"]);
  });

  test("C14.4 a wait that is stored outlives its process", async () => {
    await using h = await left(
      {
        scripts: {
          "/root": [spawn("worker", "count"), wait({ targets: ["worker"] }), say("seen")],
          "/root/worker": [together(gate("hold"), say("seven"))],
        },
      },
      async (one) => {
        await one.provider.gates.arrived("hold");
        await one.clock.settle();
      },
    );
    const look = new Look(h);
    const { thread } = await h.runtime.threads.show(h.tree.id);
    expect(thread.activity.kind).toBe("unsettled");
    const runs = await look.view((view) => view.runsOf(h.tree.id, PAGE).rows);
    expect(runs.map(({ status }) => status)).toEqual(["waiting"]);
  });

  test("S1-67 C14.1 a settle that lands while somebody reconciles stands", async () => {
    await using h = await harness({ store, scripts: { "/root": [together(gate("hold"), say("done"))] } });
    await h.runtime.threads.continue(h.tree.id, "go");
    await held(h);
    await h.clock.settle();
    // It has looked, and takes the run for lost; then the real outcome comes.
    const { tree } = h.tree.control;
    const run = await h.store.read((view) => view.openRuns(h.tree.id)[0]!);
    h.provider.gates.open("hold");
    await h.tree.idle();
    await tree.transact((tx) => recoverUnowned(tx, 0));
    expect(await h.store.read((view) => view.run(run.id)?.status)).toBe("completed");
    // And a tree that somebody owns is that one's business.
    await using other = await h.newRuntime({ provenDead: () => false });
    expect((await other.threads.show(h.tree.id)).thread.status).toBe("open");
    expect(h.tree.owned).toBe(true);
  });

  test("S1-28 C3.2 there is nothing to attach to: the way on is another execution", async () => {
    await using h = await abandoned(midRun);
    const { threads } = h.runtime;
    const before = await h.store.read((view) => view.runsOf(h.tree.id, PAGE).rows.map(({ id }) => id));
    await threads.continue(h.tree.id, "go on");
    await (await h.runtime.openTree({ id: h.tree.id })).idle();
    const after = await h.store.read((view) => view.runsOf(h.tree.id, PAGE).rows.map(({ id }) => id));
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after).toHaveLength(before.length + 1);
  });

  test("S0-23 X-12 C1.15 a fork's transfer and its draft outlive the process", async () => {
    await using h = await harness({ store, scripts: { "/root": [repeat(say("yes"))] } });
    await h.ask("one");
    await h.ask("two, word for word");
    const { thread, transfer } = await h.runtime.threads
      .fork(h.tree.id, { at: { kind: "message", seq: 4 } })
      .catch(async () => h.runtime.threads.fork(h.tree.id, { at: { kind: "message", seq: 3 } }));
    await h.crash();
    const { threads } = h.runtime;
    expect((await threads.transfers(thread.id, PAGE)).rows).toEqual([transfer]);
    expect(transfer.status).toBe("pending");
    expect(await threads.draft(thread.id)).toMatchObject({
      text: "two, word for word",
      clearedAt: null,
    });
    await threads.continue(thread.id, "three");
    await (await h.runtime.openTree({ id: thread.id })).idle();
    expect((await threads.transfers(thread.id, PAGE)).rows).toMatchObject([
      { id: transfer.id, status: "consumed" },
    ]);
    expect(await threads.draft(thread.id)).toBeNull();
  });
});
