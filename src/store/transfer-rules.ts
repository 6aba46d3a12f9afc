/** What every store holds transfers to: which of them await their target, and which types there are. */
import { RejectedError } from "../protocol/errors.ts";
import { TRANSFER_TYPES, type TransferRecord } from "../protocol/transfer.ts";

export function isPending({ status }: TransferRecord): boolean {
  return status === "pending" || status === "resolved_native" || status === "resolved_portable";
}

/** A provider was asked for it, and what became of that is not known (lineage C5.19). */
export function isInDoubt(one: TransferRecord): boolean {
  return one.type === "fork" && one.intent !== null && isPending(one);
}

/** A thread was made of another as it stood then. */
export function isTaken({ type }: TransferRecord): boolean {
  return type === "fork" || type === "subagent_spawn";
}

/**
 * Its type is one of the five, a resolution names what carried the context, and what is consumed says when, by which run and
 * how (lineage C1.9).
 * @throws RejectedError `THREAD_INVARIANT_VIOLATION`
 */
export function requireTransfer(record: TransferRecord): void {
  const fault = faultOf(record);
  if (fault === null) return;
  const { id, type, status } = record;
  throw new RejectedError("THREAD_INVARIANT_VIOLATION", `The transfer ${id} ${fault}.`, { id, type, status });
}

function faultOf({ type, status, resolution, consumedAt, targetRunId }: TransferRecord): string | null {
  if (!TRANSFER_TYPES.includes(type)) {
    return `has the type ${JSON.stringify(type)}; the types are ${TRANSFER_TYPES.join(", ")}`;
  }
  if (resolution !== null) {
    const reference =
      resolution.strategy === "native_fork" ? resolution.providerThreadRef : resolution.contextHandoffId;
    if (reference === undefined || reference === null)
      return `was resolved by ${resolution.strategy} and does not say by which`;
  }
  if (resolution === null && (status === "resolved_native" || status === "resolved_portable"))
    return `is ${status} without a resolution`;
  if (status !== "consumed") return null;
  // The result of a host-driven root's work is taken in by nobody's run.
  if (consumedAt === null || (targetRunId === null && type !== "subagent_result"))
    return "is consumed and does not say when or by which run";
  return null;
}
