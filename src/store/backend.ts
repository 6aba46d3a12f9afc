/**
 * What an embedded adapter gives to `store.ts`: rows, and a way to run the plans of one tick in one transaction. The rules
 * that hold for every adapter (fencing, leases, capacity, order of settling, hints) are written once above it.
 *
 * - K1 `transact` runs the operations in order, at least one, until it is told that it is enough, leaves an outcome in each
 *   that it has run, and answers how many these are. When it throws, nothing of the group is
 *   stored; when it throws `STORE_BUSY`, no operation was run and the group may be given again.
 * - K2 An operation that throws changes nothing and does not disturb the others of its group.
 */
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import type { MailDraft, MailRecord } from "../protocol/mail.ts";
import type { ProcessIdentity } from "../protocol/process-identity.ts";
import type { Counters } from "./mailbox-counters.ts";
import type { StoreTx, StoreView } from "./port.ts";

export interface LeaseRow {
  readonly treeId: TreeId;
  /** Null once it was given back. */
  readonly token: string | null;
  readonly epoch: number;
  readonly owner: ProcessIdentity;
  readonly expiresAt: number;
  /** How long it was given for. */
  readonly leaseMs: number;
}

/** The rows behind the port, and those that only the store itself looks at. */
export interface BackendTx extends StoreTx {
  leaseRow(tree: TreeId): LeaseRow | undefined;
  putLease(row: LeaseRow): void;
  counters(id: ThreadId): Counters;
  /** The stored row with this id, or with this author's key; one that cannot be read as the dead letter that it will be. */
  knownMail(draft: MailDraft): MailRecord | undefined;
  /** Stores mail and its `seq`; an arrival is shown to the tree's owner. Undefined when id or key is known. */
  insertMail(draft: MailDraft, arrival: boolean): MailRecord | undefined;
  /** Trees with unread trigger-turn mail, a pending command or a run that is not settled. */
  busyTrees(): readonly TreeId[];
}

/** What a read may look at. */
export type BackendView = StoreView & Pick<BackendTx, "leaseRow" | "busyTrees">;

type Rows<K extends keyof BackendTx> = Pick<BackendTx, K>;

export type AgentRows = Rows<
  | "tree"
  | "trees"
  | "treeIds"
  | "billed"
  | "agent"
  | "agentAt"
  | "agentByToken"
  | "agents"
  | "childrenOf"
  | "openChildren"
  | "usageUnder"
  | "threads"
  | "isWorkedIn"
  | "descendants"
  | "putTree"
  | "putAgent"
>;
export type MailRows = Rows<
  | "mailbox"
  | "mail"
  | "unread"
  | "mailOfRun"
  | "mailOf"
  | "unreadable"
  | "triggered"
  | "arrivals"
  | "appendMail"
  | "putMail"
  | "deadLetterUnreadable"
  | "reserveMailbox"
  | "takeArrivals"
  | "counters"
  | "knownMail"
  | "insertMail"
>;
export type WorkRows = Rows<
  | "work"
  | "works"
  | "openWorksOf"
  | "openWorksAskedBy"
  | "oldestBegun"
  | "latestWork"
  | "worksUnder"
  | "strandedResults"
  | "run"
  | "runsOf"
  | "runAt"
  | "openRuns"
  | "worstHistory"
  | "putWork"
  | "putRun"
>;
export type WaitRows = Rows<
  | "wait"
  | "openWaitsOf"
  | "waitsOfRun"
  | "openWaitsOn"
  | "nextDeadline"
  | "dueWaits"
  | "openThreadWaits"
  | "request"
  | "openRequestsOf"
  | "putWait"
  | "putRequest"
>;
export type TransferRows = Rows<
  | "transfer"
  | "transferOfWork"
  | "transfers"
  | "transfersOf"
  | "pendingTransfersTo"
  | "forksInDoubt"
  | "lastTakenOf"
  | "handoff"
  | "handoffsOf"
  | "artifact"
  | "putTransfer"
  | "putHandoff"
  | "putArtifact"
>;
export type ThreadRows = Rows<
  | "providerThread"
  | "providerThreadsOf"
  | "providerThreadsNamed"
  | "snapshot"
  | "compactions"
  | "history"
  | "historyEntry"
  | "draft"
  | "putProviderThread"
  | "putSnapshot"
  | "putCompaction"
  | "addHistory"
  | "putDraft"
>;
export type LogRows = Rows<"items" | "appendItems" | "events" | "lastEvent" | "appendEvent">;
export type TreeRows = Rows<
  | "now"
  | "lease"
  | "leaseRow"
  | "putLease"
  | "receipt"
  | "putReceipt"
  | "command"
  | "pendingCommands"
  | "putCommand"
  | "processGroups"
  | "putProcessGroup"
  | "removeProcessGroup"
  | "busyTrees"
  | "withInbox"
>;

/** What the plan that is being run stands for, and what the group has put before other owners. */
export interface GroupContext {
  /** The tree whose lease the running plan holds; null for `send` and the like. */
  tree: TreeId | null;
  /** Trees that were sent mail or commands by somebody who does not own them. */
  readonly told: Set<TreeId>;
}

export interface Operation {
  /** The tree whose lease it holds. */
  readonly tree: TreeId | null;
  readonly run: (tx: BackendTx) => unknown;
  outcome: { readonly value: unknown } | { readonly error: unknown } | null;
}

export interface Backend {
  readonly kind: string;
  readonly name: string;
  readonly context: GroupContext;
  transact(operations: readonly Operation[], isEnough: () => boolean): number;
  /** Runs a plan over one snapshot, outside of any group. @throws TransientError `STORE_BUSY`; it may be run again. */
  read<T>(plan: (view: BackendView) => T): T;
  /** Grows when another connection has written. */
  foreignVersion(): number;
  close(): void;
}
