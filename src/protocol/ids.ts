/**
 * Identifiers: a prefix that names the kind, then 21 characters of a 62-letter alphabet. They are minted by
 * `platform/ids` and never parsed for meaning; the prefix is there for people and for early refusal of a foreign id.
 */
import { z } from "zod";

/** Names a thread, and so an agent. */
export type ThreadId = `thread_${string}`;
/** A tree is named by its root's thread. */
export type TreeId = ThreadId;
/** Names a message. */
export type MailId = `msg_${string}`;
/** Names a work. */
export type WorkId = `wrk_${string}`;
/** Names a run. */
export type RunId = `run_${string}`;
export type WaitId = `wait_${string}`;
/** Names a transfer. */
export type TransferId = `xfr_${string}`;
/** Names a handoff. */
export type HandoffId = `hnd_${string}`;
/** Names an artifact: what was too large for a message. */
export type ArtifactId = `art_${string}`;
/** Names a question or an approval. */
export type RequestId = `req_${string}`;
export type CommandId = `cmd_${string}`;
export type EventId = `evt_${string}`;
/** Names a conversation of a provider. */
export type ProviderThreadId = `pth_${string}`;
/** Names what a run has left when it had settled. */
export type CheckpointId = `ckp_${string}`;
export type PinId = `pin_${string}`;
export type IntentId = `int_${string}`;

export const ID_PREFIXES = [
  "thread",
  "msg",
  "wrk",
  "run",
  "wait",
  "xfr",
  "hnd",
  "art",
  "req",
  "cmd",
  "evt",
  "tok",
  "pth",
  "pin",
  "int",
] as const;
export type IdPrefix = (typeof ID_PREFIXES)[number];

export const idOf = <Prefix extends IdPrefix>(prefix: Prefix) =>
  z.custom<`${Prefix}_${string}`>(
    (value) => typeof value === "string" && value.startsWith(`${prefix}_`),
    `is no id of this kind; it looks like ${prefix}_…`,
  );

export const artifactIdSchema = z
  .string()
  .regex(/^art_[A-Za-z0-9]{21}$/)
  .transform((value) => value as ArtifactId);

export function isThreadId(value: string): value is ThreadId {
  return /^thread_[A-Za-z0-9]{21}$/.test(value);
}

export function isWorkId(value: string): value is WorkId {
  return /^wrk_[A-Za-z0-9]{21}$/.test(value);
}

/** Providers mint them, so no more than the prefix is known. */
export function isRequestId(value: string): value is RequestId {
  return value.startsWith("req_");
}

export function isRunId(value: string): value is RunId {
  return /^run_[A-Za-z0-9]{21}$/.test(value);
}
