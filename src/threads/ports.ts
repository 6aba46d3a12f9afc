/** What the commands on threads are given by the runtime that has them: its store, its trees, and what its providers can do. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { Lineage } from "../protocol/thread.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import type { Clock } from "../platform/clock.ts";
import type { CallOptions } from "../platform/abortable.ts";
import type { Ids } from "../platform/ids.ts";
import type { Logger } from "../platform/logger.ts";
import type { StartProcess } from "../platform/process.ts";
import type { Redact } from "../platform/redact.ts";
import type { WorkspaceCapture } from "../platform/workspace/port.ts";
import type { AgentControl } from "../control/agent-control.ts";
import type { Shared } from "../control/shared.ts";
import type { Look, Transaction } from "../control/transaction.ts";
import type { ChooseSummariser } from "../lineage/handoff/summarise.ts";
import type { NativeSession, ProviderAdapter } from "../providers/port.ts";
import type { Lease, Store, StoreTx } from "../store/port.ts";
import type { ThreadOptions } from "./create.ts";
import type { CapabilitiesOf } from "./fork.ts";

export interface ThreadPorts {
  readonly store: Store;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly redact: Redact;
  readonly lineage: LineageLimits;
  readonly clock: Clock;
  /** What has taken the checkpoints of workspaces. */
  readonly capture: WorkspaceCapture;
  /** Who writes a summary of a handoff; it answers null where none are wanted. */
  readonly summariser: ChooseSummariser;
  readonly providers: Readonly<Record<string, ProviderAdapter>>;
  readonly provenDead: ProvenDead;
  /** The tree of a thread, opened if this process does not own it yet. */
  open(tree: TreeId, options?: CallOptions): Promise<AgentControl>;
  /** For a tree that is about to be made; given back when `act` is done. */
  withNewTree<T>(tree: TreeId, act: (lease: Lease) => Promise<T>): Promise<T>;
  /** Makes a tree whose root is a thread in this line, and gives it back. `within` is a part of its commit. */
  make(
    tree: ThreadId,
    options: Omit<ThreadOptions, "commandId">,
    lineage: Lineage,
    within: (tx: StoreTx) => void,
  ): Promise<void>;
  /**
   * One commit on a tree: of its owner, when that is this process, else of a claim that lasts as long. Nothing is recovered
   * and nothing runs by it. @throws RejectedError `NOT_OWNER` while another process owns it.
   */
  apply<T>(tree: TreeId, plan: (tx: Transaction) => T): Promise<T>;
  /** The same for a plan that changes nothing; anybody may look. */
  look<T>(tree: TreeId, plan: (look: Look) => T): Promise<T>;
  /** Whether this process owns the tree, or is opening it or giving it back. */
  isMine(tree: TreeId): boolean;
  readonly forking: Shared["forking"];
  /** The session that a loaded agent has with this provider; null for one that is not loaded, or is with another. */
  sessionOf(agent: AgentRecord, provider: string): Promise<NativeSession | null>;
  /** How a session that is opened to read starts processes: registered with the agent's tree, where it is this process's. */
  processesOf(agent: AgentRecord): Promise<StartProcess>;
}

/** Of every adapter, asked before a plan, for a plan asks nobody. One that does not answer is not there to be asked. */
export async function capabilitiesOf(providers: ThreadPorts["providers"]): Promise<CapabilitiesOf> {
  const known = new Map<string, ThreadCapabilities>();
  const ask = async ([name, adapter]: [string, ProviderAdapter]): Promise<void> => {
    known.set(name, adapter.loop === "ours" ? adapter.threads : await adapter.capabilities());
  };
  await Promise.allSettled(Object.entries(providers).map(ask));
  return (provider) => known.get(provider) ?? null;
}
