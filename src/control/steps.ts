/** Steps of a run: what a response has said and asked for, stored before anything that follows from it (RUN-2). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import { addUsage, type Usage } from "../protocol/usage.ts";
import type { AskedAbout } from "../protocol/wait.ts";
import { chargeRun } from "./charge.ts";
import { expireRequest } from "./requests.ts";
import { type Accepted, appendItems, currentRun, shortRunText, textOf } from "./runs.ts";
import type { Transaction } from "./transaction.ts";

/** A model request has been answered: its parts and usage, stored before anything that follows from it (RUN-2). */
export function recordStep(
  tx: Transaction,
  runId: RunId,
  body: Extract<ItemBody, { kind: "assistant" }>,
  usage: Usage,
): Accepted {
  let run = currentRun(tx, runId);
  const agent = tx.agent(run.threadId);
  const appended = appendItems(tx, agent, run, [body]);
  run = chargeRun(tx, { ...run, steps: run.steps + 1, text: shortRunText(textOf(body)) || run.text }, usage);
  const charged = tx.putAgent(appended.agent, { usage: addUsage(appended.agent.usage, usage) });
  openParts(tx, charged, run, body);
  tx.emit(
    "run.step",
    charged,
    { runId },
    { step: run.steps, phase: body.phase, tokens: usage.inputTokens + usage.outputTokens },
  );
  return { agent: tx.agent(run.threadId), run, items: appended.items };
}

/** Calls that come while others of the newest step are open: they are of that step too. */
export function joinStep(
  tx: Transaction,
  runId: RunId,
  body: Extract<ItemBody, { kind: "assistant" }>,
): Accepted {
  const run = currentRun(tx, runId);
  // A step's number is the count of those before it.
  const at = { ...run, steps: run.steps - 1 };
  const { agent, items } = appendItems(tx, tx.agent(run.threadId), at, [body]);
  openParts(tx, agent, run, body);
  return { agent: tx.agent(run.threadId), run, items };
}

function openParts(
  tx: Transaction,
  agent: AgentRecord,
  run: RunRecord,
  { parts }: Extract<ItemBody, { kind: "assistant" }>,
): void {
  for (const part of parts) {
    if (part.type === "request") {
      openRequest(tx, tx.agent(agent.threadId), run, part);
      // The last step waits for nobody (RUN-3).
      if (run.wrapUpOffered) expireRequest(tx, part.requestId);
    }
    if (part.type === "tool_call")
      tx.emit("tool.called", agent, { runId: run.id }, { callId: part.callId, tool: part.name });
  }
}

/** A question or an approval of a run, which it waits for. */
export function openRequest(
  tx: Transaction,
  agent: AgentRecord,
  run: RunRecord,
  part: {
    readonly callId: string;
    readonly requestId: `req_${string}`;
    readonly kind: "question" | "approval";
    readonly text: string;
    readonly about?: AskedAbout;
    readonly outside?: true;
  },
): void {
  const { about, outside } = part;
  tx.store.putRequest({
    id: part.requestId,
    treeId: tx.treeId,
    threadId: agent.threadId,
    runId: run.id,
    callId: part.callId,
    kind: part.kind,
    text: part.text,
    ...(about === undefined ? {} : { about }),
    ...(outside === undefined ? {} : { outside }),
    status: "pending",
    answer: null,
    createdAt: tx.now,
    answeredAt: null,
  });
  tx.putAgent(agent, { openRequests: agent.openRequests + 1 });
  tx.emit("request.opened", agent, { runId: run.id }, { requestId: part.requestId, kind: part.kind });
}
