/** Own tools of a host: input schema, declared effects, and what it does. */
import { z } from "zod";
import { type Effect, EFFECTS } from "../protocol/agent.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ProcessSpec } from "../platform/process-group.ts";
import type { StartedProcess } from "../control/processes.ts";
import { argumentFault } from "./arguments.ts";
import { toParameters } from "./built-in.ts";
import { COLLABORATION_TOOLS, RESULT_TOOLS } from "../protocol/tools-words.ts";

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

export interface OwnTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  /** Empty counts as all of them (POL-1). */
  readonly effects: readonly Effect[];
  /** Parses and runs; its output must be JSON. */
  readonly call: (input: unknown, run: ToolRun) => Promise<Json>;
}

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
 * @throws RejectedError `INVALID_ARGUMENT` for a name out of grammar or one of the runtime's own.
 */
export function defineTool<Input extends z.ZodType>(definition: ToolDefinition<Input>): OwnTool {
  const { name } = definition;
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `tool name \`${name}\` may only hold lower-case letters, digits and underscores.`,
      { argument: "name", value: name },
    );
  }
  if ([...COLLABORATION_TOOLS, ...RESULT_TOOLS].some((own) => own === name)) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `\`${name}\` is a tool of the runtime; choose another name.`,
      { argument: "name", value: name },
    );
  }
  const isSchema = typeof (definition.input as Partial<Input> | undefined)?._zod === "object";
  if (!isSchema || typeof definition.run !== "function") {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `tool ${name} needs \`input\`, a schema of zod 4 such as z.strictObject({}), and \`run\`, a function.`,
      { argument: isSchema ? "run" : "input" },
    );
  }
  const effects = definition.effects ?? [];
  const unknown = effects.filter((effect) => !EFFECTS.includes(effect));
  if (unknown.length > 0) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `tool ${name} declares unknown effects: ${unknown.join(", ")}; use ${EFFECTS.join(", ")}.`,
      { argument: "effects" },
    );
  }
  const fields = definition.input instanceof z.ZodObject ? Object.keys(definition.input.shape) : [];
  return {
    name,
    description: definition.description ?? name,
    parameters: toParameters(definition.input),
    effects,
    async call(input, run) {
      const parsed = definition.input.safeParse(input);
      if (!parsed.success) throw argumentFault(name, parsed.error, fields);
      return toJson(await definition.run(parsed.data, run));
    },
  };
}

/** Nothing becomes null, and so does what JSON has no form for. */
function toJson(value: unknown): Json {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? null : (JSON.parse(text) as Json);
}
