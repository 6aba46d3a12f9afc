/**
 * The `Store` port: the truth of the runtime. A mailbox, a work, a run, an agent exist when their commit does.
 *
 * - S1 `commit` is all or nothing and fenced: a superseded lease changes nothing and rejects with `FENCED`.
 * - S2 A plan is a pure synchronous function over a view. It reads what it decides on inside the same transaction, so
 *   every commit is serialisable and no decision rests on a stale read; between its read and its write nothing else
 *   happens. It must not keep effects outside of its return value: an adapter may run it more than once.
 * - S3 A plan that throws changes nothing; its error rejects that commit and no other of the same group.
 * - S4 Commits and sends of one tick are grouped into one transaction, or a few where they are very many, in the order in
 *   which they were called; their promises settle after it is durable, in the same order.
 * - S5 `send` wants no lease; it is durable when it resolves. Per recipient `seq` is gapless and equals commit order.
 * - S6 An id or key is stored once for ever: consumed mail is marked, never deleted.
 * - S7 Hints may be lost, doubled, reordered; everything works by polling `changes`.
 *
 * Embedded adapters run plans inside the transaction. A remote adapter runs a plan over rows it has read ahead and
 * commits the writes with the rows' revisions as expectations.
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord, ThreadState, TreeRecord } from "../protocol/agent.ts";
import type { CommandRecord, ReceiptRecord } from "../protocol/command.ts";
import type { EventDraft, RuntimeEvent } from "../protocol/events.ts";
import type {
  ArtifactId,
  CommandId,
  HandoffId,
  MailId,
  ProviderThreadId,
  RequestId,
  RunId,
  ThreadId,
  TransferId,
  TreeId,
  WaitId,
  WorkId,
} from "../protocol/ids.ts";
import type { Mailbox, MailboxCapacity, MailDraft, MailRecord, MailState } from "../protocol/mail.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { CompactionRecord, SnapshotRecord } from "../protocol/snapshot.ts";
import type { ForkDraft, HistoryEntry, HistoryLevel } from "../protocol/thread.ts";
import type { ItemBody, TranscriptItem } from "../protocol/transcript.ts";
import type { ArtifactRecord, HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { ProcessIdentity, ProvenDead } from "../protocol/process-identity.ts";
import type { Usage, UsageSum } from "../protocol/usage.ts";
import type { RuntimeRequestRecord, WaitRecord } from "../protocol/wait.ts";
import type { WorkRecord } from "../protocol/work.ts";

export interface Lease {
  readonly treeId: TreeId;
  readonly token: string;
  /** Grows with each claim of the tree. */
  readonly epoch: number;
  readonly expiresAt: number;
}

export interface LeaseState {
  readonly epoch: number;
  readonly owner: ProcessIdentity;
  readonly expiresAt: number;
  /** False once it has run out or was given back; whether its owner is dead is not known here. */
  readonly live: boolean;
}

export interface ClaimRequest {
  readonly treeId: TreeId;
  readonly token: string;
  readonly owner: ProcessIdentity;
  readonly leaseMs: number;
  /** True when the identity belongs to a process of this host that is proved dead; given by the platform. */
  readonly provenDead: ProvenDead;
}

export type SendResult =
  | { readonly kind: "accepted"; readonly seq: number; readonly mail: MailRecord }
  | { readonly kind: "duplicate"; readonly mail: MailRecord }
  | { readonly kind: "full"; readonly mailbox: Mailbox; readonly capacity: MailboxCapacity }
  | { readonly kind: "closed" }
  | { readonly kind: "unknown" };

/** Rows, and where the next page begins; null after the last. */
export interface Page<T> {
  readonly rows: readonly T[];
  /** Rows of this page that are left out because they cannot be read, named as a cursor names them; absent where there are none. */
  readonly unreadable?: readonly string[];
  /** Pass as `after` for the next page; null at the end. */
  readonly next: string | null;
}

export interface PageRequest {
  /** The `next` of a page before; what names no row is refused with `INVALID_ARGUMENT`. */
  readonly after?: string | null;
  readonly limit: number;
}

/** A row of what is under way in a tree, by its name. Of a command the thread is its tree's root. */
export type OpenRow = { readonly threadId: ThreadId } & (
  | { readonly table: "runs"; readonly id: RunId }
  | { readonly table: "waits"; readonly id: WaitId }
  | { readonly table: "requests"; readonly id: RequestId }
  | { readonly table: "commands"; readonly id: CommandId }
);

/** Tables of which an unreadable row can be replaced by a record that stands in for it. */
export type MendableTable = "agents" | "works" | "runs" | "waits" | "requests" | "commands";

/** What is known of a row that cannot be read, by its table. */
export type BrokenRow = {
  /** Of a command: its tree's root; of a work: its executor. */
  readonly threadId: ThreadId;
  /** Not settled, not ended, pending, not closed. */
  readonly open: boolean;
} & (
  | { readonly table: "agents"; readonly agent: BrokenAgent }
  | { readonly table: "works"; readonly work: BrokenWork }
  | { readonly table: "waits"; readonly runId: RunId }
  | { readonly table: "runs" | "requests" | "commands" }
);

/** What is known of a work whose row cannot be read. */
export interface BrokenWork {
  /** Null where no agent has asked. */
  readonly requester: ThreadId | null;
  readonly parents: readonly WorkId[];
  /** Of an open one. */
  readonly begunAt: number | null;
}

/** What is known of an agent whose row cannot be read. */
export interface BrokenAgent {
  readonly treeId: TreeId;
  readonly path: AgentPath;
  readonly parent: ThreadId | null;
  readonly state: ThreadState;
  readonly workspace: string | null;
  /** The root of its lineage; null in records from before threads. */
  readonly lineage: ThreadId | null;
  readonly usage: Usage;
}

/**
 * Indexed reads. A row that cannot be read makes the read that needs it throw `STORE_CORRUPT` with its `table` and `id` in
 * the details; of mail, of process groups, and in lists of a tree's agents, of its works, of works under another one and of
 * stranded results it is left out (pages name it), and an event stands in for an event. All are cheap in the number of rows they return. Lists that grow with
 * the life of a tree are paged; those of what is open, unread or pending, or belongs to one run, are whole.
 */
export interface StoreView {
  /** The store's clock, milliseconds since the epoch. */
  now(): number;
  tree(id: TreeId): TreeRecord | undefined;
  /** Trees, newest first. */
  trees(page: PageRequest): Page<TreeRecord>;
  /** The same, of which no record is read: one that is broken is in no other's way. */
  treeIds(page: PageRequest): Page<TreeId>;
  /** Trees that agents of this tree have made, oldest first. */
  billed(id: TreeId): readonly TreeRecord[];
  lease(id: TreeId): LeaseState | undefined;
  agent(id: ThreadId): AgentRecord | undefined;
  agentAt(tree: TreeId, path: AgentPath): AgentRecord | undefined;
  agentByToken(tokenDigest: string): AgentRecord | undefined;
  /** Agents at or below `under`, sorted by path; closed ones only when asked for. */
  agents(
    tree: TreeId,
    under: AgentPath,
    page: PageRequest & { readonly closed?: boolean },
  ): Page<AgentRecord>;
  /** Right below it, oldest first; closed ones only when asked for. */
  childrenOf(id: ThreadId, page: PageRequest & { readonly closed?: boolean }): Page<AgentRecord>;
  /** How many children an agent has that are open. */
  openChildren(id: ThreadId): number;
  /** Sum of the usage of all agents at or below a path (BUD-4). */
  usageUnder(tree: TreeId, under: AgentPath): UsageSum;

  mailbox(id: ThreadId): Mailbox;
  mail(id: MailId): MailRecord | undefined;
  /** Unread mail of a recipient, oldest first, from after `afterSeq`. Rows that cannot be read are left out. */
  unread(
    id: ThreadId,
    options: { readonly afterSeq?: number; readonly limit: number },
  ): readonly MailRecord[];
  /** Mail that was handed to a run in the given states. */
  mailOfRun(id: RunId, state: MailState): readonly MailRecord[];
  /** All mail of a recipient, oldest first. */
  mailOf(id: ThreadId, page: PageRequest): Page<MailRecord>;
  /** Ids of unread rows of a recipient that cannot be read (MBX-10). */
  unreadable(id: ThreadId): readonly MailId[];
  /** Agents of a tree with unread trigger-turn mail, oldest first. */
  triggered(tree: TreeId): readonly ThreadId[];

  work(id: WorkId): WorkRecord | undefined;
  works(tree: TreeId, page: PageRequest): Page<WorkRecord>;
  openWorksOf(executor: ThreadId): readonly WorkRecord[];
  openWorksAskedBy(requester: ThreadId): readonly WorkRecord[];
  /** When the oldest of the open works was begun whose executors are at or below a path; null while none was. */
  oldestBegun(tree: TreeId, under: AgentPath): number | null;
  /** The newest work of an executor, of a requester where one is given. */
  latestWork(executor: ThreadId, requester?: ThreadId): WorkRecord | undefined;
  /** Works whose parents contain this one: all that were ever asked under it. */
  worksUnder(id: WorkId): readonly WorkRecord[];
  /** Works that an agent has asked for whose result is on its way to it, by mail that nobody has unread (WRK-4). */
  strandedResults(requester: ThreadId): readonly WorkRecord[];

  run(id: RunId): RunRecord | undefined;
  runsOf(id: ThreadId, page: PageRequest): Page<RunRecord>;
  /** The run of a thread with this ordinal. */
  runAt(id: ThreadId, ordinal: number): RunRecord | undefined;
  /** Runs of a tree that are not settled. */
  openRuns(tree: TreeId): readonly RunRecord[];
  /** The worst that was collected of a run of a thread; null while nothing was (lineage C13.6). */
  worstHistory(id: ThreadId): HistoryLevel | null;

  /** Transcript items with `from <= index`, at most `limit`. */
  items(id: ThreadId, from: number, limit: number): readonly TranscriptItem[];

  wait(id: WaitId): WaitRecord | undefined;
  openWaitsOf(id: ThreadId): readonly WaitRecord[];
  /** Waits of a run, ended ones too. */
  waitsOfRun(id: RunId): readonly WaitRecord[];
  openWaitsOn(work: WorkId): readonly WaitRecord[];
  /** The earliest deadline of an open wait of the tree. */
  nextDeadline(tree: TreeId): number | null;
  /** Open waits of a tree whose deadline is at or before `at`, the earliest first, at most `limit`. */
  dueWaits(tree: TreeId, at: number, limit: number): readonly WaitRecord[];
  /** Open waits of a tree for threads of other trees (XTR-4). */
  openThreadWaits(tree: TreeId): readonly WaitRecord[];

  request(id: RequestId): RuntimeRequestRecord | undefined;
  openRequestsOf(id: ThreadId): readonly RuntimeRequestRecord[];

  /**
   * Runs of a tree that are not settled, waits and questions that are open, commands that are pending, each kind oldest first:
   * named without being read, so that a broken one is in no other's way.
   */
  openRows(tree: TreeId): readonly OpenRow[];

  transfer(id: TransferId): TransferRecord | undefined;
  transferOfWork(work: WorkId, type: TransferRecord["type"]): TransferRecord | undefined;
  transfers(tree: TreeId, page: PageRequest): Page<TransferRecord>;
  /** Transfers out of a thread or into it, oldest first. */
  transfersOf(id: ThreadId, page: PageRequest): Page<TransferRecord>;
  /** Transfers into a thread that are not consumed, failed or superseded, oldest first. */
  pendingTransfersTo(id: ThreadId): readonly TransferRecord[];
  /** Forks that a provider was asked for and whose outcome is not known, of all trees, oldest first (lineage C5.19). */
  forksInDoubt(): readonly TransferRecord[];
  /** When the newest fork or child was taken of a thread; null while none was. */
  lastTakenOf(id: ThreadId): number | null;
  handoff(id: HandoffId): HandoffRecord | undefined;
  /** Handoffs for a thread, oldest first, superseded ones too. */
  handoffsOf(id: ThreadId, page: PageRequest): Page<HandoffRecord>;

  /** Roots of trees, newest first; of one workspace and in one state where these are given. */
  threads(
    filter: { readonly workspace?: string; readonly state?: ThreadState },
    page: PageRequest,
  ): Page<AgentRecord>;
  /** Whether an open agent of this tree, or any open root, has its workspace in a folder or below it. */
  isWorkedIn(tree: TreeId, folder: string): boolean;
  /** Threads that descend from this root, the root itself too, by age (lineage C1.2). */
  descendants(root: ThreadId, page: PageRequest): Page<AgentRecord>;
  providerThread(id: ProviderThreadId): ProviderThreadRecord | undefined;
  /** All provider threads behind a thread, oldest first. */
  providerThreadsOf(id: ThreadId): readonly ProviderThreadRecord[];
  /** Those, of all threads, whose conversation has this name at their provider, oldest first. */
  providerThreadsNamed(driver: string, nativeId: string): readonly ProviderThreadRecord[];
  snapshot(id: ThreadId, revision: number): SnapshotRecord | undefined;
  compactions(id: ThreadId, page: PageRequest): Page<CompactionRecord>;
  /** The history mirror of a thread, by sequence. */
  history(id: ThreadId, page: PageRequest): Page<HistoryEntry>;
  historyEntry(id: ThreadId, entry: string): HistoryEntry | undefined;
  draft(id: ThreadId): ForkDraft | undefined;
  artifact(id: ArtifactId): ArtifactRecord | undefined;

  /** Events with `seq > after`, oldest first. */
  events(tree: TreeId, after: number, limit: number): readonly RuntimeEvent[];
  lastEvent(tree: TreeId): number;
  receipt(tree: TreeId, key: string): ReceiptRecord | undefined;
  command(id: CommandId): CommandRecord | undefined;
  pendingCommands(tree: TreeId): readonly CommandRecord[];
  /** Mail that others appended by `send` and the owner has not looked at yet, oldest first. */
  arrivals(tree: TreeId): readonly MailRecord[];
  /** Those of these trees that have arrivals or pending commands, of which none is read. */
  withInbox(trees: readonly TreeId[]): readonly TreeId[];
  /** Process groups registered for a tree (REC-4). */
  processGroups(tree: TreeId): readonly ProcessGroup[];
}

export interface ProcessGroup {
  readonly treeId: TreeId;
  readonly threadId: ThreadId;
  readonly runId: RunId | null;
  readonly pgid: number;
  readonly owner: ProcessIdentity;
  /** Start time of the group's leader, so that a reused id is not ended. */
  readonly startedAt: string;
}

/** A view that writes. Reads see the writes made before them. Puts insert or replace by id. */
export interface StoreTx extends StoreView {
  putTree(record: TreeRecord): void;
  putAgent(record: AgentRecord): void;
  /** Gives the next `seq` of its recipient; the limit is the caller's business. A known id or author's key returns the stored row. */
  appendMail(draft: MailDraft): MailRecord;
  /** State, trigger, binding and content reference may change; the counters of the mailbox follow. */
  putMail(record: MailRecord): void;
  /** Moves an unreadable row to the dead letters without reading it. */
  deadLetterUnreadable(id: MailId): void;
  /**
   * Keeps a row that cannot be read aside, as it is, for a put of its id to stand in for it (REC-1). Undefined, and nothing
   * is changed, for a row that can be read or is not there.
   */
  setAside(table: MendableTable, id: string): BrokenRow | undefined;
  /** Adds to the reservations of a mailbox; negative figures give back. */
  reserveMailbox(id: ThreadId, messages: number, bytes: number): void;
  putWork(record: WorkRecord): void;
  putRun(record: RunRecord): void;
  /** Appends after the last item of the thread; the record's `items` must be put by the caller. */
  appendItems(
    id: ThreadId,
    first: number,
    items: readonly (ItemBody & {
      readonly runId: RunId | null;
      readonly step: number;
      readonly at: number;
    })[],
  ): readonly TranscriptItem[];
  putWait(record: WaitRecord): void;
  /** @throws RejectedError `THREAD_INVARIANT_VIOLATION` when another run has asked it. */
  putRequest(record: RuntimeRequestRecord): void;
  putTransfer(record: TransferRecord): void;
  putHandoff(record: HandoffRecord): void;
  putProviderThread(record: ProviderThreadRecord): void;
  /** @throws RejectedError `THREAD_INVARIANT_VIOLATION` when this revision is there already (lineage C11.7). */
  putSnapshot(record: SnapshotRecord): void;
  /** @throws as `putSnapshot`. */
  putCompaction(record: CompactionRecord): void;
  /** An entry whose id is known changes nothing (lineage C13.7); false then. */
  addHistory(record: HistoryEntry): boolean;
  putDraft(record: ForkDraft): void;
  putArtifact(record: ArtifactRecord): void;
  appendEvent(tree: TreeId, id: RuntimeEvent["id"], at: number, draft: EventDraft): RuntimeEvent;
  putReceipt(record: ReceiptRecord): void;
  putCommand(record: CommandRecord): void;
  /** Marks arrivals as seen, up to and including these. */
  takeArrivals(ids: readonly MailId[]): void;
  putProcessGroup(record: ProcessGroup): void;
  removeProcessGroup(tree: TreeId, pgid: number): void;
}

/** The truth of the runtime: what a store adapter does. */
export interface Store {
  readonly kind: string;
  /** For messages: the file, or "memory". */
  readonly name: string;
  /** Durable on return; results in the order of the drafts. Wants no lease. Capacity is the recipient's tree's limit (MBX-8). */
  send(mail: readonly MailDraft[]): Promise<readonly SendResult[]>;
  /** A row for the owner's command inbox. Wants no lease. A known id changes nothing (S6). */
  command(record: CommandRecord): Promise<void>;
  /** @throws RejectedError `NOT_OWNER` while another owner's lease lives; its details name the owner. */
  claim(request: ClaimRequest): Promise<Lease>;
  /** Renews; answers the leases that are still ours. */
  heartbeat(leases: readonly Lease[], leaseMs: number): Promise<readonly Lease[]>;
  /**
   * Gives a tree back. Answers `kept`, and keeps it, while trigger-turn mail or a command waits, unless `abandon` is set,
   * which leaves the tree claimable at once.
   * @throws RejectedError `FENCED` when the lease is no longer the current one; nothing is changed.
   */
  release(lease: Lease, options?: { readonly abandon?: boolean }): Promise<"released" | "kept">;
  /** Trees without a live owner that have something to do: trigger-turn mail, a command, or an unsettled run. */
  claimable(limit: number, provenDead: ProvenDead): Promise<readonly TreeId[]>;
  commit<T>(lease: Lease, plan: (tx: StoreTx) => T): Promise<T>;
  read<T>(plan: (view: StoreView) => T): Promise<T>;
  /**
   * A number that changes when another connection or another owner may have left mail or a command for any tree; `withInbox`
   * tells for which.
   */
  changes(): Promise<number>;
  /** Called, at best, when mail or a command of another process arrives. */
  onHint(tree: TreeId, callback: () => void): Disposable;
  close(): Promise<void>;
}
