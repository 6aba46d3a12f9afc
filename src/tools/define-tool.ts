/** Own tools of a host: input schema, declared effects, and what it does. */
import { z } from "zod";
import { type Effect, EFFECTS } from "../protocol/agent.ts";
import { describeError, RejectedError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import { argumentsFault, check, functionOf, optionsOf } from "../platform/check.ts";
import type { ProcessSpec, StartedProcess } from "../platform/process.ts";
import { toParameters } from "./built-in.ts";
import { COLLABORATION_TOOLS, CONTEXT_TOOLS, RESULT_TOOLS, THREAD_TOOLS } from "../protocol/tools-words.ts";

/** What a tool knows of the call that it serves. */
export interface ToolRun {
  /** Aborted when the run is interrupted, closed or out of time. */
  readonly signal: AbortSignal;
  /**
   * For what outlasts the call, such as a process in the background: aborted when it has to end. That is when the agent is
   * unloaded or closed, and, but for the `codex` profile, when the run is interrupted.
   */
  readonly lifetime: AbortSignal;
  /**
   * Starts a process in a group of its own that ends with `lifetime`, however this process ends: it is registered in the
   * store before it runs, and the next owner of the tree sweeps what a dead one has left.
   */
  readonly startProcess: (spec: ProcessSpec) => Promise<StartedProcess>;
  readonly path: string;
  readonly threadId: string;
  readonly runId: string;
  /** Agent, run, step and call: effects outside of the store are at least once, and known by it. */
  readonly idempotencyKey: string;
  readonly workspace: string | null;
}

/** A tool of the program's own, from `defineTool`. */
export interface OwnTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  /** Empty counts as all of them (POL-1). */
  readonly effects: readonly Effect[];
  /** Parses and runs; what it gives is written as JSON, bytes in it as a line that says how many. */
  readonly call: (input: unknown, run: ToolRun) => Promise<unknown>;
}

/** What `defineTool` takes. */
export interface ToolDefinition<Input extends z.ZodType> {
  /** Lower-case letters, digits and underscores. */
  readonly name: string;
  readonly description?: string;
  readonly input: Input;
  /** What it may do to the world; left out it counts as everything. */
  readonly effects?: readonly Effect[];
  readonly run: (input: z.output<Input>, run: ToolRun) => unknown;
}

/**
 * Declares a tool.
 * @throws RejectedError `INVALID_ARGUMENT`, also for a name out of grammar or one of the runtime's own, and for an input that is
 * no object or has no JSON Schema.
 */
export function defineTool<Input extends z.ZodType>(definition: ToolDefinition<Input>): OwnTool {
  check("defineTool", definitionSchema, definition);
  const { name, effects = [] } = definition;
  return {
    name,
    description: definition.description ?? name,
    parameters: parametersOf(definition),
    effects,
    async call(input, run) {
      const parsed = definition.input.safeParse(input);
      if (!parsed.success) throw argumentsFault(name, parsed.error, definition.input, { tool: name });
      return definition.run(parsed.data, run);
    },
  };
}

/** Models call with an object of arguments, and are told of them in JSON Schema. */
function parametersOf({ name, input }: Pick<ToolDefinition<z.ZodType>, "name" | "input">): JsonObject {
  let parameters: JsonObject;
  try {
    parameters = toParameters(input);
  } catch (error) {
    throw unusable(name, `has no JSON Schema: ${describeError(error)}`);
  }
  if (parameters["type"] !== "object") throw unusable(name, "is no object; put what it takes into one");
  return parameters;
}

function unusable(name: string, why: string): RejectedError {
  return new RejectedError("INVALID_ARGUMENT", `The input of the tool ${name} ${why}.`, {
    argument: "input",
    tool: name,
  });
}

const OWN_NAMES: readonly string[] = [
  ...COLLABORATION_TOOLS,
  ...CONTEXT_TOOLS,
  ...RESULT_TOOLS,
  ...THREAD_TOOLS,
];

const definitionSchema = optionsOf<ToolDefinition<z.ZodType>>({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,63}$/, "may only hold lower-case letters, digits and underscores")
    .refine((name) => !OWN_NAMES.includes(name), "is a tool of the runtime; choose another name"),
  description: z.string().optional(),
  input: z.custom<z.ZodType>(
    (value) => typeof (value as Partial<z.ZodType> | undefined)?._zod === "object",
    "is no schema of zod 4; give one such as z.strictObject({})",
  ),
  effects: z.array(z.enum(EFFECTS)).optional(),
  run: functionOf("is no function; give what the tool does"),
});
