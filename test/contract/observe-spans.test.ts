import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  StackContextManager,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { describe, expect, onTestFinished, test } from "vitest";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import {
  fail,
  followUp,
  gate,
  repeat,
  say,
  spawn,
  together,
  usage,
  wait,
} from "../../src/providers/scripted/script.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

/** A tracer of one process, and the spans that have ended there. */
function recording() {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const spans = (name: string): readonly ReadableSpan[] =>
    exporter.getFinishedSpans().filter((span) => span.name === name);
  return { tracer: provider.getTracer("test"), spans };
}

const ids = (spans: readonly ReadableSpan[]): string[] => spans.map((span) => span.spanContext().spanId);
const linked = (span: ReadableSpan | undefined): string[] =>
  (span?.links ?? []).map((link) => link.context.spanId);

describe.each(STORES)("spans on %s", (store) => {
  test("OBS-2 have the names, kinds and attributes of the GenAI conventions", async () => {
    const { tracer, spans } = recording();
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), wait({ targets: ["worker"] }), say("done")],
        "/root/worker": [
          together(
            usage({ inputTokens: 40, cachedInputTokens: 30, outputTokens: 7, reasoningTokens: 2 }),
            say("7"),
          ),
        ],
      },
      tree: { model: "large" },
      runtime: { tracer },
    });
    await h.ask("go");
    await waitUntil("all have ended", () =>
      [spans("invoke_agent /root"), spans("invoke_agent /root/worker")].every(({ length }) => length > 0),
    );
    const worker = await (await h.tree.agent("worker")).record();
    const [run] = spans("invoke_agent /root/worker");
    expect(run).toMatchObject({
      kind: SpanKind.INTERNAL,
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.agent.id": worker.threadId,
        "gen_ai.agent.name": "/root/worker",
        "gen_ai.conversation.id": worker.threadId,
        "gen_ai.request.model": "large",
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 2,
      },
    });
    const chats = spans("chat large");
    expect(chats).toHaveLength(4);
    const chat = chats.find((span) => span.parentSpanContext?.spanId === ids([run!])[0]);
    expect(chat).toMatchObject({
      kind: SpanKind.CLIENT,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "large",
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.response.finish_reasons": ["stop"],
      },
    });
    const [tool] = spans("execute_tool spawn_agent");
    const calls = (await h.tree.root.transcript()).flatMap((item) =>
      item.kind === "tool_result" && item.name === "spawn_agent" ? [item.callId] : [],
    );
    expect(tool).toMatchObject({
      kind: SpanKind.INTERNAL,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "spawn_agent",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": calls[0],
      },
    });
    expect(ids(spans("invoke_agent /root"))).toContain(tool!.parentSpanContext?.spanId);
    // What was said stands in no span.
    const attributes = JSON.stringify([run, chat, tool].map((span) => span!.attributes));
    expect(attributes).not.toContain("count");
  });

  test("OBS-2 a child's run is linked to the call that asked for it, not placed under it", async () => {
    const { tracer, spans } = recording();
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "count"),
          wait({ targets: ["worker"] }),
          followUp("worker", "again"),
          say("x"),
          repeat(say("done")),
        ],
        "/root/worker": [say("seven"), say("eight")],
      },
      runtime: { tracer },
    });
    await h.ask("go");
    await h.tree.idle();
    const runs = spans("invoke_agent /root/worker");
    expect(runs.map(linked)).toEqual([
      ids(spans("execute_tool spawn_agent")),
      ids(spans("execute_tool followup_task")),
    ]);
    expect(runs.map((run) => run.parentSpanContext)).toEqual([undefined, undefined]);
  });

  test("OBS-2 the link survives an unload", async () => {
    const { tracer, spans } = recording();
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "count"),
          wait({ targets: ["worker"] }),
          spawn("other", "more"),
          wait({ targets: ["other"] }),
          followUp("worker", "again"),
          repeat(say("done")),
        ],
        "/root/worker": [say("seven"), say("eight")],
        "/root/other": [say("nine")],
      },
      runtime: { tracer, limits: { residents: 1 } },
    });
    await h.ask("go");
    await h.tree.idle();
    const worker = await h.tree.agent("worker");
    const log = await h.tree.log(0, 1000);
    expect(log.filter(({ type, path }) => type === "agent.loaded" && path === worker.path)).toHaveLength(2);
    expect(spans("invoke_agent /root/worker").map(linked)).toEqual([
      [ids(spans("execute_tool spawn_agent"))[0]],
      ids(spans("execute_tool followup_task")),
    ]);
  });

  test("OBS-2 the link survives a restart and another process", async () => {
    const [first, second] = [recording(), recording()];
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(spawn("worker", "count"), spawn("other", "more")), repeat(say("done"))],
        "/root/worker": [together(gate("taken"), say("seven"))],
        "/root/other": [together(gate("before", { beforeAcceptance: true }), say("eight"))],
      },
      tree: { onLostRun: "retry" },
      runtime: { tracer: first.tracer, limits: { residents: 3 } },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("taken");
    await h.provider.gates.arrived("before");
    await waitUntil("the root has answered", async () => (await h.tree.root.status()).kind !== "running");
    await h.crash({ tracer: second.tracer });
    h.provider.gates.openAll();
    expect((await h.tree.work(work.id).outcome()).ending).toBe("completed");
    const asked = first.spans("execute_tool spawn_agent");
    expect(asked).toHaveLength(2);
    const traces = (await look(h).works()).map(({ trace }) => trace);
    // The first was lost after acceptance and asked again by a notice, the other was never accepted.
    await waitUntil("both have run", () => second.spans("invoke_agent /root/other").length === 1);
    expect(linked(second.spans("invoke_agent /root/worker")[0])).toEqual([traces[1]!.split("-")[2]]);
    expect(linked(second.spans("invoke_agent /root/other")[0])).toEqual([traces[2]!.split("-")[2]]);
    expect(new Set(ids(asked))).toEqual(new Set(traces.slice(1).map((one) => one!.split("-")[2])));
    expect(second.spans("execute_tool spawn_agent")).toEqual([]);
  });

  test("OBS-2 a run asked for inside of the host's own span is linked to that", async () => {
    const { tracer, spans } = recording();
    const manager = new StackContextManager().enable();
    context.setGlobalContextManager(manager);
    onTestFinished(() => context.disable());
    await using h = await harness({ store, scripts: { "/root": [say("done")] }, runtime: { tracer } });
    const outer = tracer.startSpan("request");
    const sent = context.with(trace.setSpan(context.active(), outer), () => h.tree.root.send("go"));
    await (await sent).outcome();
    await waitUntil("it has ended", () => spans("invoke_agent /root").length === 1);
    expect(linked(spans("invoke_agent /root")[0])).toEqual([outer.spanContext().spanId]);
  });

  test("OBS-2 C21 how a run gets its context has spans under the run's, and a lease one of its own", async () => {
    const { tracer, spans } = recording();
    const script = { "*": [repeat(say("ok"))] };
    const native = turnFork(script);
    await using h = await harness({
      store,
      scripts: script,
      others: { native },
      tree: { provider: "native" },
      runtime: { tracer },
    });
    const { threads } = h.runtime;
    await h.ask("one");
    const { thread, transfer } = await threads.fork(h.tree.id, { policy: { strategy: "native" } });
    await (await threads.continue(thread.id, "on")).outcome();
    await threads.mergeBack(thread.id);
    await h.ask("two");
    await h.clock.settle();
    const runs = ids([...spans("invoke_agent /root")]);
    for (const name of ["resolveStartContext", "fork.native", "handoff.build", "transfer.resolve"]) {
      const found = spans(name);
      expect(found.length).toBeGreaterThan(0);
      for (const span of found) expect(runs).toContain(span.parentSpanContext?.spanId);
    }
    expect(spans("resolveStartContext").map(({ attributes }) => attributes["coppice.start.plan"])).toEqual([
      "none",
      "native_fork",
      "none",
      "none",
    ]);
    expect(spans("fork.native")[0]!.attributes).toEqual({
      "coppice.transfer.id": transfer.id,
      "coppice.fork.made": true,
    });
    const [merge] = await look(h).transfers("merge_back");
    expect(spans("transfer.resolve")[0]!.attributes).toEqual({ "coppice.transfer.ids": [merge!.id] });
    expect(spans("thread.lease").map(({ attributes }) => attributes["coppice.tree.id"])).toEqual([
      h.tree.id,
      thread.id,
      thread.id,
    ]);
    // Another process is in the way.
    const other = await h.newRuntime({ provenDead: () => false });
    await expect(other.openTree({ id: h.tree.id })).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(spans("thread.lease").at(-1)).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { "error.type": "NOT_OWNER" },
    });
  });

  test("OBS-2 SEC-3 a failure is on its span, by code and without secrets", async () => {
    const { tracer, spans } = recording();
    const secret = "sk-abcdefghijklmnopqrstuvwxyz";
    await using h = await harness({
      store,
      scripts: { "/root": [fail({ code: "PROVIDER_REFUSED", message: `bad key ${secret}, house word` })] },
      runtime: { tracer, secrets: ["house word"] },
    });
    const outcome = await h.ask("go");
    expect(outcome.ending).toBe("provider_error");
    await waitUntil("it has ended", () => spans("invoke_agent /root").length === 1);
    for (const name of ["invoke_agent /root", "chat scripted"]) {
      const [span] = spans(name);
      expect(span).toMatchObject({
        status: { code: SpanStatusCode.ERROR },
        attributes: { "error.type": "PROVIDER_REFUSED" },
      });
      expect(JSON.stringify([span!.status, span!.attributes, span!.events])).not.toMatch(/sk-abc|house word/);
    }
  });
});
