/**
 * What the methods of `runtime.threads` take, a schema a method; arguments have the names of the signature. Whether a thread,
 * a run or a point of that name is there is told where it is looked for, with a code of its own.
 */
import { z } from "zod";
import { PIN_SECTIONS } from "../protocol/snapshot.ts";
import { CONTINUITIES, forkPolicySchema } from "../protocol/thread.ts";
import { optionsOf } from "../platform/check.ts";
import type { ForkPointName } from "../lineage/fork-points.ts";
import type { ThreadOptions } from "../threads/create.ts";
import type { RollbackOptions, RollbackTo } from "../threads/rollback.ts";
import { count, cursor, flag, idOf, key, page, rows, text } from "./arguments.ts";
import type { ThreadFilter, TranscriptOptions } from "./thread-reads.ts";
import type { ContinueOptions, ForkOptions, MergeOptions, SelectionInput } from "./threads.ts";

const name = text.min(1);
/** A text that says something. */
const words = text.regex(/\S/, "is blank");
const id = text;
/** Of a discriminated union the type that its schema is for. */
const as = <T>(schema: z.ZodType): z.ZodType<T> => schema as z.ZodType<T>;

const point = as<ForkPointName>(
  z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("latest_stable") }),
    z.strictObject({ kind: z.literal("run"), runId: text }),
    z.strictObject({ kind: z.literal("checkpoint"), checkpointId: text }),
    z.strictObject({ kind: z.literal("message"), seq: z.number().int().nullable() }),
    z.strictObject({ kind: z.literal("provider_thread"), providerThreadId: text }),
  ]),
);
const rollbackTo = as<RollbackTo>(
  z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("ordinal"), ordinal: z.number().int() }),
    z.strictObject({ kind: z.literal("checkpoint"), checkpointId: text }),
    z.strictObject({ kind: z.literal("before_message"), seq: z.number().int() }),
  ]),
);
const selection = optionsOf<SelectionInput>({
  provider: name,
  model: name.nullable().optional(),
  effort: name.nullable().optional(),
  cleanContext: flag,
});
const forkOptions = optionsOf<ForkOptions>({
  at: point.optional(),
  policy: as<ForkOptions["policy"]>(forkPolicySchema.optional()),
  title: words.optional(),
});

export const THREADS = {
  /** Of whatever has no other argument. */
  id,
  /** Of whatever is read by the page. */
  pages: z.strictObject({ id, page }),
  list: z.strictObject({
    filter: optionsOf<ThreadFilter>({
      workspace: name.optional(),
      state: z.enum(["open", "closed", "archived", "any"]).optional(),
    }),
    page,
  }),
  show: z.strictObject({ id, executions: page }),
  sync: z.strictObject({ id, only: optionsOf<{ readonly run?: string }>({ run: name.optional() }) }),
  transcript: z.strictObject({
    id,
    page: optionsOf<TranscriptOptions>({ before: cursor, limit: rows.optional() }),
  }),
  create: optionsOf<ThreadOptions>({
    id: name.optional(),
    title: words.optional(),
    provider: name.optional(),
    model: name.optional(),
    effort: name.optional(),
    instructions: text.optional(),
    workspace: name.optional(),
    continuity: z.enum(CONTINUITIES).optional(),
    parent: name.optional(),
  }),
  editHandoff: z.strictObject({ id, text: words }),
  continue: z.strictObject({
    id,
    message: words,
    options: optionsOf<ContinueOptions>({
      provider: name.optional(),
      model: name.optional(),
      effort: name.optional(),
      onBusy: z.enum(["reject", "queue", "steer"]).optional(),
      expectedRevision: count.optional(),
      key,
    }),
  }),
  select: z.strictObject({ id, choice: selection.nullable() }),
  preview: z.strictObject({ id, choice: selection }),
  rename: z.strictObject({ id, title: words.nullable() }),
  pin: z.strictObject({ id, section: z.enum(PIN_SECTIONS), text: words }),
  planFork: z.strictObject({ id, options: forkOptions }),
  reference: z.strictObject({ id, at: point }),
  fork: z.strictObject({ id, options: forkOptions }),
  mergeBack: z.strictObject({
    fork: id,
    options: optionsOf<MergeOptions>({ into: name.optional(), run: idOf("run").optional() }),
  }),
  rollBack: z.strictObject({
    id,
    options: optionsOf<RollbackOptions>({
      to: rollbackTo,
      native: z.enum(["allowed", "demanded"]).optional(),
      provider: name.optional(),
    }),
  }),
};
