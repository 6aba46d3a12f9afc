/**
 * Handoffs as values: ready, delivered once, superseded (lineage C1.10, C2.6). Each function gives a new record; storing it is
 * the caller's business. A digest covers all but status, successor and delivery.
 */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import type { Redact } from "../platform/redact.ts";
import { byteLength } from "../platform/text.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { HandoffId, RunId } from "../protocol/ids.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import { illegal } from "./transfer.ts";

/** What a handoff says of itself beside its text. */
export type HandoffAbout = Pick<
  HandoffRecord,
  | "kind"
  | "strategy"
  | "fromProviderThreadIds"
  | "toProviderThreadId"
  | "coveredRuns"
  | "coveredRunOrdinals"
  | "payload"
  | "budget"
  | "createdByProvider"
>;

/** Of a text that is carried as it is: a subagent's history or result. */
const WHOLE_TEXT: HandoffAbout = {
  kind: "portable_context",
  strategy: "full_thread_summary",
  fromProviderThreadIds: [],
  toProviderThreadId: null,
  coveredRuns: [],
  coveredRunOrdinals: null,
  payload: { sections: [], items: 0, omittedItemIds: [], checkpointRef: null, snapshotRef: null },
  budget: { limit: 0, used: 0, unit: "bytes" },
  createdByProvider: null,
};

/** The text of a transfer, redacted and ready; it never changes afterwards. */
export function readyHandoff(input: {
  readonly id: HandoffId;
  readonly transfer: Pick<TransferRecord, "id" | "treeId" | "sourceThreadId" | "targetThreadId">;
  readonly text: string;
  readonly coveredRanges: HandoffRecord["coveredRanges"];
  readonly redact: Redact;
  readonly at: number;
  readonly about?: Partial<HandoffAbout>;
}): HandoffRecord {
  const summaryText = input.redact(input.text);
  const lasting = {
    id: input.id,
    transferId: input.transfer.id,
    treeId: input.transfer.treeId,
    sourceThreadId: input.transfer.sourceThreadId,
    threadId: input.transfer.targetThreadId,
    ...WHOLE_TEXT,
    ...input.about,
    summaryText,
    coveredRanges: input.coveredRanges,
    bytes: byteLength(summaryText),
    createdAt: input.at,
  } as const;
  return {
    ...lasting,
    targetRunId: null,
    status: "ready",
    supersededBy: null,
    deliveredAt: null,
    updatedAt: input.at,
    digest: sha256(canonicalJson(lasting)),
  };
}

/** @throws RejectedError `THREAD_CONTEXT_TAMPERED` for one whose text or coverage is not what was stored (C1.10, C11.11). */
export function verifyHandoff(record: HandoffRecord): HandoffRecord {
  const {
    digest,
    targetRunId: _1,
    status: _2,
    supersededBy: _3,
    deliveredAt: _4,
    updatedAt: _5,
    ...lasting
  } = record;
  if (sha256(canonicalJson(lasting)) === digest) return record;
  const { id, threadId } = record;
  throw new RejectedError(
    "THREAD_CONTEXT_TAMPERED",
    `handoff ${id} is not what was stored; its text was sent to nobody. Write it anew, or restore it from a copy of the store.`,
    { handoffId: id, threadId },
  );
}

/** Its text was in an accepted request, once. */
export function deliverHandoff(record: HandoffRecord, runId: RunId | null, at: number): HandoffRecord {
  if (record.status !== "ready" || record.deliveredAt !== null) throw illegal(record, "delivered");
  return { ...record, targetRunId: runId, deliveredAt: at, updatedAt: at };
}

/** Replaced, or its run was rolled back; its text stays as it was. */
export function supersedeHandoff(
  record: HandoffRecord,
  at: number,
  by: HandoffId | null = null,
): HandoffRecord {
  if (record.status !== "ready") throw illegal(record, "superseded");
  return { ...record, status: "superseded", supersededBy: by, updatedAt: at };
}
