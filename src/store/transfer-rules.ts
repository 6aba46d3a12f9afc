/** What every store holds transfers to: which of them await their target, and which types there are. */
import { RejectedError } from "../protocol/errors.ts";
import { TRANSFER_TYPES, type TransferRecord } from "../protocol/transfer.ts";

export function isPending({ status }: TransferRecord): boolean {
  return status === "pending" || status === "resolved_native" || status === "resolved_portable";
}

/** @throws RejectedError `THREAD_INVARIANT_VIOLATION` */
export function requireTransferType({ id, type }: TransferRecord): void {
  if (TRANSFER_TYPES.includes(type)) return;
  throw new RejectedError(
    "THREAD_INVARIANT_VIOLATION",
    `The transfer ${id} has the type ${JSON.stringify(type)}; the types are ${TRANSFER_TYPES.join(", ")}.`,
    { id, type },
  );
}
