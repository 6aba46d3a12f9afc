/**
 * Forking (lineage C5): a new idle thread, where it comes from, and one pending transfer; nothing else is made, asked or
 * copied, however long the source is. What the first run gets is decided when it is sent.
 *
 * - F1 Everything that can be refused is refused before anything is made: the plan is pure, and made again in the commit.
 * - F2 The source is only read. Its snapshot at the point is named by its digest (C5.5).
 */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord, Payer, TreeRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { EventId, ThreadId, TransferId } from "../protocol/ids.ts";
import { type LineageLimits, TITLE_CHARACTERS } from "../protocol/lineage-limits.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { ForkDraft, ForkOrigin, ForkPolicy, ThreadFacts } from "../protocol/thread.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { conversationAt, sourceOf } from "../control/start-facts.ts";
import { newAgent } from "../control/new-agent.ts";
import { newTreeRecord } from "../control/new-tree-record.ts";
import { requireDepth } from "../lineage/chain.ts";
import {
  type ForkAvailability,
  forkAvailability,
  type ForkPointFacts,
  NATIVE_OBSTACLES,
} from "../lineage/fork-availability.ts";
import { type ForkPoint, forkPoint, type ForkPointName } from "../lineage/fork-points.ts";
import { forkTitle } from "../lineage/fork-title.ts";
import { forkTransfer } from "../lineage/transfer.ts";
import type { PageRequest, StoreTx, StoreView } from "../store/port.ts";
import { readerOf } from "../control/thread-reader.ts";
import { originsIn, requireThread } from "./thread-view.ts";

export interface ForkRequest {
  readonly source: string;
  readonly at: ForkPointName;
  readonly policy: ForkPolicy;
  /** Wins over the numbered one (C16). */
  readonly title: string | null;
  readonly createdBy: "user" | "agent";
}

/** What the source's provider can do; null where it is not there to be asked. */
export type CapabilitiesOf = (provider: string) => ThreadCapabilities | null;

export interface ForkPlan {
  readonly source: AgentRecord & { readonly thread: ThreadFacts };
  readonly tree: TreeRecord;
  readonly fork: ForkPoint;
  readonly title: string | null;
  readonly context: ForkOrigin["context"];
  readonly availability: ForkAvailability;
}

/** What a fork would be. @throws RejectedError of the codes of C5. */
export function planFork(
  view: StoreView,
  request: ForkRequest,
  capabilities: CapabilitiesOf,
  limits: LineageLimits,
): ForkPlan {
  const source = requireThread(view, request.source);
  if (source.thread === null) {
    throw new RejectedError(
      "SOURCE_POINT_NOT_FOUND",
      `${source.threadId} is from before there were threads and has no point to fork at; start a new thread.`,
      { threadId: source.threadId },
    );
  }
  const thread = { ...source, thread: source.thread };
  requireDepth(thread.threadId, originsIn(view), limits.ancestorDepthMaximum);
  const fork = forkPoint(readerOf(view, thread), request.at);
  const availability = availabilityAt(view, thread, fork, capabilities, limits);
  requireStrategy(request.policy, availability);
  return {
    source: thread,
    tree: view.tree(source.treeId)!,
    fork,
    title: request.title ?? forkTitle(thread.thread.title, liveTitles(view, thread.thread)),
    context: contextAt(view, thread, fork),
    availability,
  };
}

function availabilityAt(
  view: StoreView,
  source: AgentRecord,
  { point, carries, wholeRun }: ForkPoint,
  capabilities: CapabilitiesOf,
  limits: LineageLimits,
): ForkAvailability {
  const ofRun = view.runAt(source.threadId, point.ordinal)?.providerThreadId ?? null;
  const behind = conversationAt(view, point, ofRun);
  const able = behind === undefined ? null : capabilities(behind.provider);
  const facts: ForkPointFacts = {
    source: behind === undefined ? null : sourceOf(view, behind, point.ordinal),
    ordinal: point.ordinal,
    wholeRun,
    item: null,
    cut: point.cut,
    carries,
  };
  const settings = { replay: limits.replay, target: null };
  if (able !== null) return forkAvailability(able, facts, settings);
  return {
    native: "no_native_thread",
    replay: carries ? limits.replay || "replay_disabled" : "nothing_to_carry",
  };
}

/** A strict strategy that cannot be is refused before anything is made (C5.13, C5.15, C5.17). */
function requireStrategy({ strategy }: ForkPolicy, { native, replay }: ForkAvailability): void {
  if (strategy === "native" && native !== true) {
    throw new RejectedError(
      "FORK_NATIVE_UNSUPPORTED",
      `a native fork is not possible here: ${NATIVE_OBSTACLES[native]}. Fork with \`replay\` or \`auto\`.`,
      { obstacle: native },
    );
  }
  if (strategy !== "replay" || replay === true) return;
  if (replay === "replay_disabled") {
    throw new RejectedError(
      "FORK_REPLAY_DISABLED",
      "replay is switched off in this runtime; fork with `native`, or switch it on with `lineage: { replay: true }`.",
      {},
    );
  }
  throw new RejectedError(
    "FORK_SEED_EMPTY",
    "nothing lies before this point that could be replayed; start a new thread, or fork with `auto`.",
    {},
  );
}

const PAGE = 500;

function* liveTitles(view: StoreView, { lineage }: ThreadFacts): Generator<string | null> {
  let page: PageRequest = { limit: PAGE };
  for (;;) {
    const { rows, next } = view.descendants(lineage.rootThreadId, page);
    for (const { state, thread } of rows) if (state !== "archived") yield thread?.title ?? null;
    if (next === null) return;
    page = { limit: PAGE, after: next };
  }
}

/**
 * The snapshot that the last run wholly inside was projected into: what was pinned in the rest of a run that is cut is no part
 * of the point (C5.5). The source's own origin where it has none yet.
 */
function contextAt(
  view: StoreView,
  source: AgentRecord & { readonly thread: ThreadFacts },
  { point, wholeRun }: ForkPoint,
): ForkOrigin["context"] {
  for (let ordinal = wholeRun ? point.ordinal : point.ordinal - 1; ordinal > 0; ordinal -= 1) {
    const revision = view.runAt(source.threadId, ordinal)?.nextContextRevision ?? null;
    const snapshot = revision === null ? undefined : view.snapshot(source.threadId, revision);
    if (snapshot !== undefined)
      return { threadId: source.threadId, revision: snapshot.revision, digest: snapshot.digest };
  }
  return source.thread.forkedFrom?.context ?? null;
}

export interface NewFork {
  readonly threadId: ThreadId;
  readonly transferId: TransferId;
  readonly eventId: EventId;
  readonly tokenDigest: string;
  /** The agent that makes it. */
  readonly billedTo?: Payer;
}

export interface Forked {
  readonly agent: AgentRecord;
  readonly transfer: TransferRecord;
  readonly draft: ForkDraft | null;
}

/** Writes what was planned: tree, thread, transfer, and the draft of a cut before a message (C5.4). */
export function writeFork(tx: StoreTx, plan: ForkPlan, request: ForkRequest, ids: NewFork): Forked {
  const { source, tree, fork } = plan;
  // Of what was rolled back before, a fork does not tell (C9.9).
  const now = Math.max(tx.now(), source.thread.lastRollback?.at ?? 0);
  const { threadId } = ids;
  tx.putTree(
    newTreeRecord({
      treeId: threadId,
      title: plan.title,
      profile: tree.profile,
      limits: tree.limits,
      createdAt: now,
      wakeOnAgentMessages: tree.wakeOnAgentMessages ?? null,
      ...(ids.billedTo === undefined ? {} : { billedTo: ids.billedTo }),
    }),
  );
  const agent = newAgent({
    threadId,
    treeId: threadId,
    path: ROOT_PATH,
    parent: null,
    depth: 0,
    config: source.config,
    tokenDigest: ids.tokenDigest,
    createdAt: now,
    createdBy: request.createdBy,
    thread: {
      title: plan.title,
      continuity: source.thread.continuity,
      lineage: {
        parentThreadId: source.threadId,
        relationshipToParent: "fork",
        rootThreadId: source.thread.lineage.rootThreadId,
      },
      forkedFrom: { transferId: ids.transferId, point: fork.point, context: plan.context },
      forkPolicy: request.policy,
    },
  });
  tx.putAgent(agent);
  const behind = tx.runAt(source.threadId, fork.point.ordinal)?.provider ?? null;
  const transfer = forkTransfer({
    id: ids.transferId,
    treeId: threadId,
    source: source.threadId,
    target: threadId,
    sourcePoint: fork.point,
    sourceProvider: behind,
    targetProvider: null,
    at: now,
    strategy: request.policy.strategy,
    sourceOutcome: fork.sourceOutcome,
    carries: fork.carries,
    createdBy: request.createdBy,
  });
  tx.putTransfer(transfer);
  tx.appendEvent(threadId, ids.eventId, now, {
    type: "thread.forked",
    path: ROOT_PATH,
    threadId,
    runId: null,
    workId: null,
    data: { transferId: transfer.id, source: source.threadId, strategy: request.policy.strategy },
  });
  const draft = fork.draft === null ? null : { ...fork.draft, threadId, createdAt: now, clearedAt: null };
  if (draft !== null) tx.putDraft(draft);
  return { agent, transfer, draft };
}

/** @throws RejectedError `INVALID_ARGUMENT`. */
export function requireTitle(title: string): string {
  const { length } = Array.from(title);
  if (title.trim() !== "" && length <= TITLE_CHARACTERS && title.isWellFormed()) return title;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `a title has 1 to ${TITLE_CHARACTERS} characters and is not blank; this one has ${length}.`,
    { argument: "title", characters: length, limit: TITLE_CHARACTERS },
  );
}
