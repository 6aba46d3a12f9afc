/**
 * Calls of a host's own tools: what they get, and what becomes of what they return or throw.
 *
 * - W1 A tool that fails is an error result, never a failed run; its text is redacted and bounded (SEC-3).
 * - W2 No output above `mailInlineBytes` goes into a transcript: it is kept as an artifact, head and tail stand for it.
 */
import { type AgentRecord, type Effect, effectsOf } from "../protocol/agent.ts";
import { CoppiceError, describeError, RejectedError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";
import type { ToolContext, ToolInvocation, ToolOutcome } from "../protocol/tool.ts";
import { sha256 } from "../platform/digest.ts";
import type { Redact } from "../platform/redact.ts";
import { byteLength, headBytes, tailBytes } from "../platform/text.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { startProcess } from "../control/processes.ts";
import type { OwnTool } from "./define-tool.ts";
import { answerOf, type ToolAnswer } from "./tool-answer.ts";

const ERROR_BYTES = 2048;

/** Effects of a tool that an agent may not have. */
export function deniedEffects(tool: OwnTool, agent: AgentRecord): readonly Effect[] {
  return effectsOf(tool).filter((effect) => !agent.config.effects.includes(effect));
}

/** @throws RejectedError `AUTHORITY_ESCALATION_DENIED`. */
export function requireEffects(tool: OwnTool, agent: AgentRecord): void {
  const denied = deniedEffects(tool, agent);
  if (denied.length === 0) return;
  throw new RejectedError(
    "AUTHORITY_ESCALATION_DENIED",
    `${tool.name} may ${denied.join(", ")}, which you may not; do without it or say so in your answer.`,
    { tool: tool.name, denied: [...denied], allowed: [...agent.config.effects] },
  );
}

export async function callOwnTool(
  tool: OwnTool,
  call: ToolInvocation,
  input: Record<string, unknown>,
  context: ToolContext,
  control: AgentControl,
  redact: Redact,
): Promise<ToolOutcome> {
  const { agent, runId, step, signal } = context;
  let answer: ToolAnswer;
  try {
    const value = await tool.call(input, {
      signal,
      get lifetime() {
        return lifetimeOf(context, control);
      },
      startProcess: (spec) =>
        startProcess(control.tree, { threadId: agent.threadId, runId }, spec, lifetimeOf(context, control)),
      path: agent.path,
      threadId: agent.threadId,
      runId,
      idempotencyKey: `${agent.threadId}:${runId}:${step}:${call.callId}`,
      workspace: agent.config.workspace,
    });
    answer = answerOf(value);
  } catch (error) {
    if (signal.aborted || CoppiceError.is(error)) throw error;
    const text = headBytes(redact(`${tool.name} failed: ${describeError(error)}`), ERROR_BYTES);
    return { kind: "result", output: { error: text }, isError: true };
  }
  return { kind: "result", output: await bounded(control, agent, answer), isError: false };
}

/** But for the reference's profile, what a tool has started ends with an interrupt of its run (INT-3). */
function lifetimeOf(context: ToolContext, control: AgentControl): AbortSignal {
  const lifetime = context.lifetime();
  if (control.tree.profile.processesOutliveInterrupts) return lifetime;
  return AbortSignal.any([context.signal, lifetime]);
}

async function bounded(
  control: AgentControl,
  agent: AgentRecord,
  { text, isText }: ToolAnswer,
): Promise<Json> {
  const bytes = byteLength(text);
  const { limits, profile } = control.tree;
  if (bytes <= limits.mailInlineBytes) return isText ? text : (JSON.parse(text) as Json);
  const artifact =
    profile.richOutputs && bytes <= limits.messageBytes ? await keep(control, agent, text, bytes) : null;
  return {
    shortened: true,
    bytes,
    head: headBytes(text, limits.artifactHeadBytes),
    tail: tailBytes(text, limits.artifactTailBytes),
    ...(artifact === null ? {} : { artifact }),
  };
}

function keep(control: AgentControl, agent: AgentRecord, text: string, bytes: number): Promise<string> {
  const { provider } = agent.config;
  return control.tree.transact((tx) => {
    const id = tx.id("art");
    const artifact = { id, treeId: tx.treeId, bytes, digest: sha256(text), text, provider };
    tx.store.putArtifact({ ...artifact, createdAt: tx.now });
    return id;
  });
}
