/**
 * Transfers as values: how they begin, and every move they may make (lineage C1.9, C2.5).
 * Each function gives a new record; storing it is the caller's business.
 *
 * - X1 A digest covers what never changes of a record: what moved, from where and to whom.
 * - X2 `consumed` has a time, a run and a resolution. Nothing carried: no resolution. The result of a host-driven root's
 *   work: no run, for that root has none.
 * - X3 A move that is not in the table is a bug and throws `ILLEGAL_TRANSITION`.
 */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import { InvariantError } from "../protocol/errors.ts";
import type { HandoffId, IntentId, RunId, ThreadId, TransferId, TreeId, WorkId } from "../protocol/ids.ts";
import type {
  ContextSourcePoint,
  HandoffRecord,
  TransferRecord,
  TransferStatus,
  RequestedStrategy,
} from "../protocol/transfer.ts";
import type { WorkEnding } from "../protocol/work.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import type { ForkStrategy } from "../protocol/thread.ts";
import type { ForkTurns } from "./project-history.ts";

/** Where each status may go. What has no row is final. */
const MOVES: Readonly<Partial<Record<TransferStatus, readonly TransferStatus[]>>> = {
  pending: ["resolved_native", "resolved_portable", "consumed", "failed", "superseded"],
  resolved_native: ["consumed", "failed", "superseded"],
  resolved_portable: ["consumed", "failed", "superseded"],
};

/** `requestedStrategy` of a transfer that carries no context; it alone is consumed without being resolved. */
const NOTHING_CARRIED = "none" satisfies RequestedStrategy;

interface TransferInput {
  readonly id: TransferId;
  readonly treeId: TreeId;
  readonly source: ThreadId;
  readonly target: ThreadId;
  readonly sourcePoint: ContextSourcePoint;
  readonly sourceProvider: string | null;
  readonly targetProvider: string | null;
  readonly at: number;
}

/** From the parent to its new child, `pending`. Without `carries` it is consumed with no handoff (C8.3). */
export function spawnTransfer(
  input: TransferInput & {
    readonly workId: WorkId;
    readonly turns: ForkTurns;
    readonly carries: boolean;
    readonly createdBy: TransferRecord["createdBy"];
  },
): TransferRecord {
  return begin(input, {
    type: "subagent_spawn",
    workId: input.workId,
    basePoint: null,
    requestedStrategy: input.carries ? "portable_context" : NOTHING_CARRIED,
    note: String(input.turns),
    createdBy: input.createdBy,
  });
}

/** From the executor to whoever is owed the result, `pending` (C8.6). It always carries text. */
export function resultTransfer(
  input: TransferInput & { readonly workId: WorkId; readonly ending: WorkEnding },
): TransferRecord {
  return begin(input, {
    type: "subagent_result",
    workId: input.workId,
    basePoint: null,
    requestedStrategy: "portable_context",
    note: input.ending,
    createdBy: "system",
  });
}

/** From a source point to a new thread, `pending`; its first dispatch decides how (C5.4, C5.17). */
export function forkTransfer(
  input: TransferInput & {
    readonly strategy: ForkStrategy;
    readonly sourceOutcome: TransferRecord["sourceOutcome"];
    /** False for a cut before the first message: there is nothing to carry (C5.10). */
    readonly carries: boolean;
    readonly createdBy: TransferRecord["createdBy"];
  },
): TransferRecord {
  return {
    ...begin(input, {
      type: "fork",
      workId: null,
      basePoint: null,
      requestedStrategy: input.carries ? input.strategy : NOTHING_CARRIED,
      note: "",
      createdBy: input.createdBy,
    }),
    sourceOutcome: input.sourceOutcome,
  };
}

/** From a fork back into its parent: what lies between the point of the fork and the source point (C7.2). */
export function mergeBackTransfer(
  input: TransferInput & {
    readonly basePoint: ContextSourcePoint;
    readonly createdBy: TransferRecord["createdBy"];
  },
): TransferRecord {
  return begin(input, {
    type: "merge_back",
    workId: null,
    basePoint: input.basePoint,
    requestedStrategy: "delta_context",
    note: "",
    createdBy: input.createdBy,
  });
}

/** Within one thread, to the provider that runs next: since `basePoint`, or everything (C4.12). */
export function providerHandoffTransfer(
  input: Omit<TransferInput, "target"> & {
    readonly basePoint: ContextSourcePoint | null;
    readonly staleness: TransferRecord["staleness"];
    readonly createdBy: TransferRecord["createdBy"];
  },
): TransferRecord {
  return {
    ...begin(
      { ...input, target: input.source },
      {
        type: "provider_handoff",
        workId: null,
        basePoint: input.basePoint,
        requestedStrategy: input.basePoint === null ? "portable_context" : "delta_context",
        note: "",
        createdBy: input.createdBy,
      },
    ),
    staleness: input.staleness,
  };
}

function begin(
  input: TransferInput,
  kind: Pick<TransferRecord, "type" | "workId" | "basePoint" | "requestedStrategy" | "note" | "createdBy">,
): TransferRecord {
  const lasting = {
    id: input.id,
    treeId: input.treeId,
    ...kind,
    sourceThreadId: input.source,
    targetThreadId: input.target,
    sourcePoint: input.sourcePoint,
    sourceProvider: input.sourceProvider,
    targetProvider: input.targetProvider,
    createdAt: input.at,
  };
  return {
    ...lasting,
    targetRunId: null,
    status: "pending",
    resolution: null,
    sourceOutcome: null,
    staleness: [],
    intent: null,
    staleBase: false,
    supersededBy: null,
    error: null,
    updatedAt: input.at,
    consumedAt: null,
    digest: sha256(canonicalJson(lasting)),
  };
}

/** Names the handoff that holds what is carried. */
export function resolvePortable(
  record: TransferRecord,
  handoff: Pick<HandoffRecord, "id" | "kind">,
  at: number,
): TransferRecord {
  if (record.requestedStrategy === NOTHING_CARRIED) throw illegal(record, "resolved_portable");
  return move(record, "resolved_portable", at, {
    resolution: { strategy: handoff.kind, contextHandoffId: handoff.id },
  });
}

/** The provider has forked its own conversation. */
export function resolveNative(record: TransferRecord, ref: NativeRef, at: number): TransferRecord {
  if (record.requestedStrategy === NOTHING_CARRIED) throw illegal(record, "resolved_native");
  return move(record, "resolved_native", at, {
    resolution: { strategy: "native_fork", providerThreadRef: ref },
  });
}

/** Written before the provider is asked to fork, so that a crash leaves a trace (C5.19). */
export function intendNative(record: TransferRecord, id: IntentId, at: number): TransferRecord {
  if (record.status !== "pending") throw illegal(record, "resolved_native");
  return { ...record, intent: { id, at }, updatedAt: at };
}

/** Another text for the same way: written anew for another run, or at somebody's wish (C4.13, C3.11). */
export function replaceHandoff(
  record: TransferRecord,
  handoff: Pick<HandoffRecord, "id" | "kind">,
  at: number,
): TransferRecord {
  if (record.status !== "resolved_portable") throw illegal(record, "resolved_portable");
  return {
    ...record,
    resolution: { strategy: handoff.kind, contextHandoffId: handoff.id },
    updatedAt: at,
  };
}

/** The handoff that a portable resolution names. */
export function handoffOf({ resolution }: Pick<TransferRecord, "resolution">): HandoffId | null {
  return resolution === null || resolution.strategy === "native_fork" ? null : resolution.contextHandoffId;
}

/**
 * Taken in by an accepted run, `nothing` where there was nothing to tell; by nobody's run where a host-driven root has fetched a result.
 * @throws InvariantError also where it is not resolved and something was to be carried.
 */
export function consume(
  record: TransferRecord,
  by: { readonly runId: RunId; readonly nothing?: boolean } | { readonly hostDriven: true },
  at: number,
): TransferRecord {
  const byHost = "hostDriven" in by;
  const nothing = record.requestedStrategy === NOTHING_CARRIED || (!byHost && by.nothing === true);
  const unresolved = record.status === "pending" && !nothing;
  if (unresolved || (byHost && record.type !== "subagent_result")) throw illegal(record, "consumed");
  return move(record, "consumed", at, { consumedAt: at, targetRunId: byHost ? null : by.runId });
}

export function fail(record: TransferRecord, error: string, at: number): TransferRecord {
  return move(record, "failed", at, { error });
}

export function supersede(record: TransferRecord, at: number, by: TransferId | null = null): TransferRecord {
  return move(record, "superseded", at, { supersededBy: by });
}

function move(
  record: TransferRecord,
  to: TransferStatus,
  at: number,
  changes: Partial<
    Pick<TransferRecord, "resolution" | "consumedAt" | "targetRunId" | "error" | "supersededBy">
  >,
): TransferRecord {
  if (MOVES[record.status]?.includes(to) !== true) throw illegal(record, to);
  // Whoever has moved on asks for no fork any more.
  return { ...record, ...changes, intent: null, status: to, updatedAt: at };
}

/** The head of a thread or of one of its runs, whole. */
export function wholePoint(
  threadId: ThreadId,
  at: { readonly items: number; readonly ordinal: number; readonly runId?: RunId | null },
): ContextSourcePoint {
  return {
    threadId,
    runId: at.runId ?? null,
    checkpointId: null,
    ordinal: at.ordinal,
    items: at.items,
    turnItemId: null,
    providerThreadRef: null,
    providerTurnRef: null,
    cut: "inclusive",
  };
}

export function illegal(
  record: Pick<TransferRecord | HandoffRecord, "id" | "status">,
  to: string,
): InvariantError {
  return new InvariantError(
    `${record.id} is ${record.status} and cannot become ${to}`,
    { id: record.id, from: record.status, to },
    "ILLEGAL_TRANSITION",
  );
}
