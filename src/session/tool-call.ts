/**
 * One call of a tool of ours, within a span, cut off when the run is stopped or its time is used up. In the wrap-up step,
 * which is offered no tools, none is carried out, whatever the model asks for (RUN-3).
 */
import type { ToolInvocation, ToolOutcome } from "../protocol/tool.ts";
import type { RunPorts } from "./ports.ts";
import type { Session } from "./session.ts";

export async function executeTool(
  session: Session,
  ports: RunPorts,
  signal: AbortSignal,
  call: ToolInvocation,
): Promise<ToolOutcome> {
  const run = session.run!;
  if (run.wrapUpOffered) return { kind: "result", output: LAST_STEP, isError: true };
  return ports.span(
    `execute_tool ${call.name}`,
    {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": call.name,
      "gen_ai.tool.call.id": call.callId,
      "gen_ai.tool.type": "function",
    },
    () => {
      const either = AbortSignal.any([signal, ports.timeUp]);
      const context = {
        agent: session.agent,
        runId: run.id,
        step: run.steps,
        signal: either,
        lifetime: session.lifetime,
      };
      return withinTime(ports.toolHost.execute(call, context), ports.timeUp);
    },
  );
}

/** What a tool has returned when the time of its run is used up; what it returns later is let go. */
async function withinTime(outcome: Promise<ToolOutcome>, timeUp: AbortSignal): Promise<ToolOutcome> {
  const over = Promise.withResolvers<ToolOutcome>();
  const cut = (): void => over.resolve({ kind: "result", output: CUT_OFF, isError: true });
  timeUp.addEventListener("abort", cut, { once: true });
  if (timeUp.aborted) cut();
  outcome.catch(() => undefined);
  try {
    return await Promise.race([over.promise, outcome]);
  } finally {
    timeUp.removeEventListener("abort", cut);
  }
}

const LAST_STEP = "This is the last step of this run and no tools can be called: say what you have.";

const CUT_OFF =
  "Cut off: the time allowed for this run is used up. What the tool had begun may or may not have happened.";
