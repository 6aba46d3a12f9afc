/** Which transfers still await their target. */
import type { TransferRecord } from "../protocol/transfer.ts";

export function isPending({ status }: TransferRecord): boolean {
  return status === "pending" || status === "resolved_native" || status === "resolved_portable";
}
