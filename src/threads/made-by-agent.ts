/**
 * Threads that an agent makes (lineage C1.2): trees of their own, whose rows and first input are one commit with the counters
 * of the maker's tree, under that tree's lease. Nobody owns them before they are opened.
 *
 * - A1 They may do at most what their maker may; what a fork would inherit beyond that is cut off and said (POL-1).
 * - A2 Their input is a message of the maker: it carries no authority of the user, asks for no work, and nobody is owed an
 *   answer (XTR-1).
 */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentConfig, AgentRecord, Payer } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { MailDraft } from "../protocol/mail.ts";
import { byteLength, requireText } from "../platform/text.ts";
import { policyHash } from "../policy/policy-hash.ts";
import { admitRate } from "../policy/rates.ts";
import { type Acting, actingAs } from "../control/caller.ts";
import type { CallFrom, NewThread } from "../control/between-trees.ts";
import { lineOf } from "../control/family.ts";
import { requireThreadLimits } from "../control/limits.ts";
import { newAgent } from "../control/new-agent.ts";
import { newTreeRecord } from "../control/new-tree-record.ts";
import type { Transaction } from "../control/transaction.ts";
import { senderName } from "../mailbox/render.ts";
import {
  type CapabilitiesOf,
  type ForkRequest,
  type Forked,
  planFork,
  requireTitle,
  writeFork,
} from "./fork.ts";

/** An agent of the tree, in a run of its own, or a host-driven root. @throws RejectedError `SUBAGENT_PARENT_NOT_ACTIVE`. */
export function actingAgent(tx: Transaction, from: CallFrom): Acting & { readonly agent: AgentRecord } {
  return actingAs(tx, from.caller) as Acting & { readonly agent: AgentRecord };
}

export function createThreads(
  tx: Transaction,
  from: CallFrom,
  asked: readonly NewThread[],
): readonly ThreadId[] {
  const acting = actingAgent(tx, from);
  requireThreadLimits(tx, acting.agent, asked.length);
  const parent = {
    ...acting.agent.config,
    model: acting.run?.model ?? acting.agent.config.model,
    effort: acting.run?.effort ?? acting.agent.config.effort,
  };
  const above = [...lineOf(tx.store, acting.agent)].map(({ config }) => config);
  const ids = asked.map((one) => {
    const title = one.title === undefined ? null : requireTitle(one.title);
    requireInput(tx, one.message);
    const config = tx.context.resolveConfig({ parent, asked: one.asked, above });
    return putRoot(tx, acting.agent, config, title, one.message);
  });
  countMade(tx, ids.length);
  return ids;
}

function putRoot(
  tx: Transaction,
  maker: AgentRecord,
  config: AgentConfig,
  title: string | null,
  message: string,
): ThreadId {
  const threadId = tx.id("thread");
  tx.store.putTree(
    newTreeRecord({
      treeId: threadId,
      title,
      profile: tx.profile.name,
      limits: tx.tree().limits,
      createdAt: tx.now,
      wakeOnAgentMessages: tx.tree().wakeOnAgentMessages ?? null,
      billedTo: payerOf(maker),
    }),
  );
  const root = newAgent({
    threadId,
    treeId: threadId,
    path: ROOT_PATH,
    parent: null,
    depth: 0,
    config,
    tokenDigest: tx.context.mintTokenDigest(threadId),
    createdAt: tx.now,
    createdBy: "agent",
    thread: {
      title,
      continuity: maker.thread?.continuity ?? "resume-native",
      lineage: { parentThreadId: null, relationshipToParent: null, rootThreadId: threadId },
    },
  });
  tx.store.putAgent(root);
  const { provider, model } = config;
  tell(tx, root, "tree.opened", { profile: tx.profile.name, provider, model, by: maker.threadId });
  firstInput(tx, maker, root, message);
  return threadId;
}

export interface ForkByAgent {
  readonly request: ForkRequest;
  readonly capabilities: CapabilitiesOf;
  readonly message: string | null;
}

export function forkThread(tx: Transaction, from: CallFrom, asked: ForkByAgent): Forked {
  const { agent: maker } = actingAgent(tx, from);
  requireThreadLimits(tx, maker, 1);
  if (asked.message !== null) requireInput(tx, asked.message);
  const plan = planFork(tx.store, asked.request, asked.capabilities, tx.context.lineage);
  const { source } = plan;
  requireSameWorkspace(maker, source);
  const config = within(tx, source.config, maker);
  const threadId = tx.id("thread");
  const forked = writeFork(tx.store, { ...plan, source: { ...source, config } }, asked.request, {
    threadId,
    transferId: tx.id("xfr"),
    eventId: tx.id("evt"),
    tokenDigest: tx.context.mintTokenDigest(threadId),
    billedTo: payerOf(maker),
  });
  if (asked.message !== null) firstInput(tx, maker, forked.agent, asked.message);
  countMade(tx, 1);
  return forked;
}

/** A fork goes on where its source worked, which its maker must not reach by it. */
function requireSameWorkspace(maker: AgentRecord, source: AgentRecord): void {
  const [own, other] = [maker.config.workspace, source.config.workspace];
  if (own === null || own === other) return;
  throw new RejectedError(
    "AUTHORITY_ESCALATION_DENIED",
    `${source.threadId} works in another workspace than you; read it, or send it a message.`,
    { threadId: source.threadId, workspace: other, own },
  );
}

/** What the source may do, within what its maker and all above that one may. */
function within(tx: Transaction, config: AgentConfig, maker: AgentRecord): AgentConfig {
  const above = [...lineOf(tx.store, maker)].map((agent) => agent.config);
  const { effects, tools } = tx.context.withinCeiling(config, above);
  if (effects.length === config.effects.length) return config;
  const adjustments = [
    ...config.adjustments,
    { field: "effects", asked: config.effects.join(", "), effect: "clipped" as const },
  ];
  const clipped = { ...config, effects, tools, adjustments };
  return { ...clipped, policyHash: policyHash(clipped) };
}

function payerOf({ treeId, threadId, path }: AgentRecord): Payer {
  return { treeId, threadId, path };
}

function countMade(tx: Transaction, count: number): void {
  const tree = tx.tree();
  let times = tree.recentSpawns;
  for (let made = 0; made < count; made += 1) {
    const rate = admitRate(times, tx.now, tx.limits.spawnsPerMinute);
    if (rate.kind === "admitted") times = rate.times;
  }
  tx.putTree({ billed: (tree.billed ?? 0) + count, recentSpawns: times });
}

function requireInput(tx: Transaction, message: string): void {
  if (message.trim() === "")
    throw new RejectedError("INVALID_ARGUMENT", "message is blank; say what is wanted.", {
      argument: "message",
    });
  requireText("message", message, tx.limits.mailInlineBytes);
}

function firstInput(tx: Transaction, maker: AgentRecord, root: AgentRecord, message: string): void {
  const mail = tx.store.appendMail(messageTo(tx.id("msg"), maker, root, message, { key: null, at: tx.now }));
  tell(tx, root, "mail.accepted", {
    mailId: mail.id,
    kind: mail.kind,
    trigger: mail.trigger,
    author: senderName(mail.author),
    bytes: mail.content.bytes,
  });
}

function tell(
  tx: Transaction,
  { treeId, threadId, path }: AgentRecord,
  type: "tree.opened" | "mail.accepted",
  data: Parameters<Transaction["emit"]>[3],
): void {
  const about = { path, threadId, runId: null, workId: null };
  tx.store.appendEvent(treeId, tx.id("evt"), tx.now, { type, ...about, data: data ?? {} });
}

/** A message from another tree: it starts a run of an idle root, joins a live one, and asks for no work (XTR-1, XTR-2). */
export function messageTo(
  id: MailDraft["id"],
  from: AgentRecord,
  to: AgentRecord,
  text: string,
  { key, at }: { readonly key: string | null; readonly at: number },
): MailDraft {
  return {
    id,
    treeId: to.treeId,
    recipient: to.threadId,
    recipientPath: to.path,
    author: { kind: "thread", threadId: from.threadId, treeId: from.treeId, path: from.path },
    kind: "message",
    authority: "agent",
    trigger: !to.hostDriven,
    steer: false,
    nextRun: false,
    workId: null,
    resultOf: null,
    content: { text, bytes: byteLength(text), artifact: null },
    start: null,
    redirectedFrom: null,
    key,
    createdAt: at,
  };
}
