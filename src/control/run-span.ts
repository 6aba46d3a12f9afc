/**
 * The span of a run: `invoke_agent`, linked to the spans that asked for its works, in whatever process those were (OBS-2).
 * A run that was parked and goes on has a span for each time that it is driven. What a store that fails cannot tell is left
 * out: no run ends for the sake of its span.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunRecord } from "../protocol/run.ts";
import { endSpan, type Link, linkTo, type Span, startSpan, usageAttributes } from "../platform/telemetry.ts";
import type { Tree } from "./tree.ts";

export async function startRunSpan(tree: Tree, agent: AgentRecord, run: RunRecord): Promise<Span> {
  const { threadId, path, config } = agent;
  return startSpan(
    tree.shared.tracer,
    `invoke_agent ${path}`,
    {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.id": threadId,
      "gen_ai.agent.name": path,
      "gen_ai.conversation.id": threadId,
      "gen_ai.provider.name": config.provider,
      ...(run.model === null ? {} : { "gen_ai.request.model": run.model }),
      "coppice.run.id": run.id,
    },
    { links: await causeLinks(tree, run) },
  );
}

/** The spans that asked, also where a notice asks again after a lost run. */
async function causeLinks(tree: Tree, run: RunRecord): Promise<Link[]> {
  const traces = await tree
    .read((view) => {
      const open = view.openWorksOf(run.threadId);
      const asked = run.causes.flatMap(({ workId, mailId }) =>
        workId === null ? open.filter((work) => work.retryMailId === mailId) : (view.work(workId) ?? []),
      );
      return asked.map(({ trace }) => trace);
    })
    .catch(() => []);
  return [...new Set(traces)].flatMap(linkTo);
}

/** Ends it with what this drive has added to the run, which may have been driven before and may go on later. */
export async function endRunSpan(tree: Tree, span: Span, before: RunRecord): Promise<void> {
  const run = (await tree.read((view) => view.run(before.id)).catch(() => undefined)) ?? before;
  const failed = run.status === "failed" && run.error !== null;
  const attributes = usageAttributes({
    inputTokens: run.usage.inputTokens - before.usage.inputTokens,
    cachedInputTokens: run.usage.cachedInputTokens - before.usage.cachedInputTokens,
    outputTokens: run.usage.outputTokens - before.usage.outputTokens,
    reasoningTokens: run.usage.reasoningTokens - before.usage.reasoningTokens,
  });
  endSpan(
    span,
    { attributes, ...(failed ? { failure: { type: run.error.code, message: run.error.message } } : {}) },
    tree.redact,
  );
}
