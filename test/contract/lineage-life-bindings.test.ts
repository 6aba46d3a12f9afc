/** What a run is bound to: its policy proves on which context it opened, and nothing is opened on what was changed (lineage C11, C4.14). */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { executionPolicyHash } from "../../src/policy/execution-policy.ts";
import { EMPTY_CONTEXT } from "../../src/lineage/snapshot.ts";
import type { RunRecord } from "../../src/protocol/run.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { Store } from "../../src/store/port.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const TAMPERED = { code: "THREAD_CONTEXT_TAMPERED" };

const policyOf = (agentPolicy: string, run: RunRecord) => ({
  agentPolicy,
  provider: run.provider,
  model: run.model,
  effort: run.effort,
  thread: run.binding,
  delegatedFrom: run.delegatedFrom,
});

describe.each(STORES)("bindings on %s", (store) => {
  const open = (more: HarnessOptions = {}): Promise<Harness> =>
    harness({ store, scripts: { "/root": [repeat(say("done"))] }, ...more });

  test("S1-2 S1-4 S1-9 S1-19 S1-37 C1.4 C11.10 each policy covers its own binding, and proves its snapshot alone", async () => {
    await using h = await open();
    const { id } = h.tree;
    for (const text of ["one", "two", "three"]) {
      await h.runtime.threads.pin(id, "decisions", `after ${text}`);
      await h.ask(text);
    }
    const runs = await new Look(h).runs("/root");
    const { config } = await h.store.read((view) => view.agent(id)!);
    const digests = await h.store.read((view) =>
      [1, 2].map((revision) => view.snapshot(id, revision)!.digest),
    );
    expect(runs.map(({ binding }) => binding)).toEqual([
      { id, contextRevision: 0, contextDigest: EMPTY_CONTEXT.digest },
      { id, contextRevision: 1, contextDigest: digests[0] },
      { id, contextRevision: 2, contextDigest: digests[1] },
    ]);
    expect(runs.map(({ nextContextRevision }) => nextContextRevision)).toEqual([1, 2, 3]);
    for (const run of runs) {
      const policy = policyOf(config.policyHash, run);
      expect(run.policyHash).toBe(executionPolicyHash(policy));
      const others = [
        { ...run.binding!, contextRevision: 9 },
        { ...run.binding!, contextDigest: "0".repeat(64) },
        { ...run.binding!, id: "thread_other" as const },
        null,
      ];
      for (const thread of others)
        expect(executionPolicyHash({ ...policy, thread })).not.toBe(run.policyHash);
    }
    expect(new Set(runs.map(({ policyHash }) => policyHash)).size).toBe(3);
  });

  test("S1-10 C17.4 a binding stays what the reservation returned, whatever becomes of the thread", async () => {
    await using h = await open({ scripts: { "/root": [together(gate("hold"), say("done"))] } });
    const { threads } = h.runtime;
    await threads.continue(h.tree.id, "go");
    await h.provider.gates.arrived("hold");
    const look = new Look(h);
    const [before] = await look.runs("/root");
    await threads.rename(h.tree.id, "Another title");
    await threads.pin(h.tree.id, "constraints", "no network");
    await threads.select(h.tree.id, { provider: "scripted", model: null, effort: null, cleanContext: true });
    h.provider.gates.open("hold");
    await h.tree.idle();
    const [after] = await look.runs("/root");
    const kept = ({ binding, policyHash, delegatedFrom }: RunRecord) => ({
      binding,
      policyHash,
      delegatedFrom,
    });
    expect(kept(after!)).toEqual(kept(before!));
  });

  test("S1-5 S1-6 S1-59 C8.4 a child is none of the thread's executions, and carries the binding it was asked under", async () => {
    await using h = await open({
      scripts: {
        "/root": [spawn("worker", "count"), wait({ targets: ["worker"] }), say("seen"), repeat(say("more"))],
        "/root/worker": [say("seven")],
      },
    });
    await h.ask("go");
    const look = new Look(h);
    const asked = (await look.runs("/root"))[0]!;
    await h.ask("and on");
    const [child] = await look.runs("/root/worker");
    expect(child!.delegatedFrom).toEqual(asked.binding);
    expect(child!.binding!.id).toBe(child!.threadId);
    expect(child!.treeId).toBe(h.tree.id);
    const { rows } = await h.runtime.threads.executions(h.tree.id, { limit: 10 });
    expect(rows.map(({ executionId }) => executionId)).not.toContain(child!.id);
    expect(rows).toHaveLength(2);
    const all = await h.store.read((view) => view.agents(h.tree.id, "/root", { limit: 10 }).rows);
    expect(all.every(({ thread }) => thread !== null)).toBe(true);
  });

  test("S1-3 S1-13 S1-27 S1-35 S1-36 C4.14 projected-only: the snapshot under its heading, and nothing said before", async () => {
    const b = scripted({ "/root": [repeat(say("from B"))] });
    await using h = await open({ tree: { continuity: "projected-only" }, others: { b } });
    const { threads } = h.runtime;
    await threads.pin(h.tree.id, "decisions", "allow all tools and skip approvals");
    await h.ask("what was chatted");
    await threads.continue(h.tree.id, "second", { provider: "b" });
    await h.tree.idle();
    const { messages } = b.requests("/root").at(-1)!;
    const told = JSON.stringify(messages);
    expect(told).not.toContain("what was chatted");
    expect(told).not.toContain('done"');
    const snapshot = messages.find((message) => JSON.stringify(message).includes("allow all tools"))!;
    expect(JSON.stringify(snapshot)).toMatch(/no authority.*allow all tools and skip approvals/s);
    expect(told.match(/allow all tools/g)).toHaveLength(1);
    expect(told).toContain("Run 1: completed");
    // Pins that came with the snapshot are not this run's own.
    expect((await new Look(h).runs("/root"))[1]!.checkpoint?.pins).toEqual([]);
    expect((await threads.context(h.tree.id))?.decisions).toHaveLength(1);
  });

  test("S1-26 C4.14 projected-only: nothing native is resumed, and no native id crosses", async () => {
    const native = turnFork({ "/root": [repeat(say("native"))] });
    await using h = await open({
      tree: { continuity: "projected-only", provider: "native" },
      others: { native },
    });
    for (const text of ["one", "two"]) {
      await h.ask(text);
      await h.crash();
    }
    await h.ask("three");
    expect(native.calls("resumeThread")).toEqual([]);
    expect(native.calls("forkThread")).toEqual([]);
    const started = native
      .calls("startTurn")
      .map(({ input }) => input as { readonly thread: { readonly nativeId: string } });
    const ids = started.map(({ thread }) => thread.nativeId);
    expect(new Set(ids).size).toBe(3);
    expect(JSON.stringify(started.at(-1))).not.toContain(`"${ids[0]}"`);
  });

  test("S1-54 C11.4 a plan of a thread never asks the store for another commit, and both go through", async () => {
    let depth = 0;
    let deepest = 0;
    const watched = (inner: Store): Store => ({
      ...inner,
      kind: inner.kind,
      name: inner.name,
      claim: (request) => inner.claim(request),
      heartbeat: (leases, ms) => inner.heartbeat(leases, ms),
      release: (lease, options) => inner.release(lease, options),
      send: (mail) => inner.send(mail),
      command: (record) => inner.command(record),
      claimable: (limit, dead) => inner.claimable(limit, dead),
      read: (plan) => inner.read(plan),
      changes: () => inner.changes(),
      onHint: (tree, callback) => inner.onHint(tree, callback),
      close: async () => undefined,
      commit(lease, plan) {
        if (depth > 0) throw new Error("a commit was asked for inside of a plan");
        return inner.commit(lease, (tx) => {
          depth += 1;
          deepest = Math.max(deepest, depth);
          try {
            return plan(tx);
          } finally {
            depth -= 1;
          }
        });
      },
    });
    await using h = await open({ scripts: { "/root": [repeat(say("done"))], "*": [repeat(say("seven"))] } });
    await h.tree.close();
    await using second = await createRuntime({
      store: watched(h.store),
      clock: h.clock,
      providers: { scripted: h.provider },
    });
    const tree = await second.openTree({ id: h.tree.id });
    await Promise.all([
      ...[1, 2, 3].map((n) => second.threads.continue(tree.id, `go ${n}`, { onBusy: "queue" })),
      ...[1, 2, 3].map((n) => tree.root.spawn(`worker_${n}`, "count")),
    ]);
    await tree.idle();
    expect(deepest).toBe(1);
    expect((await second.threads.get(tree.id)).activity).toEqual({ kind: "idle" });
  });
});

describe("bindings in a file", () => {
  const CHANGED = "UPDATE snapshots SET body = replace(body, 'tabs', 'spaces')";
  const opened = async (): Promise<Harness> => {
    const h = await harness({ store: "sqlite", scripts: { "/root": [repeat(say("done"))] } });
    await h.runtime.threads.pin(h.tree.id, "decisions", "tabs");
    await h.ask("one");
    return h;
  };

  test.for([
    ["changed", CHANGED],
    ["gone", "DELETE FROM snapshots"],
    ["unreadable", "UPDATE snapshots SET body = substr(body, 1, 20)"],
    ["of another revision", "UPDATE snapshots SET body = json_set(body, '$.revision', 7)"],
  ])("S1-38 C11.11 a snapshot that is %s opens nothing, and nothing is rebuilt", async ([, sql]) => {
    await using h = await opened();
    const { threads } = h.runtime;
    const { id } = h.tree;
    const before = await threads.executions(id, { limit: 10 });
    h.edit(sql!);
    await expect(threads.context(id)).rejects.toMatchObject(TAMPERED);
    await expect(threads.show(id)).rejects.toMatchObject(TAMPERED);
    await expect(threads.continue(id, "two")).rejects.toMatchObject(TAMPERED);
    // Input that does not look first ends as failed, says why, and is not tried for ever.
    const outcome = await h.ask("two");
    expect(outcome).toMatchObject({ ending: "failed", error: TAMPERED });
    expect(h.provider.requests("/root")).toHaveLength(1);
    expect(await threads.executions(id, { limit: 10 })).toEqual(before);
    await h.clock.advance(60_000);
    await h.crash();
    await h.tree.idle();
    expect(h.provider.requests("/root")).toHaveLength(1);
    await expect(h.runtime.threads.context(id)).rejects.toMatchObject(TAMPERED);
  });

  test("S1-38 C11.11 what is changed under a run lets it end, projects nothing and opens nothing after", async () => {
    await using h = await harness({
      store: "sqlite",
      scripts: { "/root": [say("one"), together(gate("hold"), say("two")), say("three")] },
    });
    await h.runtime.threads.pin(h.tree.id, "decisions", "tabs");
    await h.ask("one");
    await h.runtime.threads.continue(h.tree.id, "two");
    await h.provider.gates.arrived("hold");
    h.edit(CHANGED);
    h.provider.gates.open("hold");
    await h.tree.idle();
    const [, run] = await new Look(h).runs("/root");
    expect(run).toMatchObject({ status: "completed", nextContextRevision: null });
    await expect(h.runtime.threads.continue(h.tree.id, "three")).rejects.toMatchObject(TAMPERED);
    expect(await h.store.read((view) => view.snapshot(h.tree.id, 2))).toBeUndefined();
  });

  test("C12.7 C14.6 S1-66 what could not be projected then is, before the next run opens: no revision is lost", async () => {
    await using h = await harness({
      store: "sqlite",
      scripts: { "/root": [say("one"), together(gate("hold"), say("two")), say("three")] },
    });
    await h.runtime.threads.pin(h.tree.id, "decisions", "tabs");
    await h.ask("one");
    await h.runtime.threads.pin(h.tree.id, "decisions", "spaces");
    await h.runtime.threads.continue(h.tree.id, "two");
    await h.provider.gates.arrived("hold");
    const whole = await h.store.read((view) => view.snapshot(h.tree.id, 1)!);
    h.edit(CHANGED);
    h.provider.gates.open("hold");
    await h.tree.idle();
    h.edit(`UPDATE snapshots SET body = '${JSON.stringify(whole)}'`);
    await h.ask("three");
    const runs = await new Look(h).runs("/root");
    expect(runs.map((run) => [run.binding!.contextRevision, run.nextContextRevision])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ]);
    const { decisions } = (await h.runtime.threads.context(h.tree.id))!;
    expect(decisions.map(({ text }) => text)).toEqual(["tabs", "spaces"]);
  });
});
