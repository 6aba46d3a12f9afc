/** Plain messages, follow-ups, and input of the user (MBX-3, agents.md 22-28). */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { Caller } from "../protocol/tool.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { activity } from "./activity.ts";
import { actingAs } from "./caller.ts";
import { deliver, requireOpen } from "./delivery.ts";
import { refuseRate, requireBudgetLeft, requireQueueRoom, requireRunnable } from "./limits.ts";
import { resolveTarget } from "./resolve-target.ts";
import { requestWork, requireMessage, type RequestInput } from "./request.ts";
import type { Transaction } from "./transaction.ts";

/** Queue-only: never starts a run. Any agent of the tree, the root and oneself are legal targets. */
export function sendMessage(
  tx: Transaction,
  caller: Caller,
  target: string,
  message: string,
): { agent: AgentRecord; mail: MailRecord } {
  requireMessage(tx, message);
  const acting = actingAs(tx, caller);
  const agent = resolveTarget(tx.store, tx.treeId, acting.agent?.path ?? ROOT_PATH, target);
  const mail = deliver(tx, agent, {
    author: acting.author,
    kind: acting.agent === null ? "user" : "message",
    authority: acting.agent === null ? "user" : "agent",
    trigger: false,
    text: message,
  });
  activity(tx, acting, "interacted", agent, null);
  return { agent, mail };
}

export interface FollowUpInput extends RequestInput {
  readonly target: string;
}

/** What can be said against a follow-up before capacity is looked at. */
export function checkFollowUp(tx: Transaction, caller: Caller, input: FollowUpInput) {
  requireMessage(tx, input.message);
  const acting = actingAs(tx, caller);
  const agent = resolveTarget(tx.store, tx.treeId, acting.agent?.path ?? ROOT_PATH, input.target);
  if (agent.parent === null && acting.agent !== null) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      "the root agent cannot be given follow-ups; send it a message.",
      {
        argument: "target",
        value: agent.path,
      },
    );
  }
  requireOpen(agent);
  return { acting, agent };
}

/** Trigger-turn: starts a run of an idle agent, joins the running one at its next step boundary. */
export function followUp(
  tx: Transaction,
  caller: Caller,
  input: FollowUpInput,
  admitted: boolean,
): { agent: AgentRecord; work: WorkRecord } {
  const { acting, agent } = checkFollowUp(tx, caller, input);
  requireAdmissible(tx, agent, admitted);
  const work = requestWork(tx, acting, agent, input, acting.agent === null ? "user" : "new_task");
  activity(tx, acting, "interacted", agent, work);
  return { agent, work };
}

/** A request that would start a run must fit budget, rate and queue; one that joins a run fits already. */
function requireAdmissible(tx: Transaction, agent: AgentRecord, admitted: boolean): void {
  requireBudgetLeft(tx, agent.path);
  if (agent.currentRun !== null) return;
  refuseRate(tx, "runsPerMinute", tx.tree().recentRuns, tx.limits.runsPerMinute);
  if (admitted || agent.parent === null) return;
  requireRunnable(tx, agent.parent);
  requireQueueRoom(tx, agent.threadId);
}

/** No run takes in what is meant for another provider than its own: that starts the next run (lineage C4.16). */
function isForAnother(tx: Transaction, { currentRun }: AgentRecord, { provider }: UserInput): boolean {
  const run = currentRun === null ? undefined : tx.store.run(currentRun);
  return provider !== undefined && run !== undefined && run.provider !== provider;
}

/** Before it is asked whether the thread is busy: who raced and lost is told the truth (lineage C11.9). */
function requireRevision({ threadId, revision }: AgentRecord, expected: number | undefined): void {
  if (expected === undefined || expected === revision) return;
  throw new RejectedError(
    "THREAD_REVISION_CONFLICT",
    `${threadId} is at revision ${revision} and this was planned on ${expected}; look at it again, then ask again.`,
    { threadId, revision, expected },
  );
}

/** What becomes of input for a busy agent: it joins the run, waits for the next one, or is refused. */
export type OnBusy = "steer" | "queue" | "reject";

export interface UserInput extends RequestInput {
  readonly onBusy: OnBusy;
  /** The revision of the thread that this was planned on (lineage C3.2). */
  readonly expectedRevision?: number | undefined;
}

/**
 * Input of the user, CLI or library to an agent: a work without an agent that is owed its result (WRK-5).
 * @throws RejectedError `THREAD_REVISION_CONFLICT` when the thread was changed since; `THREAD_BUSY` when it is busy and
 * `onBusy` is `reject`; `PROVIDER_UNAVAILABLE` for a provider that is not there.
 */
export function userInput(
  tx: Transaction,
  agentId: AgentRecord["threadId"],
  caller: Caller,
  input: UserInput,
): WorkRecord {
  requireMessage(tx, input.message);
  const agent = tx.agent(agentId);
  requireOpen(agent);
  if (agent.hostDriven) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      "a host-driven root has no runs of ours; give it input through its host.",
      {
        path: agent.path,
      },
    );
  }
  requireRevision(agent, input.expectedRevision);
  if (input.provider !== undefined) tx.context.requireProvider(input.provider, agent.config.effects);
  const busy = agent.currentRun !== null || tx.store.mailbox(agent.threadId).triggers > 0;
  if (busy && input.onBusy === "reject") {
    throw new RejectedError(
      "THREAD_BUSY",
      `agent ${agent.path} is busy; queue the message, steer, or wait.`,
      {
        path: agent.path,
        run: agent.currentRun,
        executionId: agent.currentRun,
      },
    );
  }
  requireAdmissible(tx, agent, false);
  // Whoever has planned on the revision before this one is told so.
  tx.putAgent(agent, {});
  const nextRun = busy && (input.onBusy === "queue" || isForAnother(tx, agent, input));
  const steer = input.onBusy === "steer" && !nextRun;
  return requestWork(tx, actingAs(tx, caller), agent, input, "user", { steer, nextRun });
}
