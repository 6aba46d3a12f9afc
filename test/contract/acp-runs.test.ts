/** Trees with an agent that speaks ACP at their root: a program of its own, with our tools over the bridge. */
import { describe, expect, test } from "vitest";
import type { RuntimeEvent } from "../../src/protocol/events.ts";
import type { AcpOptions } from "../../src/providers/acp/acp-provider.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type FakeAgent, fakeAgent } from "../support/acp.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const KID = { task_name: "kid", message: "count", fork_turns: "none", provider: "scripted" };
const OPTIONS = [
  { optionId: "yes", kind: "allow_once" },
  { optionId: "no", kind: "reject_once" },
];
const RM = { toolCallId: "c1", title: "rm -rf x", kind: "execute", rawInput: { command: "rm -rf x" } };
const script = (...steps: readonly object[]) => `go <<${JSON.stringify(steps)}>>`;
const until = (what: string, there: () => boolean | Promise<boolean>) =>
  waitUntil(what, there, { steps: 200_000 });

interface Given extends HarnessOptions {
  readonly ways?: object;
  readonly acp?: Partial<AcpOptions>;
}

interface Opened extends AsyncDisposable {
  readonly h: Harness;
  readonly agent: FakeAgent;
  readonly look: Look;
  /** The first event of this kind, also one that was before. */
  readonly event: (type: RuntimeEvent["type"]) => Promise<RuntimeEvent>;
}

async function open(store: (typeof STORES)[number], given: Given = {}): Promise<Opened> {
  const { ways, acp, ...options } = given;
  const agent = fakeAgent();
  const h = await harness({
    store,
    others: { acp: agent.adapter(ways, acp) },
    ...options,
    tree: { provider: "acp", ...options.tree },
    scripts: { "/root/kid": [together(gate("g"), say("seven")), repeat(say("more"))], ...options.scripts },
  });
  return {
    h,
    agent,
    look: new Look(h),
    async event(type) {
      for await (const event of h.tree.events({ after: 0 })) if (event.type === type) return event;
      throw new Error("the tree has ended");
    },
    [Symbol.asyncDispose]: () => h[Symbol.asyncDispose](),
  };
}

describe.for(STORES)("an agent that speaks ACP on %s", { timeout: 120_000 }, (store) => {
  test("RUN-5 it spawns a child on another provider, waits for it, and answers with what it said", async () => {
    await using one = await open(store);
    const { h, look, event } = one;
    const work = await h.tree.root.send(
      script(
        { call: "spawn_agent", input: KID },
        { call: "wait_agent", input: { targets: ["kid"] } },
        { tell: true },
      ),
    );
    await event("run.waiting");
    h.provider.gates.open("g");
    const outcome = await work.outcome();
    expect(outcome).toMatchObject({ ending: "completed", text: expect.stringContaining("seven") });
    expect(await look.outputs("/root", "wait_agent")).toMatchObject([
      { output: { ended_by: "settled", results: [{ agent: "/root/kid", text: "seven" }] }, isError: false },
    ]);
    expect((await look.mail("/root")).at(-1)).toMatchObject({ kind: "final_answer", state: "settled" });
    // It does not report what it has used.
    expect((await h.tree.root.record()).usage.complete).toBe(false);
  });

  test("WAI-7 a wait is put off before its program gives up on it, is taken up again, and is one wait", async () => {
    const clock = virtualClock();
    await using one = await open(store, { acp: { clock }, tree: { limits: { transportWaitMs: 20_000 } } });
    const { h, agent, look, event } = one;
    const wait = { call: "wait_agent", input: { targets: ["kid"], timeout_ms: 600_000 } };
    const work = await h.tree.root.send(
      script({ call: "spawn_agent", input: KID }, wait, { tell: true }, wait, { tell: true }),
    );
    await event("run.waiting");
    await clock.advance(20_000);
    await until("it was told", async () => {
      const root = await h.tree.root.summary();
      return root !== undefined && agent.heard("session/prompt").length === 1 && clock.pending().length === 1;
    });
    h.provider.gates.open("g");
    const outcome = await work.outcome();
    expect(outcome).toMatchObject({ ending: "completed", text: expect.stringContaining("seven") });
    expect(await look.outputs("/root", "wait_agent")).toHaveLength(1);
    expect(await look.events("wait.started")).toHaveLength(1);
  });

  test("WAI-2 an approval stands in the inbox with its tool and arguments, over an answer of any length", async () => {
    await using one = await open(store);
    const { h, event } = one;
    const work = await h.tree.root.send(script({ ask: { toolCall: RM, options: OPTIONS } }, { tell: true }));
    await event("request.opened");
    const [request] = await h.tree.requests();
    expect(request).toMatchObject({
      kind: "approval",
      text: "rm -rf x",
      about: { tool: "execute", input: '{"command":"rm -rf x"}' },
    });
    await h.tree.answer(request!.id, { verdict: "approved", note: null });
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "yes" });
  });

  test("INT-3 an interrupt is told to its program, which goes on with the next run", async () => {
    await using one = await open(store);
    const { h, agent, event } = one;
    const work = await h.tree.root.send(script({ say: "half" }, { hold: true }));
    await event("run.accepted");
    await h.tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    await until("it was told", () => agent.heard("session/cancel").length === 1);
    expect(await h.ask(script({ say: "on" }))).toMatchObject({ ending: "completed", text: "on" });
    expect(agent.heard("session/new")).toHaveLength(1);
  });

  test("INT-3 one that does not listen is ended after the grace time, and taken up again by another process", async () => {
    const clock = virtualClock();
    await using one = await open(store, { ways: { deaf: true, stays: true }, acp: { clock } });
    const { h, agent, event } = one;
    const work = await h.tree.root.send(script({ say: "half" }, { never: true }));
    await event("run.accepted");
    const [pid] = agent.processes();
    await h.tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    await h.clock.advance(h.tree.control.tree.limits.interruptGraceMs);
    await until("it is given time to end", () => clock.pending().length > 0);
    await clock.advance(2_000);
    await until("it is gone", () => !agent.processes().includes(pid!));
    expect(await h.ask(script({ say: "on" }))).toMatchObject({ ending: "completed", text: "on" });
    expect(agent.heard("session/resume")).toHaveLength(1);
  });

  test("C4.15 S1-61 one that was killed is taken up again by the next message, in the same conversation", async () => {
    await using one = await open(store);
    const { h, agent } = one;
    await h.ask(script({ say: "first" }));
    for (const pid of agent.processes()) process.kill(pid, "SIGKILL");
    const second = h.ask(script({ say: "second" }));
    // It may be asked before it is known to be gone, and is tried again then.
    await until("it is taken up again", async () => {
      await h.clock.advance(100);
      return agent.heard("session/resume").length === 1;
    });
    expect(await second).toMatchObject({ ending: "completed", text: "second" });
    expect(agent.heard("session/new")).toHaveLength(1);
  });

  test("REC-4 its program ends with the runtime, though it does not end with its input", async () => {
    const one = await open(store, { ways: { stays: true } });
    await one.h.ask(script({ say: "hello" }));
    expect(one.agent.processes()).toHaveLength(1);
    await one[Symbol.asyncDispose]();
    await until("it is gone", () => one.agent.processes().length === 0);
  });

  test("POL-2 one of less than all effects has a mode that keeps it to these, or there is none", async () => {
    await using one = await open(store, { acp: { modes: { "read-only": ["read"] } } });
    const { h, agent } = one;
    const refused = h.tree.root.spawn("w", "look", { provider: "acp", effects: [] });
    await expect(refused).rejects.toMatchObject({
      code: "POLICY_UNMET",
      details: { provider: "acp", effects: [] },
    });
    const { work } = await h.tree.root.spawn("r", script({ say: "read it" }), {
      provider: "acp",
      effects: ["read"],
    });
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "read it" });
    expect(agent.heard("session/set_mode")).toMatchObject([{ params: { modeId: "read-only" } }]);
  });

  test("RES-8 one that speaks another version of the protocol is told as such, with the command to run", async () => {
    await using one = await open(store, { ways: { version: 2 } });
    expect(await one.h.ask("go")).toMatchObject({
      ending: "failed",
      error: {
        code: "LOAD_FAILED",
        message: expect.stringMatching(/version_unsupported.*speaks version 2 of ACP.*run: /),
      },
    });
  });

  test("RUN-4 a failure that is told as a good end settles the run as one, with the program's words", async () => {
    await using one = await open(store);
    const inError = { codex: { threadStatus: { type: "systemError" } } };
    const outcome = await one.h.ask(
      script(
        { update: { sessionUpdate: "session_info_update", _meta: inError } },
        { say: "the model is gone" },
      ),
    );
    expect(outcome).toMatchObject({
      ending: "provider_error",
      error: { message: expect.stringContaining("the model is gone") },
    });
  });

  test("BUD-2 what it says that it has used is counted", async () => {
    await using one = await open(store);
    const usage = { inputTokens: 7, outputTokens: 2, totalTokens: 9 };
    await one.h.ask(script({ say: "x" }, { end: { stopReason: "end_turn", usage } }));
    expect((await one.h.tree.root.record()).usage).toMatchObject({
      inputTokens: 7,
      outputTokens: 2,
      complete: true,
    });
  });
});
