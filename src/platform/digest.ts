/** SHA-256, the one hash of the runtime: artifacts, receipts, tokens, policies, transfers. */
import { createHash } from "node:crypto";

export function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** A text that others made up, as part of a key: a store would change what is not well-formed, and two would be one. */
export function keyText(text: string): string {
  return text.isWellFormed() ? text : `malformed:${sha256(JSON.stringify(text))}`;
}
