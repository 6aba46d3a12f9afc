/**
 * What the invariants look at: a tree as it stands in the store, read once, and what was seen of it before.
 *
 * - P1 A picture reads a `StoreView` and nothing else; transcripts and events are read from where the last look ended.
 */
import type { AgentRecord, TreeRecord } from "../protocol/agent.ts";
import type { RuntimeEvent } from "../protocol/events.ts";
import type {
  HandoffId,
  MailId,
  ProviderThreadId,
  RunId,
  ThreadId,
  TransferId,
  WorkId,
} from "../protocol/ids.ts";
import type { MailboxCapacity, MailRecord } from "../protocol/mail.ts";
import { PROFILES, type Profile } from "../protocol/profile.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { Page, PageRequest, StoreView } from "../store/port.ts";

/** One promise that does not hold. */
export interface Violation {
  /** The contract's id, such as `MBX-7`. */
  readonly contract: string;
  readonly text: string;
}

/** A tree as it stands in the store, read once. */
export interface Picture {
  readonly view: StoreView;
  readonly tree: TreeRecord;
  readonly profile: Profile;
  readonly agents: readonly AgentRecord[];
  readonly agentOf: ReadonlyMap<ThreadId, AgentRecord>;
  readonly works: readonly WorkRecord[];
  readonly workOf: ReadonlyMap<WorkId, WorkRecord>;
  /** Oldest first. */
  readonly mailOf: ReadonlyMap<ThreadId, readonly MailRecord[]>;
  readonly runsOf: ReadonlyMap<ThreadId, readonly RunRecord[]>;
  readonly transfers: readonly TransferRecord[];
  readonly handoffOf: ReadonlyMap<HandoffId, HandoffRecord>;
  readonly providerThreadsOf: ReadonlyMap<ThreadId, readonly ProviderThreadRecord[]>;
  /** Transcript items since the last look. */
  readonly newItems: readonly (readonly [ThreadId, readonly TranscriptItem[]])[];
  /** Events since the last look. */
  readonly newEvents: readonly RuntimeEvent[];
  readonly memory: Memory;
}

/** What a checker remembers between two looks. */
export interface Memory {
  readonly mail: Map<MailId, MailRecord>;
  readonly works: Map<WorkId, WorkRecord>;
  readonly runs: Map<RunId, RunRecord>;
  readonly agents: Map<ThreadId, AgentRecord>;
  readonly transfers: Map<TransferId, TransferRecord>;
  readonly handoffs: Map<HandoffId, HandoffRecord>;
  readonly providerThreads: Map<ProviderThreadId, ProviderThreadRecord>;
  /** Digests of the snapshots of a thread, by revision from 1. */
  readonly contexts: Map<ThreadId, readonly string[]>;
  readonly items: Map<ThreadId, number>;
  /** How often a message stands in a transcript, and in how many outputs of waits it was handed out. */
  readonly shown: Map<MailId, { items: number; handed: number }>;
  /** Events by what they are about: `work.ended wrk_…`. */
  readonly events: Map<string, number>;
  /** Messages and bytes of mailboxes, reservations included. */
  readonly boxes: Map<ThreadId, MailboxCapacity>;
  /** Budgets that are passed, and how often each run has used something since. */
  readonly passed: Map<string, { readonly limit: number; readonly runs: Map<RunId, number> }>;
  lastEvent: number;
}

export type Formula = (picture: Picture) => Iterable<Violation>;

export function newMemory(): Memory {
  return {
    mail: new Map(),
    works: new Map(),
    runs: new Map(),
    agents: new Map(),
    transfers: new Map(),
    handoffs: new Map(),
    providerThreads: new Map(),
    contexts: new Map(),
    items: new Map(),
    shown: new Map(),
    events: new Map(),
    boxes: new Map(),
    passed: new Map(),
    lastEvent: 0,
  };
}

export function takePicture(view: StoreView, tree: TreeRecord, memory: Memory): Picture {
  const { treeId } = tree;
  const agents = all((page) => view.agents(treeId, "/root", { ...page, closed: true }));
  const works = all((page) => view.works(treeId, page));
  const newItems = agents.map((agent) => {
    const seen = memory.items.get(agent.threadId) ?? 0;
    return [
      agent.threadId,
      seen === agent.items ? [] : view.items(agent.threadId, seen, agent.items - seen),
    ] as const;
  });
  return {
    view,
    tree,
    profile: PROFILES[tree.profile],
    agents,
    agentOf: new Map(agents.map((agent) => [agent.threadId, agent])),
    works,
    workOf: new Map(works.map((work) => [work.id, work])),
    mailOf: new Map(agents.map(({ threadId }) => [threadId, all((page) => view.mailOf(threadId, page))])),
    runsOf: new Map(agents.map(({ threadId }) => [threadId, all((page) => view.runsOf(threadId, page))])),
    transfers: all((page) => view.transfers(treeId, page)),
    handoffOf: new Map(
      agents
        .flatMap(({ threadId }) => all((page) => view.handoffsOf(threadId, page)))
        .map((handoff) => [handoff.id, handoff]),
    ),
    providerThreadsOf: new Map(
      agents.map(({ threadId }) => [threadId, view.providerThreadsOf(threadId)] as const),
    ),
    newItems,
    newEvents: view.events(treeId, memory.lastEvent, view.lastEvent(treeId) - memory.lastEvent),
    memory,
  };
}

/** What the formulas compare the next picture with. */
export function remember(picture: Picture): void {
  const { agents, works, mailOf, runsOf, transfers, handoffOf, newItems, newEvents, memory } = picture;
  for (const agent of agents) memory.agents.set(agent.threadId, agent);
  for (const transfer of transfers) memory.transfers.set(transfer.id, transfer);
  for (const handoff of handoffOf.values()) memory.handoffs.set(handoff.id, handoff);
  for (const rows of picture.providerThreadsOf.values())
    for (const record of rows) memory.providerThreads.set(record.id, record);
  for (const work of works) memory.works.set(work.id, work);
  for (const rows of mailOf.values()) for (const mail of rows) memory.mail.set(mail.id, mail);
  for (const rows of runsOf.values()) for (const run of rows) memory.runs.set(run.id, run);
  for (const [threadId, items] of newItems) {
    memory.items.set(threadId, (memory.items.get(threadId) ?? 0) + items.length);
  }
  memory.lastEvent = newEvents.at(-1)?.seq ?? memory.lastEvent;
}

const PAGE = 1000;

function all<T>(page: (request: PageRequest) => Page<T>): T[] {
  const found: T[] = [];
  let after: string | null = null;
  do {
    const { rows, next }: Page<T> = page({ after, limit: PAGE });
    for (const row of rows) found.push(row);
    after = next;
  } while (after !== null);
  return found;
}

export function pathOf(picture: Picture, threadId: ThreadId): string {
  return picture.agentOf.get(threadId)?.path ?? threadId;
}

export function broken(contract: string, text: string): Violation {
  return { contract, text };
}
