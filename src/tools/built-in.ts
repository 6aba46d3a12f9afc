/**
 * The form of the runtime's own tools: one definition each, from which the run loop's spec and every binding are made.
 * The zod schema is the only source of the arguments' types, their check and their JSON Schema.
 *
 * - B1 Who calls comes from the call, filled in by the runtime, never from an argument (SEC-1).
 * - B2 A definition throws its refusals; whoever executes it turns them into results (BUD-3).
 */
import { z } from "zod";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { Caller, ToolHints, ToolOutcome } from "../protocol/tool.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { checkArguments } from "./arguments.ts";

export type AgentCaller = Extract<Caller, { readonly kind: "agent" }>;

/** One call as its definition sees it. */
export interface BuiltInCall {
  readonly control: AgentControl;
  readonly caller: AgentCaller;
  readonly signal: AbortSignal;
  /** The longest that a wait may hold the call (WAI-7); null inside our own loop, and for a host without such a limit. */
  readonly longestWaitMs: number | null;
}

export interface BuiltIn {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly hints: ToolHints;
  /** The output carries unread mail itself, so that no notice of it is added (HDR-2). */
  readonly carriesMail: boolean;
  /** @throws RejectedError for what is refused. */
  readonly call: (input: unknown, call: BuiltInCall) => Promise<ToolOutcome>;
}

export interface BuiltInDefinition<Schema extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Schema;
  /** What the profile takes of it, where that is less: what it leaves out is optional in `input`. */
  readonly taken?: z.ZodObject | undefined;
  readonly hints: ToolHints;
  readonly carriesMail?: boolean;
  /** Looks at raw arguments first, for refusals that say more than "unknown field". */
  readonly before?: (input: unknown) => void;
  readonly run: (input: z.output<Schema>, call: BuiltInCall) => Promise<ToolOutcome>;
}

export function builtIn<Schema extends z.ZodObject>(definition: BuiltInDefinition<Schema>): BuiltIn {
  const { name, title, description, hints } = definition;
  const input = definition.taken ?? definition.input;
  return {
    name,
    title,
    description,
    parameters: toParameters(input),
    hints,
    carriesMail: definition.carriesMail ?? false,
    async call(given, call) {
      definition.before?.(given);
      return definition.run(checkArguments(name, input, given) as z.output<Schema>, call);
    },
  };
}

export function result(output: Json): ToolOutcome {
  return { kind: "result", output, isError: false };
}

/** JSON Schema for models: without the dialect's name and the bounds that only say "an integer". */
export function toParameters(schema: z.ZodType): JsonObject {
  const { $schema: _dialect, ...parameters } = z.toJSONSchema(schema, {
    io: "input",
    override: ({ jsonSchema }) => {
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      delete jsonSchema.propertyNames;
    },
  });
  return parameters as JsonObject;
}
