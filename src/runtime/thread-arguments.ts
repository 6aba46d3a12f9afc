/**
 * What the methods of `runtime.threads` take, a schema a method; arguments have the names of the signature. Whether a thread,
 * a run or a point of that name is there is told where it is looked for, with a code of its own.
 */
import { z } from "zod";
import { commandIdSchema, THREAD_FIELDS, words } from "../protocol/command.ts";
import type { CheckpointId, ProviderThreadId, RunId } from "../protocol/ids.ts";
import { CONTINUITIES, type ForkPolicy, forkPolicySchema } from "../protocol/thread.ts";
import { optionsOf, signalSchema, variantsOf } from "../platform/check.ts";
import type { ForkPointName } from "../lineage/fork-points.ts";
import { type ForkRequest, requireTitle } from "../threads/fork.ts";
import type { RollbackOptions } from "../threads/rollback.ts";
import { call, cursor, page, rows, text } from "./arguments.ts";
import type { CheckpointRange, ThreadFilter, TranscriptOptions } from "./thread-reads.ts";
import type { SelectionInput } from "../threads/verbs.ts";
import type {
  ThreadCommandOptions,
  ContinueOptions,
  CreateThreadOptions,
  ForkOptions,
  MergeOptions,
  RestoreOptions,
  SyncOptions,
} from "./thread-options.ts";

const name = text.min(1);
const command = { commandId: commandIdSchema.optional(), signal: signalSchema.optional() };
const options = optionsOf<ThreadCommandOptions>(command);
const id = text;

const point = variantsOf<ForkPointName>({
  latest_stable: {},
  run: { runId: text as z.ZodType<RunId> },
  checkpoint: { checkpointId: text as z.ZodType<CheckpointId> },
  message: { seq: z.number().int().nullable() },
  provider_thread: { providerThreadId: text as z.ZodType<ProviderThreadId> },
});
const selection = optionsOf<SelectionInput>(THREAD_FIELDS.select);
/** `ForkOptions` as they are used. */
export type ForkChoice = Omit<ForkOptions, "policy"> & { readonly policy?: ForkPolicy };
const forkOptions = optionsOf<ForkChoice>({
  at: point.optional(),
  policy: forkPolicySchema.optional(),
  title: words.optional(),
  ...command,
});

export const THREADS = {
  /** Of whatever has no other argument. */
  one: z.strictObject({ id, options: call }),
  /** Of a command that has none but its own id. */
  command: z.strictObject({ id, options }),
  /** Of whatever is read by the page. */
  pages: z.strictObject({ id, page }),
  list: z.strictObject({
    filter: optionsOf<ThreadFilter>({
      workspace: name.optional(),
      state: z.enum(["open", "closed", "archived", "any"]).optional(),
    }),
    page,
  }),
  diffCheckpoints: z.strictObject({
    id,
    between: optionsOf<CheckpointRange>({
      run: name,
      to: name.optional(),
      patchBytes: z.number().int().min(0).optional(),
      signal: signalSchema.optional(),
    }),
  }),
  restoreCheckpoint: z.strictObject({
    id,
    options: optionsOf<RestoreOptions>({ ...THREAD_FIELDS.restore, ...command }),
  }),
  removeCheckpoint: z.strictObject({ id, run: name, options }),
  show: z.strictObject({ id, executions: page }),
  sync: z.strictObject({ id, options: optionsOf<SyncOptions>({ ...THREAD_FIELDS.sync, ...command }) }),
  transcript: z.strictObject({
    id,
    page: optionsOf<TranscriptOptions>({
      before: cursor,
      limit: rows.optional(),
      signal: signalSchema.optional(),
    }),
  }),
  create: optionsOf<CreateThreadOptions>({
    id: name.optional(),
    title: words.optional(),
    provider: name.optional(),
    model: name.optional(),
    effort: name.optional(),
    instructions: text.optional(),
    workspace: name.optional(),
    continuity: z.enum(CONTINUITIES).optional(),
    parent: name.optional(),
    ...command,
  }),
  editHandoff: z.strictObject({ id, ...THREAD_FIELDS.editHandoff, options }),
  continue: z.strictObject({
    id,
    message: words,
    options: optionsOf<ContinueOptions>({ ...THREAD_FIELDS.continue, ...command }),
  }),
  select: z.strictObject({ id, choice: selection.nullable(), options }),
  preview: z.strictObject({ id, choice: selection, options: call }),
  rename: z.strictObject({ id, ...THREAD_FIELDS.rename, options }),
  pin: z.strictObject({ id, ...THREAD_FIELDS.pin, options }),
  planFork: z.strictObject({ id, options: forkOptions }),
  reference: z.strictObject({ id, at: point, options: call }),
  fork: z.strictObject({ id, options: forkOptions }),
  mergeBack: z.strictObject({
    fork: id,
    options: optionsOf<MergeOptions>({ ...THREAD_FIELDS.mergeBack, ...command }),
  }),
  rollBack: z.strictObject({
    id,
    options: optionsOf<RollbackOptions & ThreadCommandOptions>({ ...THREAD_FIELDS.rollBack, ...command }),
  }),
};

const DEFAULT_POLICY = forkPolicySchema.parse({});

/** What a fork is made of; what is left out has its default. */
export function forkRequest(
  source: string,
  { at = { kind: "latest_stable" }, policy = DEFAULT_POLICY, title }: ForkChoice,
): ForkRequest {
  return {
    source,
    at,
    policy,
    title: title === undefined ? null : requireTitle(title),
    createdBy: "user",
  };
}
