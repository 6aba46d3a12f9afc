/**
 * What the handles of trees, agents and works take, a schema a method; arguments have the names of the signature. The
 * options of `createRuntime` and `openTree` stand in `options.ts`.
 */
import { z } from "zod";
import { lineageLimitsSchema } from "../protocol/lineage-limits.ts";
import type { AgentPath } from "../protocol/agent-path.ts";
import { COMMAND_ARGUMENTS, commandIdSchema, THREAD_FIELDS } from "../protocol/command.ts";
import type { Decision } from "../protocol/decision.ts";
import { idOf } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { HostUsage } from "../control/host.ts";
import type { InterruptInput } from "../control/interrupt.ts";
import type { ListRequest } from "../control/listing.ts";
import type { SpawnInput } from "../control/spawn.ts";
import type { CallOptions } from "../platform/abortable.ts";
import { clockSchema, functionOf, optionsOf, type Shape, signalSchema } from "../platform/check.ts";
import { hostToolOptionsSchema } from "../tools/host-tools.ts";
import type {
  CloseOptions,
  Repeatable,
  PageOptions,
  SendOptions,
  SpawnOptions,
  SpawnRequest,
} from "./agent.ts";
import type { CommandOptions } from "./command-tree.ts";
import type { ConnectOptions } from "./connection.ts";
import type { EventOptions } from "./event-stream.ts";
import { choiceShape, storeSchema } from "./options.ts";
import type { OpenPendingOptions } from "./runtime.ts";

export const text = z.string();
export const count = z.number().int().min(0);
export const rows = z.number().int().min(1);
const commandId = commandIdSchema.optional();
export const flag = z.boolean().optional();
export const cursor = z.string().nullable().optional();
const figure = z.number().min(0);
const outputSchema = z.record(z.string(), z.json()) as unknown as z.ZodType<JsonObject>;

const signal = signalSchema.optional();
export const call = optionsOf<CallOptions>({ signal });
const keyed = optionsOf<Repeatable>({ commandId, signal });
export const page = optionsOf<PageOptions>({ after: cursor, limit: rows.optional(), signal });
const used = optionsOf<HostUsage>({
  inputTokens: figure,
  outputTokens: figure,
  cachedInputTokens: figure.optional(),
  reasoningTokens: figure.optional(),
  cost: figure.nullable().optional(),
});

/** By what a child's configuration is chosen. */
const askedShape: Shape<SpawnInput["asked"]> = {
  ...choiceShape,
  role: z.string().min(1).nullable().optional(),
};
/** How its first task is asked for. */
const requestShape: Shape<SpawnRequest> = {
  forkTurns: text.optional(),
  wake: z.enum(["always", "settled_only", "never"]).optional(),
  detached: flag,
  replyTo: text.optional(),
  outputSchema: outputSchema.nullable().optional(),
  acceptance: text.nullable().optional(),
  isolation: z.literal("worktree").optional(),
};
/** Each takes from the options of a spawn what belongs to it. */
export const spawnParts = { asked: z.object(askedShape), request: z.object(requestShape) };

export const AGENT = {
  /** Of whatever has no other argument. */
  call,
  send: z.strictObject({
    message: text,
    options: optionsOf<SendOptions>({
      onBusy: z.enum(["steer", "queue", "reject"]).optional(),
      commandId,
      outputSchema: requestShape.outputSchema,
      acceptance: requestShape.acceptance,
      provider: text.min(1).optional(),
      expectedRevision: THREAD_FIELDS.continue.expectedRevision,
      model: text.min(1).optional(),
      effort: text.min(1).optional(),
      signal,
    }),
  }),
  tell: z.strictObject({ message: text, options: keyed }),
  spawn: z.strictObject({
    taskName: text,
    message: text,
    options: optionsOf<SpawnOptions>({ ...askedShape, ...requestShape, commandId, signal }),
  }),
  tools: hostToolOptionsSchema,
  interrupt: optionsOf<InterruptInput & Repeatable>({
    runId: idOf("run").optional(),
    cascade: z.enum(["none", "subtree"]).optional(),
    pending: z.enum(["keep", "cancel"]).optional(),
    commandId,
    signal,
  }),
  close: optionsOf<CloseOptions>({ politely: flag, commandId, signal }),
  usage: z.strictObject({ used: used.optional(), options: call }),
  transcript: z.strictObject({ from: count, limit: rows, options: call }),
  page,
  raiseBudget: z.strictObject({
    budget: z.enum(["tokens", "money", "wallClock"]),
    limit: figure.nullable(),
    options: keyed,
  }),
};

const decision = optionsOf<Decision>({
  verdict: z.enum(["approved", "denied"]),
  note: z.string().nullable(),
});

export const TREE = {
  call,
  agent: z.strictObject({ reference: text, options: call }),
  work: idOf("wrk"),
  list: optionsOf<ListRequest & CallOptions>({
    under: z
      .custom<AgentPath>(
        (value) => typeof value === "string" && /^\/root(\/[a-z0-9_]+)*$/.test(value),
        "is no path of an agent, such as /root/worker",
      )
      .optional(),
    closed: flag,
    after: cursor,
    limit: rows.optional(),
    signal,
  }),
  page,
  receipt: z.strictObject({ id: idOf("msg"), options: call }),
  inbox: optionsOf<{ readonly after?: number; readonly limit?: number } & CallOptions>({
    after: count.optional(),
    limit: rows.optional(),
    signal,
  }),
  events: optionsOf<EventOptions>({
    after: count.optional(),
    signal,
    progress: flag,
  }),
  log: z.strictObject({ after: count, limit: rows, options: call }),
  requests: z.strictObject({ of: idOf("thread").optional(), options: call }),
  answer: z.strictObject({ request: idOf("req"), answer: z.union([text, decision]), options: keyed }),
};

export const WORK = { call };

export const CONNECTION = { tools: hostToolOptionsSchema, usage: z.strictObject({ used, options: call }) };

export const RUNTIME = {
  call,
  trees: page,
  openPending: optionsOf<OpenPendingOptions>({ limit: rows.optional(), signal }),
  actAs: z.strictObject({
    token: text,
    options: optionsOf<ConnectOptions>({ host: text.min(1).optional(), signal }),
  }),
  commandTree: z.strictObject({
    store: storeSchema,
    treeId: idOf("thread"),
    verb: z.enum(Object.keys(COMMAND_ARGUMENTS)),
    args: z.record(z.string(), z.unknown()),
    options: optionsOf<CommandOptions>({
      clock: clockSchema.optional(),
      timeoutMs: figure.optional(),
      signal,
      commandId,
      forward: flag,
      claim: flag,
      provenDead: functionOf<NonNullable<CommandOptions["provenDead"]>>("is no function").optional(),
      secrets: z.array(z.string()).optional(),
      lineage: lineageLimitsSchema.partial().optional(),
    }),
  }),
};
