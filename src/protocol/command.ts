/** Commands of other processes, and receipts of commands that carry an idempotency key (REC-2, SPN-6). */
import { z } from "zod";
import { type CheckpointId, type CommandId, idOf, type TreeId } from "./ids.ts";
import type { Json, JsonObject } from "./json.ts";
import { PIN_SECTIONS } from "./snapshot.ts";

const target = z.string();
const message = z.string();
const thread = z.string();
const name = z.string().min(1);
/** A text that says something. No pattern: what a model is shown of a schema has none. */
export const words = z.string().refine((text) => /\S/.test(text), "is blank");

/** Names a command: the same id twice is one effect and one answer (lineage C1.17). */
export const commandIdSchema = words.max(128);

/** What the verbs of threads take beside the thread; the methods of `runtime.threads` take the same. */
export const THREAD_FIELDS = {
  continue: {
    provider: name.optional(),
    model: name.optional(),
    effort: name.optional(),
    onBusy: z.enum(["reject", "queue", "steer"]).optional(),
    expectedRevision: z.number().int().min(1).optional(),
  },
  select: {
    provider: name,
    model: name.nullable().optional(),
    effort: name.nullable().optional(),
    cleanContext: z.boolean().optional(),
  },
  rename: { title: words.nullable() },
  pin: { section: z.enum(PIN_SECTIONS), text: words },
  mergeBack: { into: name.optional(), run: idOf("run").optional() },
  editHandoff: { text: words },
  rollBack: {
    to: z.discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("ordinal"), ordinal: z.number().int() }),
      z.strictObject({ kind: z.literal("checkpoint"), checkpointId: z.string() as z.ZodType<CheckpointId> }),
      z.strictObject({ kind: z.literal("before_message"), seq: z.number().int().min(1) }),
    ]),
    native: z.enum(["allowed", "demanded"]).optional(),
    provider: name.optional(),
  },
  sync: { run: name.optional() },
  restore: {
    run: name,
    paths: z.array(name).min(1, "names nothing; leave it out for the whole folder").optional(),
    overwrite: z.boolean().optional(),
  },
} as const;

/**
 * Arguments of the commands, by verb; a default is the same command left out or said. With a `command_id` beside them each is
 * done once. A row is written by anybody who can open the store, so its owner parses it.
 */
export const COMMAND_ARGUMENTS = {
  interrupt: z.strictObject({
    target,
    cascade: z.enum(["none", "subtree"]).default("none"),
    pending: z.enum(["keep", "cancel"]).default("keep"),
    run: idOf("run").optional(),
  }),
  /** `politely`: refused while something is going on. */
  close: z.strictObject({ target, politely: z.boolean().default(false) }),
  followup: z.strictObject({ target, message }),
  send: z.strictObject({ target, message }),
  answer: z.strictObject({ request: idOf("req"), answer: z.string() }),
  raise_budget: z.strictObject({
    target,
    budget: z.enum(["tokens", "money", "wallClock"]),
    limit: z.number().min(0).nullable(),
  }),
  /** Input to a thread at a known revision (lineage C3.2). */
  continue: z.strictObject({
    thread,
    message: words,
    ...THREAD_FIELDS.continue,
    onBusy: THREAD_FIELDS.continue.onBusy.default("reject"),
  }),
  /** Null takes the choice back. */
  select: z.strictObject({
    thread,
    ...THREAD_FIELDS.select,
    provider: name.nullable(),
    cleanContext: THREAD_FIELDS.select.cleanContext.default(false),
  }),
  rename: z.strictObject({ thread, ...THREAD_FIELDS.rename }),
  pin: z.strictObject({ thread, ...THREAD_FIELDS.pin }),
  merge_back: z.strictObject({ fork: thread, ...THREAD_FIELDS.mergeBack, into: name }),
  discard_draft: z.strictObject({ thread }),
  undo_rollback: z.strictObject({ thread }),
  edit_handoff: z.strictObject({ handoff: z.string(), ...THREAD_FIELDS.editHandoff }),
  inject: z.strictObject({ transfer: z.string() }),
  /** These ask a provider, or take several commits, and are done by who owns the tree alone. */
  archive: z.strictObject({ thread }),
  rollback: z.strictObject({
    thread,
    ...THREAD_FIELDS.rollBack,
    native: THREAD_FIELDS.rollBack.native.default("allowed"),
  }),
  regenerate_handoff: z.strictObject({ handoff: z.string() }),
  sync: z.strictObject({ thread, ...THREAD_FIELDS.sync }),
  restore_checkpoint: z.strictObject({
    thread,
    ...THREAD_FIELDS.restore,
    overwrite: THREAD_FIELDS.restore.overwrite.default(false),
  }),
  remove_checkpoint: z.strictObject({ thread, run: name }),
} as const;

export type CommandVerb = keyof typeof COMMAND_ARGUMENTS;

/** The argument that is the root of the row's tree by default. */
export const ROOT_BY_DEFAULT: Readonly<Partial<Record<CommandVerb, string>>> = { merge_back: "into" };

/** Commands that ask a provider, or take several commits. */
const LONG = [
  "rollback",
  "regenerate_handoff",
  "archive",
  "sync",
  "restore_checkpoint",
  "remove_checkpoint",
] as const satisfies readonly CommandVerb[];
export type LongCommandVerb = (typeof LONG)[number];

export function isLong(verb: CommandVerb): verb is LongCommandVerb {
  return (LONG as readonly CommandVerb[]).includes(verb);
}

export interface CommandRecord {
  readonly id: CommandId;
  readonly treeId: TreeId;
  /** Null when the stored command could not be read. */
  readonly verb: CommandVerb | null;
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
