/** C8.3, C8.6, SPN-5: what subagents are told of their parents, and what comes back, as transfers with points and coverage. */
import { describe, expect, onTestFinished, test } from "vitest";
import { mute, turnFork } from "../../src/providers/scripted/native/provider.ts";
import { call, fail, gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { handoffOf } from "../../src/lineage/transfer.ts";
import type { TransferRecord } from "../../src/protocol/transfer.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const SECRET = "hunter2-very-secret-value";

async function opened(options: HarnessOptions): Promise<Harness> {
  const h = await harness({ ...options, runtime: { secrets: [SECRET], ...options.runtime } });
  onTestFinished(() => h[Symbol.asyncDispose]());
  return h;
}

async function textOf(h: Harness, transfer: TransferRecord) {
  const id = handoffOf(transfer);
  return id === null ? undefined : look(h).view((view) => view.handoff(id));
}

const detached = { detached: true, wake: "never" };

describe.each(STORES)("subagents as transfers on %s", (store) => {
  test.for(["all", "none"])(
    "C8.2 C2.5 a child that is closed before its first run is told nothing any more; context: %s",
    async (context) => {
      const h = await opened({
        store,
        runtime: { limits: { running: 1 } },
        scripts: {
          "/root": [
            say("first answer"),
            spawn("busy", "go", { fork_turns: "none", ...detached }),
            spawn("late", "look", { fork_turns: context, ...detached }),
            say("second answer"),
          ],
          "/root/busy": [gate("busy"), say("ok")],
        },
      });
      await h.ask("one");
      await h.ask("two");
      const late = await h.tree.agent("/root/late");
      const { threadId } = await late.record();
      await late.close();
      h.provider.gates.openAll();
      await h.tree.idle();
      const spawned = await look(h).transfers("subagent_spawn");
      expect(spawned.find(({ targetThreadId }) => targetThreadId === threadId)).toMatchObject({
        status: "superseded",
        resolution: null,
      });
      expect(spawned.map(({ status }) => status).toSorted()).toEqual(["consumed", "superseded"]);
    },
  );

  test("C8.3 C1.8 S0-16 S0-63 a spawn names run and step where it was cut, and nothing is built before the first run", async () => {
    const h = await opened({
      store,
      runtime: { limits: { running: 1 } },
      scripts: {
        "/root": [
          say("first answer"),
          spawn("busy", "go", { fork_turns: "none", ...detached }),
          spawn("late", "look", { fork_turns: "all", ...detached }),
          say("second answer"),
          say("third answer"),
        ],
        "/root/busy": [gate("busy"), say("ok")],
        "/root/late": [say("seen")],
      },
    });
    await h.ask("one");
    await h.ask("two");
    const late = await (await h.tree.agent("/root/late")).record();
    const spawned = async () =>
      (await look(h).transfers("subagent_spawn")).find(
        ({ targetThreadId }) => targetThreadId === late.threadId,
      )!;
    const run = (await look(h).runs("/root"))[1]!;
    const items = await look(h).items("/root");
    const step = items.findLast(
      (item) => item.kind === "assistant" && JSON.stringify(item).includes('"late'),
    )!;
    expect(await spawned()).toMatchObject({
      status: "pending",
      resolution: null,
      note: "all",
      sourcePoint: {
        threadId: h.tree.id,
        runId: run.id,
        ordinal: 2,
        items: step.index,
        turnItemId: step.index,
        cut: "exclusive",
      },
    });
    expect((await h.runtime.threads.handoffs(late.threadId, { limit: 5 })).rows).toEqual([]);
    expect(late.items).toBe(0);
    // What comes later is not told, however late the child begins.
    await h.ask("three");
    h.provider.gates.open("busy");
    await h.tree.idle();
    const transfer = await spawned();
    const handoff = (await textOf(h, transfer))!;
    const childRun = (await look(h).runs("/root/late"))[0]!;
    const said = (text: string) => items.find((item) => JSON.stringify(item).includes(`"${text}"`))!.index;
    expect(transfer).toMatchObject({
      status: "consumed",
      targetRunId: childRun.id,
      targetProvider: "scripted",
    });
    expect(handoff).toMatchObject({
      sourceThreadId: h.tree.id,
      threadId: late.threadId,
      targetRunId: childRun.id,
      toProviderThreadId: childRun.providerThreadId,
      coveredRuns: [[1, 2]],
      coveredRanges: [[said("one"), said("two") + 1]],
      payload: { items: 3, omittedItemIds: [] },
      status: "ready",
    });
    expect(handoff.budget.used).toBe(Buffer.byteLength(handoff.summaryText));
    expect(handoff.summaryText).toMatch(/one[^]*first answer[^]*two/);
    expect(handoff.summaryText).not.toMatch(/second answer|three/);
    // A child of our own loop has the messages themselves, and no text in their place.
    const own = await look(h).items("/root/late");
    expect(
      own.slice(0, 3).map((item) => [item.kind, item.runId, "inherited" in item && item.inherited]),
    ).toEqual([
      ["user", null, true],
      ["assistant", null, true],
      ["user", null, true],
    ]);
    expect(own.filter((item) => item.kind === "context" && item.topic === "handoff")).toEqual([]);
    expect(childRun.firstItem).toBe(4);
    expect(childRun.contextHandoffIds).toEqual([handoff.id]);
  });

  test("C8.3 C6.4 C6.12 SPN-5 a child whose provider owns its loop is told by text: pins first, without secrets, once", async () => {
    const native = turnFork({ "/root/worker": [repeat(say("done"))] });
    const h = await opened({
      store,
      others: { native },
      scripts: {
        "/root": [
          call("pin_context", { section: "decisions", text: "use tabs" }),
          say(`the key is ${SECRET}`),
        ],
        "/root/worker": [say("done here too")],
      },
    });
    await h.ask("one");
    const { agent: worker, work } = await h.tree.root.spawn("worker", "look", {
      provider: "native",
      forkTurns: "all",
    });
    await work.outcome();
    const [transfer] = await look(h).transfers("subagent_spawn");
    const { summaryText, payload, budget } = (await textOf(h, transfer!))!;
    const turns = () =>
      native
        .calls("startTurn")
        .map(({ input }) => input as { userMessage: string; preambles: { kind: string; text: string }[] });
    const handoffs = (turn: number) => turns()[turn]!.preambles.filter(({ kind }) => kind === "handoff");
    expect(handoffs(0).map(({ text }) => text)).toEqual([summaryText]);
    expect(summaryText).toMatch(/use tabs[^]*one[^]*the key is/);
    expect(summaryText).not.toContain(SECRET);
    expect(payload.sections).toEqual(["decisions", "dialogue"]);
    expect(budget.limit).toBe(16_000);
    await (await worker.send("again")).outcome();
    expect(handoffs(1)).toEqual([]);
    // Another provider is told of it from the transcript.
    await (await worker.send("and there", { provider: "scripted" })).outcome();
    expect(JSON.stringify(h.provider.requests("/root/worker")[0]!.messages)).toMatch(/one[^]*the key is/);
  });

  test("C8.3 C6.7 C6.8 what has no room is left out, oldest first, and both text and record say so", async () => {
    const native = turnFork({ "*": [repeat(say("done"))] });
    const long = (word: string) => `${word} ${"x".repeat(12_000)}`;
    const h = await opened({
      store,
      others: { native },
      scripted: { models: { small: { contextWindow: 40_000 }, wide: {} } },
      tree: { model: "wide" },
      scripts: {
        "/root": ["a1", "a2", "a3", "a4"].map((word) => say(long(word))),
        "*": [say("ok")],
      },
    });
    for (const word of ["q1", "q2", "q3", "q4"]) await h.ask(word);
    for (const [name, to] of [
      ["text", { provider: "native", forkTurns: "all" }],
      ["small", { model: "small", forkTurns: "all" }],
      ["wide", { model: "wide", forkTurns: "all" }],
    ] as const)
      await (await h.tree.root.spawn(name, "look", to)).work.outcome();
    const told = async (name: string) => {
      const { threadId } = await (await h.tree.agent(`/root/${name}`)).record();
      const transfers = await look(h).transfers("subagent_spawn");
      return (await textOf(
        h,
        transfers.find(({ targetThreadId }) => targetThreadId === threadId)!,
      ))!;
    };
    for (const name of ["text", "small"]) {
      const { summaryText, payload, budget } = await told(name);
      expect(payload.omittedItemIds.length).toBeGreaterThan(0);
      expect(budget.used).toBeLessThanOrEqual(budget.limit);
      expect(summaryText).toContain("== Left out ==");
      expect(summaryText).toContain("a4");
      expect(summaryText).not.toContain("a1 ");
    }
    const small = JSON.stringify(h.provider.requests("/root/small")[0]!.messages);
    expect(small).toMatch(/\d of its messages had no room and are left out/);
    expect(small).not.toContain("a1 ");
    // Of a conversation of its own, as much as its window holds.
    expect((await told("wide")).payload.omittedItemIds).toEqual([]);
    expect(JSON.stringify(h.provider.requests("/root/wide")[0]!.messages)).toContain("a1 ");
  });

  test("C4.9 SPN-5 a provider that takes no context refuses the history, and takes a child without", async () => {
    const native = mute({ "*": [repeat(say("done"))] });
    const h = await opened({
      store,
      others: { native },
      scripts: {
        "/root": [say("first")],
      },
    });
    await h.ask("one");
    for (const [name, forkTurns] of [
      ["all", "all"],
      ["none", "none"],
    ] as const)
      await (await h.tree.root.spawn(name, "look", { provider: "native", forkTurns })).work.outcome();
    const [all, none] = await Promise.all(["/root/all", "/root/none"].map((path) => look(h).works(path)));
    expect(all![0]!.outcome).toMatchObject({
      ending: "provider_error",
      error: { code: "CONTEXT_UNSUPPORTED" },
    });
    expect(none![0]!.outcome).toMatchObject({ ending: "completed" });
    expect(
      (await look(h).transfers("subagent_spawn")).map(({ status, resolution }) => [status, resolution]),
    ).toEqual([
      ["pending", null],
      ["consumed", null],
    ]);
  });

  test("C4.13 SPN-5 a first run that is refused leaves the history to the next, which has it once", async () => {
    const h = await opened({
      store,
      scripts: {
        "/root": [say("first"), spawn("worker", "look", detached), say("started")],
        "/root/worker": [fail({ code: "PROVIDER_REFUSED" }), say("done")],
      },
    });
    await h.ask("one");
    await h.ask("two");
    await h.tree.idle();
    await h.crash();
    const worker = await h.tree.agent("/root/worker");
    await (await worker.send("again")).outcome();
    const texts = h.provider.requests("/root/worker").at(-1)!.messages;
    expect(JSON.stringify(texts).split("[inherited]").length - 1).toBe(2);
    const { threadId } = await worker.record();
    const { rows } = await h.runtime.threads.handoffs(threadId, { limit: 9 });
    expect(rows.map(({ status, deliveredAt }) => [status, deliveredAt !== null])).toEqual([
      ["superseded", false],
      ["ready", true],
    ]);
    await expect(h.runtime.threads.editHandoff(rows[1]!.id, "mine")).rejects.toMatchObject({
      code: "TRANSFER_STATE_INVALID",
    });
  });

  test("C6.3 C9.9 runs that were rolled back before the spawn are not told, those that were later are", async () => {
    const h = await opened({
      store,
      runtime: { limits: { running: 1 } },
      scripts: {
        "/root": [say("a1"), say("a2"), say("a3")],
        "/root/busy": [gate("busy"), say("ok")],
        "*": [say("ok")],
      },
    });
    await h.ask("q1");
    await h.ask("q2");
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    await h.ask("q3");
    const busy = await h.tree.root.spawn("busy", "go", { forkTurns: "none" });
    await h.provider.gates.arrived("busy");
    const late = await h.tree.root.spawn("late", "look", { forkTurns: "all" });
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    h.provider.gates.open("busy");
    await Promise.all([busy, late].map(({ work }) => work.outcome()));
    const request = JSON.stringify(h.provider.requests("/root/late")[0]!.messages);
    expect(request).toMatch(/q1[^]*a1[^]*q3[^]*a3/);
    expect(request).not.toMatch(/q2|a2/);
  });

  test("C8.6 C1.8 S0-17 a result names the run that answered and the answer, and its text is what its mail says", async () => {
    const h = await opened({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), wait({ targets: ["worker"] }), say("done")],
        "/root/worker": [together(say("let me see"), call("list_agents", {})), say(`seven ${SECRET}`)],
      },
    });
    await h.ask("go");
    await h.tree.idle();
    const [transfer] = await look(h).transfers("subagent_result");
    const [run] = await look(h).runs("/root/worker");
    const items = await look(h).items("/root/worker");
    const answer = items.findLast((item) => item.kind === "assistant")!.index;
    expect(transfer!.sourcePoint).toMatchObject({
      threadId: run!.threadId,
      runId: run!.id,
      ordinal: 1,
      items: items.length,
      turnItemId: answer,
      cut: "inclusive",
    });
    const handoff = (await textOf(h, transfer!))!;
    const mail = (await look(h).mail("/root")).find(({ kind }) => kind === "final_answer")!;
    expect(handoff.summaryText).toBe(mail.content.text.replace(SECRET, "***"));
    expect(handoff).toMatchObject({
      fromProviderThreadIds: [run!.providerThreadId],
      coveredRuns: [[1, 1]],
      coveredRunOrdinals: { from: 1, to: 1 },
      coveredRanges: [[answer, answer + 1]],
      payload: { sections: ["dialogue"], items: 1 },
      budget: { used: Buffer.byteLength(mail.content.text), unit: "bytes" },
    });
  });

  test("C8.6 MBX-9 of a result that is too long the handoff holds what the mail does, and of a failed one each step", async () => {
    const h = await opened({
      store,
      scripts: {
        "/root": [
          together(spawn("long", "count"), spawn("fails", "count")),
          wait({ targets: ["long", "fails"], mode: "all" }),
          say("done"),
        ],
        "/root/long": [say(`begin ${"y".repeat(80_000)} end`)],
        "/root/fails": [call("list_agents", {}), fail({ code: "PROVIDER_REFUSED" })],
      },
    });
    await h.ask("go");
    await h.tree.idle();
    const results = await look(h).transfers("subagent_result");
    const mails = (await look(h).mail("/root")).filter(({ kind }) => kind === "final_answer");
    for (const transfer of results) {
      const handoff = (await textOf(h, transfer))!;
      const mail = mails.find(({ resultOf }) => resultOf === transfer.workId)!;
      expect(handoff.summaryText).toBe(mail.content.text);
      if (transfer.note === "completed")
        expect(handoff.summaryText).toMatch(/^begin [^]*bytes left out[^]* end$/);
      else {
        const items = await look(h).items("/root/fails");
        const run = (await look(h).runs("/root/fails"))[0]!;
        expect(handoff.coveredRanges).toEqual([[run.firstItem, items.length]]);
        expect(handoff.payload).toMatchObject({ sections: ["failures"], items: 0 });
      }
    }
  });
});
