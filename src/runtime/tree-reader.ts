/**
 * A tree as a process sees it that does not own it (REC-2): everything is read from the store, nothing is changed, and what
 * only the owner's memory knows (residency, positions in the queue) is not told.
 */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RuntimeEvent } from "../protocol/events.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { liveOwner, type Owner } from "../control/live-owner.ts";
import type { AgentSummary, AskedRequest, ListRequest, OwedWork } from "../control/listing.ts";
import { NOT_LIVE, openRequests, owed, owes } from "../control/listing.ts";
import { type NativeAgent, nativeAgents } from "../control/native-agents.ts";
import {
  PassedOver,
  readableAgents,
  readableRequests,
  type UnreadableRow,
  unreadableRows,
} from "../control/pass-over.ts";
import { resolveTarget } from "../control/resolve-target.ts";
import { codexStatus } from "../control/status.ts";
import { type Explanation, why } from "../control/why.ts";
import { provenDead as isProvenDead } from "../platform/process-identity.ts";
import type { Page, PageRequest, Store } from "../store/port.ts";

export type { Owner } from "../control/live-owner.ts";
export type { AgentSummary, AskedRequest, OwedWork } from "../control/listing.ts";
export type { NativeAgent } from "../control/native-agents.ts";
export type { UnreadableRow } from "../control/pass-over.ts";

/** How many rows a page has that names none. */
const PAGE = 100;

export class TreeReader {
  readonly id: TreeId;
  readonly #store: Store;
  readonly #provenDead: ProvenDead;

  constructor(store: Store, id: TreeId, provenDead: ProvenDead = isProvenDead) {
    this.id = id;
    this.#store = store;
    this.#provenDead = provenDead;
  }

  async record(): Promise<TreeRecord> {
    const record = await this.#store.read((view) => view.tree(this.id));
    if (record !== undefined) return record;
    throw new RejectedError("AGENT_NOT_FOUND", `no tree ${this.id} is in this store (${this.#store.name}).`, {
      tree: this.id,
    });
  }

  /** The process whose lease lives; null when nobody runs the tree. */
  owner(): Promise<Owner | null> {
    return this.#store.read((view) => liveOwner(view, this.id, this.#provenDead));
  }

  /** @throws RejectedError `AGENT_NOT_FOUND`, `INVALID_ARGUMENT`. */
  agent(reference: string): Promise<AgentRecord> {
    return this.#store.read((view) => resolveTarget(view, this.id, ROOT_PATH, reference, "agent"));
  }

  /** Agents of a page, and the rows that keep others of it from being shown (REC-1). */
  agents(request: ListRequest = {}): Promise<{
    readonly agents: readonly AgentSummary[];
    readonly next: string | null;
    readonly unreadable: readonly UnreadableRow[];
  }> {
    return this.#store.read((view) => readableAgents(view, this.id, request));
  }

  /** Agents of providers' own below these, each with its state: shown, and never gone on with here (lineage C8.1). */
  nativeAgents(of: readonly Pick<AgentSummary, "path" | "threadId">[]): Promise<readonly NativeAgent[]> {
    return this.#store.read((view) => nativeAgents(view, of));
  }

  /** Rows that keep agents, works and what is under way from being seen (REC-1). */
  unreadable(): Promise<readonly UnreadableRow[]> {
    return this.#store.read((view) => unreadableRows(view, this.id));
  }

  /** The status words of the `codex` profile, by path; who is loaded is not known, and taken for loaded. */
  codexStatuses(paths: readonly AgentRecord["path"][]) {
    return this.#store.read((view) =>
      paths.map((path) => {
        const agent = view.agentAt(this.id, path)!;
        return codexStatus(view, agent, { resident: () => true, ran: () => agent.runs > 0 });
      }),
    );
  }

  /** Questions and approvals that wait for an answer, of all agents or of one (WAI-2). */
  requests(of?: ThreadId): Promise<readonly AskedRequest[]> {
    return this.#store.read((view) => openRequests(view, this.id, of));
  }

  /** All that wait for an answer in the tree, and the rows that keep others from being seen (REC-1). */
  asked(): Promise<{
    readonly requests: readonly AskedRequest[];
    readonly unreadable: readonly UnreadableRow[];
  }> {
    return this.#store.read((view) => {
      const passed = new PassedOver();
      return { requests: readableRequests(view, this.id, passed), unreadable: passed.rows };
    });
  }

  works(page: Partial<PageRequest> = {}): Promise<Page<WorkRecord>> {
    return this.#store.read((view) => view.works(this.id, { limit: PAGE, ...page }));
  }

  transfers(page: Partial<PageRequest> = {}): Promise<Page<TransferRecord>> {
    return this.#store.read((view) => view.transfers(this.id, { limit: PAGE, ...page }));
  }

  /** Works that others owe to an agent, and works that it owes (WRK-9). */
  async debts(
    reference: string,
  ): Promise<{ readonly owed: readonly OwedWork[]; readonly owes: readonly OwedWork[] }> {
    return this.#store.read((view) => {
      const agent = resolveTarget(view, this.id, ROOT_PATH, reference, "agent");
      return { owed: owed(view, agent, NOT_LIVE), owes: owes(view, agent, NOT_LIVE) };
    });
  }

  log(after = 0, limit = 500): Promise<readonly RuntimeEvent[]> {
    return this.#store.read((view) => view.events(this.id, after, limit));
  }

  lastEvent(): Promise<number> {
    return this.#store.read((view) => view.lastEvent(this.id));
  }

  /** Why an agent does what it does, or does not (OBS-3). */
  why(reference: string): Promise<Explanation> {
    return this.#store.read((view) => {
      const agent = resolveTarget(view, this.id, ROOT_PATH, reference, "agent");
      const owner = liveOwner(view, this.id, this.#provenDead);
      const name = owner === null ? null : `process ${owner.pid} on ${owner.host}`;
      return why(view, agent, NOT_LIVE, name);
    });
  }
}
