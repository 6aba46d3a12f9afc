/** Commands of other processes, and receipts of commands that carry an idempotency key (REC-2, SPN-6). */
import type { CommandId, TreeId } from "./ids.ts";
import type { Json, JsonObject } from "./json.ts";

export type CommandVerb = "interrupt" | "close" | "followup" | "send" | "answer" | "raise_budget";

export interface CommandRecord {
  readonly id: CommandId;
  readonly treeId: TreeId;
  readonly verb: CommandVerb;
  readonly arguments: JsonObject;
  readonly state: "pending" | "done" | "refused";
  /** The receipt, or the error's JSON when refused. */
  readonly answer: Json;
  readonly createdAt: number;
  readonly doneAt: number | null;
}

/** Same key and arguments: same receipt, no second effect. Other arguments: `COMMAND_ID_CONFLICT`. */
export interface ReceiptRecord {
  readonly treeId: TreeId;
  /** `<scope>:<key>`; the scope is agent, run, step and call for tools, the token elsewhere. */
  readonly key: string;
  readonly argumentsDigest: string;
  readonly answer: Json;
  readonly createdAt: number;
}
