/** Rolling a thread back, and taking that back, on providers whose loop is ours (C9, S3): everything is real but the provider. */
import { describe, expect, test } from "vitest";
import type { MailId } from "../../src/protocol/ids.ts";
import type { RollbackTo } from "../../src/threads/rollback.ts";
import { gate, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { scripted, type ScriptedProvider } from "../../src/providers/scripted/provider.ts";
import type { Fault } from "../../src/testing/faulty-store.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const echo = (name: string) => repeat(say((context) => `${name} took ${context.inputs.at(-1)}`));
const ordinal = (to: number): { readonly to: RollbackTo } => ({ to: { kind: "ordinal", ordinal: to } });
const sent = (provider: ScriptedProvider): string =>
  JSON.stringify(provider.requests("/root").at(-1)!.messages);

/** A thread on `scripted` (A) with `b` beside it. */
async function open(
  store: (typeof STORES)[number],
): Promise<{ h: Harness; b: ScriptedProvider; look: Look }> {
  const b = scripted({ "/root": [echo("B")] });
  const h = await harness({ store, scripts: { "/root": [echo("A")] }, others: { b } });
  return { h, b, look: new Look(h) };
}

async function run(
  h: Harness,
  message: string,
  provider?: string,
  thread: string = h.tree.id,
): Promise<void> {
  const tree = thread === h.tree.id ? h.tree : await h.runtime.openTree({ id: thread as typeof h.tree.id });
  const work = await tree.root.send(message, provider === undefined ? {} : { provider });
  expect((await work.outcome()).ending).toBe("completed");
}

async function runs(h: Harness, from: number, to: number, provider?: string): Promise<void> {
  for (let n = from; n <= to; n += 1) await run(h, `q${n};`, provider);
}

const statuses = async (look: Look) => (await look.runs("/root")).map(({ status }) => status);

/** Rows of the thread, without the times that differ from one look to the next. */
async function state(h: Harness) {
  return h.store.read((view) => {
    const { id } = h.tree;
    const all = { limit: 1000 };
    const agent = view.agent(id)!;
    return JSON.parse(
      JSON.stringify({
        thread: agent.thread,
        lastOutcome: agent.lastOutcome,
        runs: view
          .runsOf(id, all)
          .rows.map(({ ordinal, status, rolledBack }) => [ordinal, status, rolledBack?.from]),
        mail: view.mailOf(id, all).rows.map((mail) => mail.state),
        handoffs: view.handoffsOf(id, all).rows.map((handoff) => handoff.status),
        transfers: view.transfersOf(id, all).rows.map((transfer) => transfer.status),
        threads: view.providerThreadsOf(id),
        draft: view.draft(id) ?? null,
        works: view.works(id, all).rows.map((work) => [work.state, work.outcome?.ending]),
      }),
    ) as Record<string, unknown>;
  });
}

/** That every promise about a tree holds, as it stands and since it was last looked at. */
function promises(h: Harness): () => Promise<void> {
  const checker = invariants(h.tree.id);
  return async () => expect(await h.store.read((view) => checker.check(view))).toEqual([]);
}

describe.each(STORES)("a rollback on %s", (store) => {
  test("S3-57 S2-42 C9.3 C2.3 later runs become `rolled_back`, and their transcript stays without being sent", async () => {
    const { h, look } = await open(store);
    await using _ = h;
    await runs(h, 1, 8);
    const before = await h.tree.root.transcript();
    const rolled = await h.runtime.threads.rollBack(h.tree.id, ordinal(5));
    expect(rolled).toMatchObject({ target: 5, runs: [[6, 8]], native: "not_needed", refusal: null });
    const records = await look.runs("/root");
    expect(records.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 5 }, () => "completed"),
      ...Array.from({ length: 3 }, () => "rolled_back"),
    ]);
    expect(records[6]!.rolledBack).toMatchObject({ from: "completed" });
    expect(await h.tree.root.transcript()).toEqual(before);
    const states = (await look.mail("/root")).map((mail) => mail.state);
    expect(states).toEqual([...Array(5).fill("settled"), ...Array(3).fill("superseded")]);
    const record = await h.tree.root.record();
    expect(record.lastOutcome).toMatchObject({ runId: records[4]!.id, status: "completed" });
    expect(await look.events("thread.rolled_back")).toMatchObject([{ data: { target: 5, runs: [[6, 8]] } }]);
    await run(h, "q9;");
    const told = sent(h.provider);
    for (const n of [1, 5, 9]) expect(told).toContain(`q${n};`);
    for (const n of [6, 7, 8]) expect(told).not.toContain(`q${n};`);
    const { coverage } = await h.runtime.threads.get(h.tree.id);
    expect(coverage).toMatchObject([
      {
        native: [
          [1, 5],
          [9, 9],
        ],
        told: [],
        gap: [],
        continuity: "ok",
      },
    ]);
  });

  test("S3-58 S3-59 S3-35 C9.4 C9.5 handoffs and conversations that know of it are given up, others are kept", async () => {
    const { h, b, look } = await open(store);
    await using _ = h;
    await runs(h, 1, 5);
    await runs(h, 6, 7, "b");
    await run(h, "q8;", "scripted");
    await h.runtime.threads.rollBack(h.tree.id, ordinal(5));
    const handoffs = (await h.runtime.threads.handoffs(h.tree.id, { limit: 10 })).rows;
    expect(handoffs.map(({ status, coveredRuns }) => ({ status, coveredRuns }))).toEqual([
      { status: "ready", coveredRuns: [[1, 5]] },
      { status: "superseded", coveredRuns: [[6, 7]] },
    ]);
    expect((await h.runtime.threads.get(h.tree.id)).coverage).toMatchObject([
      { provider: "scripted", active: true, native: [[1, 5]], told: [], continuity: "ok" },
      { provider: "b", continuity: "divergent" },
    ]);
    await run(h, "q9;");
    expect(sent(h.provider)).not.toContain("B took");
    await run(h, "q10;", "b");
    const told = sent(b);
    expect(told).toContain("q5;");
    expect(told).toContain("q9;");
    for (const n of [6, 7, 8]) expect(told).not.toContain(`q${n};`);
    const [newest] = (await look.transfers("provider_handoff")).toReversed();
    expect(newest).toMatchObject({ basePoint: null, staleness: ["divergent"], status: "consumed" });
    expect((await h.runtime.threads.get(h.tree.id)).coverage).toHaveLength(3);
  });

  test("S3-59 a conversation that ended before is untouched, and goes on with a delta", async () => {
    const { h } = await open(store);
    await using _ = h;
    await runs(h, 1, 2);
    await runs(h, 3, 6, "b");
    const [untouched] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
    await h.runtime.threads.rollBack(h.tree.id, ordinal(4));
    expect((await h.store.read((view) => view.providerThreadsOf(h.tree.id)))[0]).toEqual(untouched);
    await run(h, "q7;", "scripted");
    const told = sent(h.provider);
    expect(told).toContain("q4;");
    expect(told).not.toContain("q5;");
    expect((await h.runtime.threads.get(h.tree.id)).coverage[0]).toMatchObject({
      told: [{ runs: [[3, 4]] }],
      gap: [],
    });
  });

  test("S2-41 C9.1 a message that is taken back is the draft, until the next one is sent", async () => {
    const { h } = await open(store);
    await using _ = h;
    await runs(h, 1, 3);
    const items = await h.tree.root.transcript();
    const message = items.find((item) => item.kind === "user" && item.text === "q2;")!;
    const seq = message.index + 1;
    const rolled = await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "before_message", seq } });
    expect(rolled).toMatchObject({ target: 1, draft: { text: "q2;" } });
    expect(await h.runtime.threads.draft(h.tree.id)).toMatchObject({ text: "q2;" });
    await run(h, "q2, better;");
    expect(await h.runtime.threads.draft(h.tree.id)).toBeNull();
    expect(sent(h.provider)).not.toContain("q2;");
  });

  test("C9.7 C2.11 C12 the context of the run that stays is projected again, as the next revision", async () => {
    const { h, look } = await open(store);
    await using _ = h;
    await h.runtime.threads.pin(h.tree.id, "decisions", "tabs");
    await run(h, "q1;");
    await h.runtime.threads.pin(h.tree.id, "decisions", "spaces");
    await runs(h, 2, 3);
    const first = await h.store.read((view) => view.snapshot(h.tree.id, 1)!);
    await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
    const context = (await h.runtime.threads.context(h.tree.id))!;
    expect(context).toMatchObject({
      revision: 4,
      supersedesRevisions: [[2, 3]],
      decisions: first.decisions,
      outcomes: first.outcomes,
    });
    await run(h, "q4;");
    const [newest] = (await look.runs("/root")).toReversed();
    expect(newest!.binding).toMatchObject({ contextRevision: 4, contextDigest: context.digest });
    const next = (await h.runtime.threads.context(h.tree.id))!;
    expect(next.revision).toBe(5);
    expect(next.decisions.map(({ text }) => text)).toEqual(["tabs"]);
    await h.runtime.threads.rollBack(h.tree.id, ordinal(0));
    expect(await h.runtime.threads.context(h.tree.id)).toMatchObject({
      revision: 6,
      supersedesRevisions: [[1, 5]],
      decisions: [],
      outcomes: [],
    });
  });

  test("C9.2 is refused while a run is active, for a run that is gone, and on another provider than was seen", async () => {
    const b = scripted({ "/root": [echo("B")] });
    const scripts = { "/root": [say("one"), together(gate("hold"), say("two")), echo("A")] };
    await using h = await harness({ store, scripts, others: { b } });
    const refused = (code: string) => ({ code });
    await run(h, "q1;");
    const work = await h.tree.root.send("q2;");
    await h.provider.gates.arrived("hold");
    const back = (to: number, more = {}) =>
      h.runtime.threads.rollBack(h.tree.id, { ...ordinal(to), ...more });
    await expect(back(1)).rejects.toMatchObject(refused("ROLLBACK_ACTIVE_RUN"));
    h.provider.gates.open("hold");
    await work.outcome();
    await run(h, "q3;", "b");
    await expect(back(1, { provider: "scripted" })).rejects.toMatchObject(
      refused("ROLLBACK_PROVIDER_CHANGED"),
    );
    await expect(back(4)).rejects.toMatchObject(refused("ROLLBACK_TARGET_INVALID"));
    const before = await state(h);
    expect(await back(3)).toMatchObject({ runs: [] });
    expect(await state(h)).toEqual(before);
    await back(1);
    await expect(back(2)).rejects.toMatchObject(refused("ROLLBACK_TARGET_INVALID"));
  });

  test("MBX-7 C9.2 mail of runs that are taken back is superseded, which nothing undoes", async () => {
    const { h } = await open(store);
    await using _h = h;
    const receipts: MailId[] = [];
    for (const text of ["q1;", "q2;"]) {
      receipts.push((await h.tree.root.tell(`told before ${text}`)).id);
      await run(h, text);
    }
    const states = () => Promise.all(receipts.map(async (id) => (await h.tree.receipt(id))?.state));
    expect(await states()).toEqual(["settled", "settled"]);
    await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
    expect(await states()).toEqual(["settled", "superseded"]);
    await h.runtime.threads.undoRollback(h.tree.id);
    expect(await states()).toEqual(["settled", "superseded"]);
  });

  test("C9.2 works that such runs served end, and those that they asked for go on by themselves", async () => {
    const scripts = {
      "/root": [say("one"), spawn("late", "dig", { fork_turns: "none" }), say("asked"), echo("A")],
      "/root/late": [together(gate("dig"), say("found it"))],
    };
    await using h = await harness({ store, scripts });
    const look = new Look(h);
    const holds = promises(h);
    await run(h, "q1;");
    const work = await h.tree.root.send("q2;");
    await look.until(
      "the root waits for its child",
      async () => (await look.status("/root")) === "awaiting_children",
    );
    await holds();
    await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
    await holds();
    expect(await work.outcome()).toMatchObject({ ending: "cancelled" });
    const child = await look.work("/root/late");
    expect(child).toMatchObject({ state: "running", holds: [] });
    h.provider.gates.open("dig");
    await look.until("the child is done", async () => (await look.work("/root/late")).state === "ended");
    await h.clock.settle();
    await holds();
    // C8.9: kept, listed, and told to nobody.
    const [kept] = await look.transfers("subagent_result");
    expect(kept).toMatchObject({ staleBase: true, status: "resolved_portable" });
    expect((await look.mail("/root")).filter(({ kind }) => kind === "final_answer")).toEqual([]);
    await run(h, "q3;");
    expect(sent(h.provider)).not.toContain("found it");
    await h.runtime.threads.inject(kept!.id);
    await h.clock.settle();
    await holds();
    expect(await statuses(look)).toHaveLength(3);
    await run(h, "q4;");
    expect(sent(h.provider)).toContain("found it");
    expect((await look.transfers("subagent_result"))[0]).toMatchObject({
      staleBase: false,
      status: "consumed",
    });
    await holds();
    await expect(h.runtime.threads.inject(kept!.id)).rejects.toMatchObject({
      code: "TRANSFER_STATE_INVALID",
    });
  });

  test("C8.9 a result that had come and was not read is kept back as well", async () => {
    const scripts = {
      "/root": [
        say("one"),
        spawn("late", "dig", { fork_turns: "none", detached: true, wake: "never" }),
        together(gate("on"), say("asked")),
        echo("A"),
      ],
      "/root/late": [say("found it")],
    };
    await using h = await harness({ store, scripts });
    const look = new Look(h);
    const holds = promises(h);
    await run(h, "q1;");
    const work = await h.tree.root.send("q2;");
    await h.provider.gates.arrived("on");
    await look.until(
      "the result is there",
      async () => (await look.transfers("subagent_result")).length === 1,
    );
    h.provider.gates.open("on");
    await work.outcome();
    await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
    await holds();
    const [kept] = await look.transfers("subagent_result");
    expect(kept).toMatchObject({ staleBase: true });
    await run(h, "q3;");
    expect(sent(h.provider)).not.toContain("found it");
    await h.runtime.threads.inject(kept!.id);
    await run(h, "q4;");
    expect(sent(h.provider)).toContain("found it");
    await holds();
  });
});

describe.each(STORES)("a subagent that is rolled back on %s", (store) => {
  test("C9.5 has what it was born with, also at its start", async () => {
    const scripts = {
      "/root": [spawn("helper", "help;", { fork_turns: "all" }), say("asked"), echo("A")],
      "/root/helper": [echo("helper")],
    };
    await using h = await harness({ store, scripts });
    const look = new Look(h);
    await h.ask("the question;");
    await look.until("both are done", async () => (await look.status("/root/helper")) === "idle");
    await h.clock.settle();
    const helper = await (await h.tree.agent("/root/helper")).record();
    await h.runtime.threads.rollBack(helper.threadId, ordinal(0));
    await (await h.tree.agent("/root/helper")).send("again;").then((work) => work.outcome());
    const told = JSON.stringify(h.provider.requests("/root/helper").at(-1)!.messages);
    expect(told).toContain("the question;");
    expect(told).toContain("again;");
    expect(told).not.toContain("help;");
  });
});

describe.each(STORES)("forks and rollbacks on %s", (store) => {
  test("X-3 C9.8 a fork that is rolled back to its start is told what it inherits again", async () => {
    const { h } = await open(store);
    await using _ = h;
    await runs(h, 1, 2);
    const { thread, transfer } = await h.runtime.threads.fork(h.tree.id);
    await run(h, "f1;", undefined, thread.id);
    await h.runtime.threads.rollBack(thread.id, ordinal(0));
    const transfers = (await h.runtime.threads.transfers(thread.id, { limit: 10 })).rows;
    expect(transfers.map(({ type, status }) => [type, status])).toEqual([
      ["fork", "consumed"],
      ["fork", "pending"],
    ]);
    expect(transfers[1]!.sourcePoint).toEqual(transfer.sourcePoint);
    await run(h, "f2;", undefined, thread.id);
    expect(sent(h.provider)).toContain("q2;");
    expect(sent(h.provider)).not.toContain("f1;");
    // Where a run of its own stays, nothing is told again.
    await run(h, "f3;", undefined, thread.id);
    await h.runtime.threads.rollBack(thread.id, ordinal(2));
    await run(h, "f4;", undefined, thread.id);
    expect(sent(h.provider).match(/q2;/g)).toHaveLength(sent(h.provider).match(/q1;/g)!.length);
    expect((await h.runtime.threads.transfers(thread.id, { limit: 10 })).rows).toHaveLength(2);
  });

  test("X-11 C9.9 a fork tells of the state at its cut, whatever its source does afterwards", async () => {
    const { h } = await open(store);
    await using _ = h;
    await runs(h, 1, 4);
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    await run(h, "q5;");
    await h.runtime.threads.rollBack(h.tree.id, ordinal(2));
    // A fork of the same moment that was taken after the rollback knows nothing of what it took back.
    await run(h, "q6;");
    const late = await h.runtime.threads.fork(h.tree.id);
    await run(h, "f1;", undefined, thread.id);
    const told = sent(h.provider);
    for (const n of [1, 2, 3, 4]) expect(told).toContain(`q${n};`);
    for (const n of [5, 6]) expect(told).not.toContain(`q${n};`);
    expect(told).not.toContain("rolled_back");
    const page = { limit: 100, before: null };
    const { entries } = await h.runtime.threads.transcript(thread.id, page);
    const shown = entries.flatMap((entry) =>
      entry.kind === "item" && entry.item.kind === "user" ? [[entry.item.text, entry.historical]] : [],
    );
    expect(shown).toEqual(["q1;", "q2;", "q3;", "q4;", "f1;"].map((text) => [text, false]));
    await run(h, "f1;", undefined, late.thread.id);
    const others = sent(h.provider);
    for (const n of [1, 2, 6]) expect(others).toContain(`q${n};`);
    for (const n of [3, 4, 5]) expect(others).not.toContain(`q${n};`);
    const [gone] = await new Look(h).runs("/root").then((all) => all.filter(({ ordinal: n }) => n === 3));
    const at = { kind: "run", runId: gone!.id } as const;
    await expect(h.runtime.threads.fork(h.tree.id, { at })).rejects.toMatchObject({
      code: "SOURCE_POINT_ROLLED_BACK",
    });
  });
});

describe.each(STORES)("the undo of a rollback on %s", (store) => {
  test("brings back outcomes, context and what our own conversations know", async () => {
    const { h, look } = await open(store);
    await using _ = h;
    await h.runtime.threads.pin(h.tree.id, "decisions", "tabs");
    await runs(h, 1, 3);
    const before = await state(h);
    const context = (await h.runtime.threads.context(h.tree.id))!;
    await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
    await h.runtime.threads.undoRollback(h.tree.id);
    expect(await statuses(look)).toEqual(["completed", "completed", "completed"]);
    const after = await state(h);
    expect(after["lastOutcome"]).toEqual(before["lastOutcome"]);
    const again = (await h.runtime.threads.context(h.tree.id))!;
    expect(again).toMatchObject({
      revision: 5,
      supersedesRevisions: [[4, 4]],
      decisions: context.decisions,
      outcomes: context.outcomes,
    });
    expect((await h.runtime.threads.get(h.tree.id)).coverage).toMatchObject([{ native: [[1, 3]], gap: [] }]);
    expect(await look.events("thread.restored")).toMatchObject([{ data: { runs: [[2, 3]] } }]);
    await run(h, "q4;");
    for (const n of [1, 2, 3]) expect(sent(h.provider)).toContain(`q${n};`);
    expect(await look.transfers("provider_handoff")).toEqual([]);
  });

  test("is refused when there is nothing to undo, and once a run has started since", async () => {
    const { h } = await open(store);
    await using _ = h;
    await runs(h, 1, 2);
    const undo = () => h.runtime.threads.undoRollback(h.tree.id);
    const refused = { code: "ROLLBACK_TARGET_INVALID" };
    await expect(undo()).rejects.toMatchObject(refused);
    await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
    await undo();
    await expect(undo()).rejects.toMatchObject(refused);
    await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
    await run(h, "q3;");
    await expect(undo()).rejects.toMatchObject(refused);
  });

  test("takes back the draft, and what a fork was to be given again", async () => {
    const { h } = await open(store);
    await using _ = h;
    await runs(h, 1, 2);
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    await run(h, "f1;", undefined, thread.id);
    const tree = await h.runtime.openTree({ id: thread.id });
    const message = (await tree.root.transcript()).find((item) => item.kind === "user")!;
    await h.runtime.threads.rollBack(thread.id, {
      to: { kind: "before_message", seq: message.index + 1 },
    });
    expect(await h.runtime.threads.draft(thread.id)).toMatchObject({ text: "f1;" });
    await h.runtime.threads.undoRollback(thread.id);
    expect(await h.runtime.threads.draft(thread.id)).toBeNull();
    const { rows } = await h.runtime.threads.transfers(thread.id, { limit: 10 });
    expect(rows.map(({ status }) => status)).toEqual(["consumed", "superseded"]);
    await run(h, "f2;", undefined, thread.id);
    const told = sent(h.provider);
    expect(told).toContain("f1;");
    expect(told.match(/this is a fork|q1;/g)).toHaveLength(told.match(/q1;/g)!.length);
    expect(rows).toHaveLength(2);
  });

  test("S3-7 a conversation that was given up stays so; the next run is told everything, and nothing twice", async () => {
    const { h, b } = await open(store);
    await using _ = h;
    await runs(h, 1, 2);
    await run(h, "q3;", "b");
    await run(h, "q4;", "scripted");
    await h.runtime.threads.rollBack(h.tree.id, ordinal(2));
    await h.runtime.threads.undoRollback(h.tree.id);
    await run(h, "q5;");
    for (const n of [3, 4]) expect(sent(h.provider).split(`took q${n};`)).toHaveLength(2);
    await run(h, "q6;", "b");
    for (const n of [1, 2, 3, 4, 5]) expect(sent(b)).toContain(`q${n};`);
  });
});

describe.each(STORES)("a crash in a rollback on %s", (store) => {
  test.each(["crash_before", "crash_after"] as const)(
    "C9.10 %s its commit leaves either state whole",
    async (kind) => {
      const { h } = await open(store);
      await using _ = h;
      await runs(h, 1, 2);
      await run(h, "q3;", "b");
      const before = await state(h);
      const base = h.faulty.writes;
      let writes = 0;
      h.onWrite = (write, what): Fault | null =>
        what === "commit" && write > base && (writes += 1) === 1 ? { kind } : null;
      await expect(h.runtime.threads.rollBack(h.tree.id, ordinal(1))).rejects.toThrow("Crashed");
      h.onWrite = () => null;
      await h.crash();
      if (kind === "crash_before") {
        expect(await state(h)).toEqual(before);
        await h.runtime.threads.rollBack(h.tree.id, ordinal(1));
      }
      expect(await statuses(new Look(h))).toEqual(["completed", "rolled_back", "rolled_back"]);
      await run(h, "q4;");
      const told = sent((h.options.others as { b: ScriptedProvider }).b);
      expect(told).toContain("q1;");
      expect(told).not.toContain("q2;");
    },
  );
});
