import { describe, expect, test } from "vitest";
import type { StepEvent, StepRequest } from "../../../src/protocol/provider-events.ts";
import type { AssistantPart } from "../../../src/protocol/transcript.ts";
import { scripted, type ScriptedProvider } from "../../../src/providers/scripted/provider.ts";
import {
  approve,
  ask,
  call,
  callWithText,
  end,
  fail,
  finish,
  followUp,
  gate,
  ignoreAbort,
  interrupt,
  list,
  pause,
  repeat,
  report,
  say,
  send,
  spawn,
  stall,
  think,
  together,
  usage,
  wait,
} from "../../../src/providers/scripted/script.ts";
import { turn, virtualClock } from "../../../src/testing/virtual-clock.ts";

const request = (change: Partial<StepRequest> = {}): StepRequest => ({
  threadId: "thread_a",
  conversationKey: "tree",
  path: "/root",
  runId: "run_a",
  step: 1,
  attempt: 1,
  ownSteps: 0,
  model: null,
  effort: null,
  messages: [{ role: "user", text: "go" }],
  tools: [],
  maxOutputTokens: null,
  ...change,
});

async function stream(
  provider: ScriptedProvider,
  change: Partial<StepRequest> = {},
  signal = new AbortController().signal,
): Promise<StepEvent[]> {
  const asked = request(change);
  const session = await provider.openSession({ threadId: asked.threadId, path: asked.path, model: null });
  return Array.fromAsync(session.step(asked, signal));
}

async function parts(
  provider: ScriptedProvider,
  change: Partial<StepRequest> = {},
): Promise<AssistantPart[]> {
  const events = await stream(provider, change);
  return events.flatMap((event) => (event.type === "part" ? [event.part] : []));
}

/** The text or the calls of the answer, in short. */
async function answer(provider: ScriptedProvider, change: Partial<StepRequest> = {}): Promise<string> {
  const words = (await parts(provider, change)).map((part) => ("name" in part ? part.name : part.text));
  return words.join(" ");
}

describe("a script", () => {
  test("gives one step a request, by the number of the thread's own answers", async () => {
    const provider = scripted({ "/root": [say("one"), call("look"), say("three")] });
    expect(await answer(provider, { ownSteps: 0 })).toBe("one");
    expect(await answer(provider, { ownSteps: 1, runId: "run_b" })).toBe("look");
    expect(await answer(provider, { ownSteps: 2, runId: "run_b" })).toBe("three");
  });

  test("goes on in another process and repeats a step whose answer was not stored", async () => {
    const script = { "/root": [fail(), say("one"), gate("g"), say("two"), say("three")] };
    const provider = scripted(script);
    provider.gates.openAll();
    expect(await answer(provider, { ownSteps: 1 })).toBe("two");
    expect(await answer(provider, { ownSteps: 1 })).toBe("two");
    expect(await answer(provider, { ownSteps: 2 })).toBe("three");
    expect(provider.unconsumedSteps()).toEqual([]);
  });

  test("is kept apart for each path and each thread, with a fallback for the others", async () => {
    const provider = scripted({ "/root/a": [say("a1"), say("a2")], "*": [say("any")] });
    expect(await answer(provider, { path: "/root/a", threadId: "thread_x" })).toBe("a1");
    expect(await answer(provider, { path: "/root/a", threadId: "thread_y" })).toBe("a1");
    expect(await answer(provider, { path: "/root/b", threadId: "thread_z" })).toBe("any");
  });

  test("that is used up refuses the request and names the path and its length", async () => {
    const provider = scripted({ "/root": [say("one")] });
    await expect(stream(provider, { ownSteps: 1 })).rejects.toMatchObject({
      code: "SCRIPT_EXHAUSTED",
      details: { path: "/root", steps: 1 },
    });
    await expect(stream(provider, { path: "/root/x", threadId: "thread_x" })).rejects.toMatchObject({
      code: "SCRIPT_EXHAUSTED",
      message: expect.stringContaining("/root/x") as string,
    });
  });

  test("that is used up or missing answers otherwise, where that is given", async () => {
    const provider = scripted({ "/root": [say("one")] }, { otherwise: say("fine") });
    expect(await answer(provider, { ownSteps: 1 })).toBe("fine");
    expect(await answer(provider, { path: "/root/x", threadId: "thread_x" })).toBe("fine");
  });

  test("may be a function of the request", async () => {
    const provider = scripted({
      "/root": ({ resultOf, ownSteps }) =>
        resultOf("roll") === undefined
          ? call("roll")
          : say(`${ownSteps}: ${JSON.stringify(resultOf("roll"))}`),
    });
    expect(await answer(provider)).toBe("roll");
    const messages: StepRequest["messages"] = [
      { role: "tool", callId: "c", name: "roll", output: 6, isError: false },
    ];
    expect(await answer(provider, { ownSteps: 1, messages })).toBe("1: 6");
  });

  test("repeats a step some times, or for ever", async () => {
    const provider = scripted({ "/root": [repeat(say("a"), 2), repeat(say("b"))] });
    const answers = [];
    for (const ownSteps of [0, 1, 2, 9]) answers.push(await answer(provider, { ownSteps }));
    expect(answers).toEqual(["a", "a", "b", "b"]);
  });

  test("can be added to while it is played", async () => {
    const provider = scripted({ "/root": [say("one")] });
    provider.append("/root", say("two"));
    expect(await answer(provider, { ownSteps: 1 })).toBe("two");
    expect(() => scripted({ "*": () => end() }).append("*", say("no"))).toThrow("a function");
  });

  test.for([
    [{ "/root": [gate("g")] }, /no answer behind it/],
    [{ "/root": [repeat(say("a")), say("b")] }, /nothing can follow/],
    [{ "/root": [repeat(gate("g"))] }, /cannot repeat for ever/],
    [{ worker: [say("a")] }, /no agent path/],
    [{ "/root/Bad": [say("a")] }, /lowercase/],
  ] as const)("that cannot be played is refused at once (%#)", ([scripts, fault]) => {
    expect(() => scripted(scripts)).toThrow(fault);
  });
});

describe("a step", () => {
  test("is accepted first, then streamed, counted and finished", async () => {
    const provider = scripted({ "/root": [together(think("hmm?"), say("eight..."))] });
    expect(await stream(provider)).toEqual([
      { type: "accepted" },
      { type: "reasoning", text: "hmm?" },
      { type: "part", part: { type: "reasoning", text: "hmm?" } },
      { type: "text", text: "eight..." },
      { type: "part", part: { type: "text", text: "eight..." } },
      {
        type: "usage",
        usage: { inputTokens: 1, cachedInputTokens: 0, outputTokens: 3, reasoningTokens: 1 },
      },
      { type: "finish", reason: "stop" },
    ]);
  });

  test("makes parallel calls with ids that a repeated request repeats and another run does not", async () => {
    const provider = scripted({ "/root": [together(call("a", { x: 1 }), callWithText("b", "{broken"))] });
    const first = await parts(provider);
    expect(first).toEqual([
      { type: "tool_call", callId: expect.any(String) as string, name: "a", input: '{"x":1}' },
      { type: "tool_call", callId: expect.any(String) as string, name: "b", input: "{broken" },
    ]);
    expect(await parts(provider)).toEqual(first);
    const ids = [...first, ...(await parts(provider, { runId: "run_b" }))].map((part) =>
      "callId" in part ? part.callId : "",
    );
    expect(new Set(ids).size).toBe(4);
  });

  test("asks questions and approvals under well-formed ids", async () => {
    const provider = scripted({ "/root": [ask("Which?"), approve("May I?")] });
    const id = expect.stringMatching(/^req_[A-Za-z0-9]{21}$/) as string;
    expect(await parts(provider)).toMatchObject([
      { type: "request", kind: "question", text: "Which?", requestId: id },
    ]);
    const events = await stream(provider, { ownSteps: 1 });
    expect(events).toContainEqual({
      type: "part",
      part: expect.objectContaining({ kind: "approval", text: "May I?", requestId: id }) as AssistantPart,
    });
    expect(events.at(-1)).toEqual({ type: "finish", reason: "tool_calls" });
  });

  test.for([
    [
      spawn("w", "look", { fork_turns: "none" }),
      "spawn_agent",
      { task_name: "w", message: "look", fork_turns: "none" },
    ],
    [send("w", ({ path }) => `from ${path}`), "send_message", { target: "w", message: "from /root" }],
    [followUp("w", "more"), "followup_task", { target: "w", message: "more" }],
    [wait({ targets: ["w"] }), "wait_agent", { targets: ["w"] }],
    [interrupt("w"), "interrupt_agent", { target: "w" }],
    [list(), "list_agents", {}],
    [report({ ok: true }), "report_result", { result: { ok: true } }],
  ] as const)("has a word for each collaboration tool (%#)", async ([step, name, input]) => {
    const [part] = await parts(scripted({ "/root": [step] }));
    expect(part).toMatchObject({ type: "tool_call", name });
    expect(JSON.parse(part?.type === "tool_call" ? part.input : "")).toEqual(input);
  });

  test("sees inputs and tool results since the last answer", async () => {
    const provider = scripted({
      "/root": [
        say((seen) => `${seen.inputs.join("+")} | ${seen.lastToolText} | ${seen.toolResults.length}`),
      ],
    });
    const messages: StepRequest["messages"] = [
      { role: "user", text: "old" },
      { role: "assistant", parts: [] },
      { role: "tool", callId: "c", name: "read", output: { lines: 3 }, isError: false },
      { role: "user", text: "new" },
    ];
    expect(await answer(provider, { messages })).toBe('new | {"lines":3} | 1');
  });

  test("may report other figures, none, or another reason to finish", async () => {
    const provider = scripted({
      "/root": [usage({ inputTokens: 900 }), say("a"), together(usage(null), finish("length"), say("b"))],
    });
    expect(await stream(provider)).toContainEqual({
      type: "usage",
      usage: { inputTokens: 900, cachedInputTokens: 0, outputTokens: 1, reasoningTokens: 0 },
    });
    const second = await stream(provider, { ownSteps: 1 });
    expect(second.some(({ type }) => type === "usage")).toBe(false);
    expect(second.at(-1)).toEqual({ type: "finish", reason: "length" });
  });

  test("may be empty", async () => {
    const types = (await stream(scripted({ "/root": [end()] }))).map(({ type }) => type);
    expect(types).toEqual(["accepted", "usage", "finish"]);
  });
});

describe("failing", () => {
  test("is typed, by default before acceptance, and the retry gets the next step", async () => {
    const provider = scripted({ "/root": [fail({ status: 429, retryAfterMs: 700, times: 2 }), say("ok")] });
    for (const attempt of [1, 2]) {
      await expect(stream(provider, { attempt })).rejects.toMatchObject({
        code: "PROVIDER_OVERLOADED",
        retryable: true,
        retryAfterMs: 700,
        details: { status: 429 },
      });
    }
    expect(await answer(provider, { attempt: 3 })).toBe("ok");
  });

  test("may come after acceptance and after visible output", async () => {
    const provider = scripted({
      "/root": [together(say("half"), fail({ code: "PROVIDER_UNREACHABLE", accepted: true }))],
    });
    const session = await provider.openSession({ threadId: "thread_a", path: "/root", model: null });
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      for await (const event of session.step(request(), new AbortController().signal)) seen.push(event.type);
    };
    await expect(read()).rejects.toMatchObject({ code: "PROVIDER_UNREACHABLE" });
    expect(seen).toEqual(["accepted", "text", "part"]);
  });

  test("by a function is asked again, with the number of failures", async () => {
    const provider = scripted({
      "/root": [
        ({ failures }) => (failures < 2 ? fail({ code: "PROVIDER_REFUSED" }) : say("third")),
        say("next"),
      ],
    });
    await expect(stream(provider)).rejects.toMatchObject({ code: "PROVIDER_REFUSED", retryable: false });
    await expect(stream(provider)).rejects.toMatchObject({ code: "PROVIDER_REFUSED" });
    expect(await answer(provider)).toBe("third");
    expect(await answer(provider, { ownSteps: 1 })).toBe("next");
  });
});

describe("waiting and aborting", () => {
  const reason = new Error("interrupted");

  test("a gate holds the accepted request until it is opened", async () => {
    const provider = scripted({ "/root": [gate("busy"), say("done")] });
    const answered = answer(provider);
    await provider.gates.arrived("busy");
    expect(provider.gates.waiting("busy")).toBe(1);
    provider.gates.open("busy");
    expect(await answered).toBe("done");
  });

  test("a gate may stand before acceptance", async () => {
    const provider = scripted({ "/root": [gate("early", { beforeAcceptance: true }), say("done")] });
    const session = await provider.openSession({ threadId: "thread_a", path: "/root", model: null });
    const iterator = session.step(request(), new AbortController().signal)[Symbol.asyncIterator]();
    let first: StepEvent | undefined;
    const taken = iterator.next().then(({ value }: IteratorResult<StepEvent>) => (first = value));
    await provider.gates.arrived("early");
    await turn();
    expect(first).toBeUndefined();
    provider.gates.open("early");
    await taken;
    expect(first).toEqual({ type: "accepted" });
  });

  test("an abort ends a gate at once, and the same answer is asked for again", async () => {
    const provider = scripted({ "/root": [gate("busy"), say("done")] });
    const controller = new AbortController();
    const answered = stream(provider, {}, controller.signal);
    await provider.gates.arrived("busy");
    controller.abort(reason);
    await expect(answered).rejects.toBe(reason);
    provider.gates.open("busy");
    expect(await answer(provider, { runId: "run_b" })).toBe("done");
  });

  test("a stall ends by abort only, and the next run gets the step that follows", async () => {
    const provider = scripted({ "/root": [stall(), say("after")] });
    const controller = new AbortController();
    const answered = stream(provider, {}, controller.signal);
    await turn();
    controller.abort(reason);
    await expect(answered).rejects.toBe(reason);
    expect(await answer(provider, { runId: "run_b" })).toBe("after");
  });

  test("a deaf script answers late, which counts against no later step", async () => {
    const provider = scripted({ "/root": [ignoreAbort("late"), say("too late"), say("next")] });
    const controller = new AbortController();
    const answered = stream(provider, {}, controller.signal);
    await provider.gates.arrived("late");
    controller.abort(reason);
    provider.gates.open("late");
    expect((await answered).at(-1)).toEqual({ type: "finish", reason: "stop" });
    expect(await answer(provider, { ownSteps: 1 })).toBe("next");
  });

  test("a pause passes on the injected clock and obeys the signal", async () => {
    const clock = virtualClock();
    const provider = scripted({ "/root": [pause(50), say("a"), pause(50), say("b")] }, { clock });
    let done = false;
    const answered = answer(provider).then((text) => {
      done = true;
      return text;
    });
    await clock.advance(49);
    expect(done).toBe(false);
    await clock.advance(1);
    expect(await answered).toBe("a");
    const controller = new AbortController();
    const second = stream(provider, { ownSteps: 1 }, controller.signal);
    await turn();
    controller.abort(reason);
    await expect(second).rejects.toBe(reason);
    expect(clock.pending()).toEqual([]);
  });

  test("an aborted signal is obeyed before anything is accepted", async () => {
    const provider = scripted({ "/root": [say("a")] });
    await expect(stream(provider, {}, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

describe("the provider", () => {
  test("says what it can and which models it has", () => {
    expect(scripted({})).toMatchObject({ loop: "ours", capabilities: { exact: true, parksWaits: true } });
    expect(scripted({}).models()).toBeNull();
    const provider = scripted({}, { models: { small: { efforts: ["low"], collaborates: false }, big: {} } });
    expect(provider.defaultModel).toBe("small");
    expect(provider.models()).toMatchObject({
      small: { efforts: ["low"], collaborates: false, contextWindow: null },
      big: { collaborates: true },
    });
  });

  test("keeps the newest requests of each path", async () => {
    const provider = scripted({ "*": [repeat(say("ok"))] }, { recorded: 2 });
    for (const ownSteps of [0, 1, 2]) await stream(provider, { ownSteps });
    expect(provider.requests("/root").map(({ ownSteps }) => ownSteps)).toEqual([1, 2]);
    expect(provider.requests("/root/x")).toEqual([]);
  });

  test("names the steps that are left", async () => {
    const provider = scripted({
      "/root": [say("one"), call("look"), repeat(say("more"))],
      "/root/never": [stall()],
      "*": [say("any")],
    });
    await stream(provider);
    expect(provider.unconsumedSteps()).toEqual([
      { script: "/root", threadId: "thread_a", step: 2, description: "call look" },
      { script: "/root/never", threadId: null, step: 1, description: "stall" },
    ]);
  });

  test("counts a step whose reader stopped at the finish", async () => {
    const provider = scripted({ "/root": [say("one")] });
    const session = await provider.openSession({ threadId: "thread_a", path: "/root", model: null });
    for await (const { type } of session.step(request(), new AbortController().signal)) {
      if (type === "finish") break;
    }
    expect(provider.unconsumedSteps()).toEqual([]);
  });
});
