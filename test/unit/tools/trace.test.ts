/** The span of a call stands in the work that it asks for, so that the child's run can be linked to it. */
import { TracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace";
import { expect, test } from "vitest";
import { call, say, spawn } from "../../../src/providers/scripted/script.ts";
import { harness } from "../../support/harness.ts";

test("spawn and follow-up carry the span of their call, without any context manager", async () => {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  await using h = await harness({
    scripts: {
      "/root": [
        spawn("worker", "count"),
        call("wait_agent", { targets: ["worker"] }),
        call("followup_task", { target: "worker", message: "again" }),
        call("wait_agent", { targets: ["worker"] }),
        say("done"),
      ],
      "/root/worker": [say("seven"), say("eight")],
    },
    runtime: { tracer: provider.getTracer("test") },
  });
  await h.ask("go");
  const { rows } = await h.tree.works();
  const spans = exporter.getFinishedSpans();
  const idOf = (name: string): string | undefined =>
    spans.find((span) => span.name === name)?.spanContext().spanId;
  expect(rows.map((work) => work.trace?.split("-")[2] ?? null)).toEqual([
    null,
    idOf("execute_tool spawn_agent"),
    idOf("execute_tool followup_task"),
  ]);
  const runs = spans.filter((span) => span.name === "invoke_agent /root/worker");
  expect(runs.map((run) => run.links[0]?.context.spanId)).toEqual([
    idOf("execute_tool spawn_agent"),
    idOf("execute_tool followup_task"),
  ]);
});
