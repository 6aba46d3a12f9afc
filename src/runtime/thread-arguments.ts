/**
 * What the methods of `runtime.threads` take, a schema a method; arguments have the names of the signature. Whether a thread,
 * a run or a point of that name is there is told where it is looked for, with a code of its own.
 */
import { z } from "zod";
import { THREAD_FIELDS, words } from "../protocol/command.ts";
import type { CheckpointId, ProviderThreadId, RunId } from "../protocol/ids.ts";
import { CONTINUITIES, type ForkPolicy, forkPolicySchema } from "../protocol/thread.ts";
import type { CallOptions } from "../platform/abortable.ts";
import { optionsOf, signalSchema, variantsOf } from "../platform/check.ts";
import type { ForkPointName } from "../lineage/fork-points.ts";
import type { ThreadOptions } from "../threads/create.ts";
import type { RollbackOptions, RollbackTo } from "../threads/rollback.ts";
import { call, cursor, key, page, rows, text } from "./arguments.ts";
import type { ThreadFilter, TranscriptOptions } from "./thread-reads.ts";
import type { SelectionInput } from "../threads/verbs.ts";
import type { ContinueOptions, ForkOptions, MergeOptions } from "./threads.ts";

const name = text.min(1);
const id = text;
const signal = signalSchema.optional();
const options = call;

const point = variantsOf<ForkPointName>({
  latest_stable: {},
  run: { runId: text as z.ZodType<RunId> },
  checkpoint: { checkpointId: text as z.ZodType<CheckpointId> },
  message: { seq: z.number().int().nullable() },
  provider_thread: { providerThreadId: text as z.ZodType<ProviderThreadId> },
});
const rollbackTo = variantsOf<RollbackTo>({
  ordinal: { ordinal: z.number().int() },
  checkpoint: { checkpointId: text as z.ZodType<CheckpointId> },
  before_message: { seq: z.number().int().min(1) },
});
const selection = optionsOf<SelectionInput>(THREAD_FIELDS.select);
/** `ForkOptions` as they are used. */
export type ForkChoice = Omit<ForkOptions, "policy"> & { readonly policy?: ForkPolicy };
const forkOptions = optionsOf<ForkChoice>({
  at: point.optional(),
  policy: forkPolicySchema.optional(),
  title: words.optional(),
  signal,
});

export const THREADS = {
  /** Of whatever has no other argument. */
  one: z.strictObject({ id, options }),
  inject: z.strictObject({ transferId: id, options }),
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
  sync: z.strictObject({
    id,
    only: optionsOf<{ readonly run?: string } & CallOptions>({ run: name.optional(), signal }),
  }),
  transcript: z.strictObject({
    id,
    page: optionsOf<TranscriptOptions>({ before: cursor, limit: rows.optional(), signal }),
  }),
  create: optionsOf<ThreadOptions & CallOptions>({
    id: name.optional(),
    title: words.optional(),
    provider: name.optional(),
    model: name.optional(),
    effort: name.optional(),
    instructions: text.optional(),
    workspace: name.optional(),
    continuity: z.enum(CONTINUITIES).optional(),
    parent: name.optional(),
    signal,
  }),
  editHandoff: z.strictObject({ id, ...THREAD_FIELDS.editHandoff, options }),
  continue: z.strictObject({
    id,
    message: words,
    options: optionsOf<ContinueOptions>({ ...THREAD_FIELDS.continue, key, signal }),
  }),
  select: z.strictObject({ id, choice: selection.nullable(), options }),
  preview: z.strictObject({ id, choice: selection, options }),
  rename: z.strictObject({ id, ...THREAD_FIELDS.rename, options }),
  pin: z.strictObject({ id, ...THREAD_FIELDS.pin, options }),
  planFork: z.strictObject({ id, options: forkOptions }),
  reference: z.strictObject({ id, at: point, options }),
  fork: z.strictObject({ id, options: forkOptions }),
  mergeBack: z.strictObject({
    fork: id,
    options: optionsOf<MergeOptions>({ ...THREAD_FIELDS.mergeBack, signal }),
  }),
  rollBack: z.strictObject({
    id,
    options: optionsOf<RollbackOptions & CallOptions>({
      to: rollbackTo,
      native: z.enum(["allowed", "demanded"]).optional(),
      provider: name.optional(),
      signal,
    }),
  }),
};
