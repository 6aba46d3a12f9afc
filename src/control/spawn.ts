/**
 * Spawning: thread, edge, work, `subagent_spawn` transfer and first mail are one commit (SPN-2). Checks stand in the order
 * of agents.md 17: fork mode, message, model and effort, role, task name, capacity, duplicate path.
 */
import { childPath, parseTaskName } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Caller } from "../protocol/tool.ts";
import type { Wake, WorkRecord } from "../protocol/work.ts";
import type { ContextSourcePoint } from "../protocol/transfer.ts";
import { type ForkTurns, parseForkTurns } from "../lineage/project-history.ts";
import { spawnTransfer } from "../lineage/transfer.ts";
import { admitRate } from "../policy/rates.ts";
import { actingAs, type Acting } from "./caller.ts";
import { requireQueueRoom, requireRunnable, requireSpawnLimits } from "./limits.ts";
import { requestWork, requireMessage, requireNames } from "./request.ts";
import { resolveTarget } from "./resolve-target.ts";
import type { ConfigRequest, PlacedWorktree, Transaction } from "./transaction.ts";
import { activity } from "./activity.ts";
import { headOf, newestStep } from "./thread-point.ts";
import { lineOf } from "./family.ts";
import { newAgent } from "./new-agent.ts";

export interface SpawnInput {
  /** The parent, when a user or the library spawns; an agent spawns below itself. */
  readonly parent?: string | undefined;
  readonly taskName: string;
  readonly message: string;
  /** `none`, `all` or a number, as text; omitted is `all`. */
  readonly forkTurns?: string | undefined;
  readonly asked: ConfigRequest["asked"];
  readonly wake?: Wake | undefined;
  readonly detached?: boolean | undefined;
  /** Path or id of the agent that is to get the result; default: who asks. */
  readonly replyTo?: string | undefined;
  readonly outputSchema?: JsonObject | null | undefined;
  readonly acceptance?: string | null | undefined;
  /** `worktree`: a worktree of its own, of the repository that its workspace is in; default: the workspace is shared. */
  readonly isolation?: "worktree" | undefined;
  readonly trace?: string | null | undefined;
}

export interface Spawned {
  readonly agent: AgentRecord;
  readonly work: WorkRecord;
}

/** What can be said against a spawn before capacity is looked at. Used alone by `admission: reject`, and by `spawn`. */
export function checkSpawn(tx: Transaction, caller: Caller, input: SpawnInput, worktree?: PlacedWorktree) {
  const fork = parseForkTurns(input.forkTurns);
  requireMessage(tx, input.message);
  const acting = actingAs(tx, caller);
  const parent = acting.agent ?? resolveTarget(tx.store, tx.treeId, "/root", input.parent ?? "/root");
  requireNames(tx.profile, { model: input.asked.model, reasoning_effort: input.asked.effort });
  const config = tx.context.resolveConfig({
    parent: {
      ...parent.config,
      model: acting.run?.model ?? parent.config.model,
      effort: acting.run?.effort ?? parent.config.effort,
    },
    asked: input.asked,
    worktree,
    above: [...lineOf(tx.store, parent)].map((agent) => agent.config),
  });
  const name = parseTaskName(input.taskName);
  requireNames(tx.profile, { task_name: name });
  return { fork, acting, parent, config, path: childPath(parent.path, name) };
}

/** `admitted` is the thread for which permit and slot are held already (`admission: reject`). */
export function spawn(
  tx: Transaction,
  caller: Caller,
  input: SpawnInput,
  {
    admitted,
    worktree,
  }: { readonly admitted: ThreadId | null; readonly worktree: PlacedWorktree | undefined },
): Spawned {
  const { fork, acting, parent, config, path } = checkSpawn(tx, caller, input, worktree);
  if (parent.state !== "open") {
    throw new RejectedError(
      "AGENT_CLOSED",
      `agent ${parent.path} is ${parent.state} and cannot have new children.`,
      {
        path: parent.path,
        state: parent.state,
      },
    );
  }
  requireSpawnLimits(tx, parent, path);
  if (admitted === null) {
    requireRunnable(tx, parent.threadId);
    requireQueueRoom(tx, null);
  }
  if (tx.store.agentAt(tx.treeId, path) !== undefined) {
    throw new RejectedError(
      "AGENT_EXISTS",
      `an agent is already at ${path}; choose another task name or follow up.`,
      { path },
    );
  }
  const child = putChild(tx, acting, parent, path, config, admitted ?? tx.id("thread"));
  const work = requestWork(tx, acting, child, input, "new_task");
  beginTransfer(tx, acting, parent, child, fork, work);
  activity(tx, acting, "started", child, work);
  return { agent: child, work };
}

/** The transfer that says what the child is to be told, and up to where; its first run resolves it (SPN-5, lineage C8.3). */
function beginTransfer(
  tx: Transaction,
  acting: Acting,
  parent: AgentRecord,
  child: AgentRecord,
  turns: ForkTurns,
  work: WorkRecord,
): void {
  const sourcePoint = pointOfSpawn(tx, acting, parent);
  const transfer = spawnTransfer({
    id: tx.id("xfr"),
    treeId: tx.treeId,
    workId: work.id,
    source: parent.threadId,
    target: child.threadId,
    sourcePoint,
    sourceProvider: parent.config.provider,
    targetProvider: child.config.provider,
    at: tx.now,
    turns,
    carries: turns !== "none" && sourcePoint.items > 0,
    createdBy: acting.agent === null ? "user" : "agent",
  });
  tx.store.putTransfer(transfer);
  tx.emit(
    "transfer.created",
    child,
    { workId: work.id, runId: acting.run?.id ?? null },
    {
      transferId: transfer.id,
      type: transfer.type,
      context: transfer.note,
    },
  );
}

/** Before the step that asks for the child; where no run does, the head. */
function pointOfSpawn(tx: Transaction, { run: asking }: Acting, parent: AgentRecord): ContextSourcePoint {
  const run = asking ?? tx.store.runAt(parent.threadId, parent.runs);
  const call = asking === null ? null : newestStep(tx.store, parent, asking);
  const head = headOf(tx.store, parent, run);
  return {
    ...head,
    items: call ?? head.items,
    turnItemId: call,
    cut: asking === null ? "inclusive" : "exclusive",
  };
}

function spawnTimes(times: readonly number[], tx: Transaction): readonly number[] {
  const rate = admitRate(times, tx.now, tx.limits.spawnsPerMinute);
  return rate.kind === "admitted" ? rate.times : times;
}

function putChild(
  tx: Transaction,
  acting: Acting,
  parent: AgentRecord,
  path: AgentRecord["path"],
  config: AgentRecord["config"],
  threadId: ThreadId,
): AgentRecord {
  const child = newAgent({
    threadId,
    treeId: tx.treeId,
    path,
    parent: parent.threadId,
    depth: parent.depth + 1,
    config,
    tokenDigest: tx.context.mintTokenDigest(threadId),
    createdAt: tx.now,
    createdBy: acting.agent === null ? "user" : "agent",
    bornInRun: acting.run?.id ?? null,
    thread: {
      lineage: {
        parentThreadId: parent.threadId,
        relationshipToParent: "subagent",
        rootThreadId: parent.thread?.lineage.rootThreadId ?? parent.treeId,
      },
      continuity: parent.thread?.continuity ?? "resume-native",
    },
  });
  tx.store.putAgent(child);
  tx.putAgent(tx.agent(parent.threadId), { children: parent.children + 1 });
  const tree = tx.tree();
  tx.putTree({
    agents: tree.agents + 1,
    // Over the limit it was refused before; without one nothing is kept.
    recentSpawns: spawnTimes(tree.recentSpawns, tx),
  });
  tx.emit(
    "agent.spawned",
    child,
    { runId: acting.run?.id ?? null },
    {
      parent: parent.path,
      provider: config.provider,
      model: config.model,
      role: config.role,
      adjustments: config.adjustments.map((adjustment) => ({ ...adjustment })),
    },
  );
  return child;
}
