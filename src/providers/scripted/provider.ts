/**
 * The provider `scripted`: the deterministic twin of `model`, for tests, the demo and benches. It looks up the script of the
 * asking agent's path, finds the next step from the request, plays it, and remembers what it was asked.
 *
 * - V1 Nothing here decides by time, chance or order of arrival between agents.
 * - V2 What it remembers serves assertions (`requests`, `unconsumedSteps`) and `fail` and `stall`, which leave nothing in the
 *   transcript (N2); all else comes from the request.
 */
import { z } from "zod";
import { check, clip, clockSchema, optionsOf, withMethods } from "../../platform/check.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { resolveReference, ROOT_PATH } from "../../protocol/agent-path.ts";
import { RejectedError } from "../../protocol/errors.ts";
import type { ThreadId } from "../../protocol/ids.ts";
import type { StepEvent, StepRequest } from "../../protocol/provider-events.ts";
import { modelShape } from "../model-shape.ts";
import { OWN_LOOP_THREADS } from "../own-loop.ts";
import type { ModelInfo, OwnLoopAdapter, ProviderCapabilities } from "../port.ts";
import { scriptContext } from "./context.ts";
import { createGates, type Gates } from "./gates.ts";
import { play } from "./play.ts";
import { actsOf, compile, nextIndex, type Program, type ProgramStep } from "./program.ts";
import {
  describeStep,
  leavesNothing,
  type Script,
  type ScriptedStep,
  type ScriptEntry,
  type StepFunction,
} from "./script.ts";
import { isStep, stepSchema } from "./script-checks.ts";

/** Scripts by agent path; `*` is for every path that has none of its own. */
export type Scripts = Readonly<Record<string, Script>>;

/** What `scripted` takes beside the scripts. */
export interface ScriptedOptions {
  /** For `pause`; the system's unless given. */
  readonly clock?: Clock;
  /** Gates shared with tools and tests; its own unless given. */
  readonly gates?: Gates;
  /** Models by name, what is left out filled in; any name is taken unless given. */
  readonly models?: Readonly<Record<string, Partial<ModelInfo>>>;
  /** The first of `models` unless given, else `scripted`. */
  readonly defaultModel?: string;
  /** What an agent answers that has no script, or has come to its end. */
  readonly otherwise?: ScriptedStep | StepFunction;
  /** How many requests are kept for each path, the newest; 256 unless given. */
  readonly recorded?: number;
}

/** A step that no request has reached. */
export interface UnconsumedStep {
  /** The script's key. */
  readonly script: string;
  readonly threadId: ThreadId | null;
  /** From 1. */
  readonly step: number;
  readonly description: string;
}

/** A provider that plays scripts and remembers what it was asked. */
export interface ScriptedProvider extends OwnLoopAdapter {
  readonly gates: Gates;
  /** What agents at this path were asked, oldest first; in all trees. */
  requests(path: string): readonly StepRequest[];
  /** Adds to the end of a script, or begins one for an agent that has not run yet. */
  append(path: string, ...steps: readonly ScriptEntry[]): void;
  /** Steps that are left; those of an unused `*` and of steps without end do not count. */
  unconsumedSteps(): readonly UnconsumedStep[];
}

const CAPABILITIES: ProviderCapabilities = {
  exact: true,
  parksWaits: true,
  questions: true,
  approvals: true,
};
const ANY = "*";
const NOTHING = compile(ANY, []);

/** What is remembered of a thread: where its script stands, for what the transcript cannot say. */
interface Progress {
  readonly script: string;
  /** Answers in the transcript when the next two began to count. */
  ownSteps: number;
  /** Failed and stalled requests. */
  failures: number;
  /** Those of them that were steps of the script; a function that fails is asked again. */
  spent: number;
  /** Index behind the last step that was played to its end. */
  reached: number;
}

interface Book {
  script: Script;
  program: Program;
}

const scriptSchema = z.custom<Script>(
  (value) =>
    typeof value === "function" ||
    (Array.isArray(value) &&
      value.every(
        (entry: unknown) => isStep(entry) || isStep((entry as { readonly step?: unknown } | null)?.step),
      )),
  "is no script; give a list of steps of `script`, or a function",
);

const appended = z.strictObject({ path: z.string(), steps: scriptSchema });
const scriptedArguments = z.strictObject({
  scripts: z.record(z.string(), scriptSchema),
  options: optionsOf<ScriptedOptions>({
    clock: clockSchema.optional(),
    gates: withMethods<Gates>("are no gates; give what `createGates()` returns", "pass", "open").optional(),
    models: z.record(z.string(), optionsOf<Partial<ModelInfo>>(modelShape)).optional(),
    defaultModel: z.string().min(1).optional(),
    otherwise: stepSchema.optional(),
    recorded: z.number().int().min(0).optional(),
  }),
});

/**
 * A provider that plays scripts: `scripted({ "/root": [spawn("worker", "look"), wait(), say("done")], "*": [say("ok")] })`.
 * Which step is next is read from the agent's transcript: every answer in it counts as a step, also that of another provider.
 */
export function scripted(scripts: Scripts, options: ScriptedOptions = {}): ScriptedProvider {
  check("scripted", scriptedArguments, { scripts, options });
  const { clock = systemClock, gates = createGates(), otherwise = null, recorded = 256 } = options;
  const books = new Map<string, Book>();
  const records = new Map<string, StepRequest[]>();
  const threads = new Map<ThreadId, Progress>();
  const models = options.models === undefined ? null : fillModels(options.models);
  for (const [key, script] of Object.entries(scripts)) {
    // A key that no agent can have would never be played; it is refused rather than left over.
    if (key !== ANY) requirePath(key);
    books.set(key, { script, program: compile(key, script) });
  }

  const record = (request: StepRequest): void => {
    if (recorded === 0) return;
    const kept = records.get(request.path) ?? [];
    if (kept.length === recorded) kept.shift();
    kept.push(request);
    records.set(request.path, kept);
  };

  const progressOf = (request: StepRequest, script: string): Progress => {
    let progress = threads.get(request.threadId);
    if (progress?.script !== script) {
      progress = { script, ownSteps: request.ownSteps, failures: 0, spent: 0, reached: 0 };
      threads.set(request.threadId, progress);
    }
    if (progress.ownSteps !== request.ownSteps) {
      progress.ownSteps = request.ownSteps;
      progress.failures = 0;
      progress.spent = 0;
    }
    return progress;
  };

  async function* step(request: StepRequest, signal: AbortSignal): AsyncGenerator<StepEvent, void, void> {
    record(request);
    const key = books.has(request.path) ? request.path : ANY;
    const program = books.get(key)?.program ?? NOTHING;
    const progress = progressOf(request, key);
    const index = nextIndex(program, request.ownSteps, progress.spent);
    const reach = (to: number): void => {
      progress.reached = Math.max(progress.reached, to);
    };
    // Answers of an earlier process count as played.
    reach(nextIndex(program, request.ownSteps, 0));
    const found = program.steps[index] ?? program.tail ?? fallback(otherwise);
    if (found === null) throw exhausted(request.path, program);
    const context = scriptContext(request, progress.failures);
    const body = typeof found.body === "function" ? found.body(context) : found.body;
    try {
      for await (const event of play(actsOf(found, body), context, { gates, clock }, signal)) {
        if (event.type === "finish") reach(index + 1);
        yield event;
      }
    } finally {
      // An aborted answer is asked for again, an aborted stall is over. A late end must not count against a later answer.
      if (leavesNothing(body) && progress.ownSteps === request.ownSteps) {
        progress.failures += 1;
        if (leavesNothing(found.body)) {
          progress.spent += 1;
          reach(index + 1);
        }
      }
    }
  }

  return {
    driver: "scripted",
    loop: "ours",
    capabilities: CAPABILITIES,
    threads: OWN_LOOP_THREADS,
    defaultModel: options.defaultModel ?? Object.keys(models ?? {})[0] ?? "scripted",
    gates,
    models: () => models,
    openSession: async () => ({ step, close: async () => {} }),
    requests: (path) => [...(records.get(path) ?? [])],
    append(path, ...added) {
      check("append", appended, { path, steps: added });
      if (path !== ANY) requirePath(path);
      const before = books.get(path)?.script ?? [];
      if (typeof before === "function") {
        throw new RejectedError(
          "INVALID_ARGUMENT",
          `The script of ${path} is a function; it has no end to add to.`,
        );
      }
      const script = [...before, ...added];
      books.set(path, { script, program: compile(path, script) });
    },
    unconsumedSteps: () => [...books].flatMap(([key, { program }]) => leftOver(key, program, [...threads])),
  };
}

function fallback(otherwise: ScriptedStep | StepFunction | null): ProgramStep | null {
  return otherwise === null ? null : { leads: [], body: otherwise };
}

function exhausted(path: string, program: Program): RejectedError {
  if (program === NOTHING) {
    const message = `The agent ${path} has no script; add one under its path or under \`*\`.`;
    return new RejectedError("SCRIPT_EXHAUSTED", message, { path, steps: 0 });
  }
  const steps = program.steps.length;
  const message = `The script of ${path} has ${steps} ${steps === 1 ? "step" : "steps"} and was asked for one more; add the step.`;
  return new RejectedError("SCRIPT_EXHAUSTED", message, { path, steps });
}

function leftOver(
  script: string,
  program: Program,
  threads: readonly (readonly [ThreadId, Progress])[],
): readonly UnconsumedStep[] {
  const rest = (threadId: ThreadId | null, reached: number): readonly UnconsumedStep[] =>
    program.steps.slice(reached).map(({ body }, offset) => {
      return { script, threadId, step: reached + offset + 1, description: describeStep(body) };
    });
  const players = threads.filter(([, progress]) => progress.script === script);
  if (players.length === 0) return script === ANY ? [] : rest(null, 0);
  return players.flatMap(([threadId, { reached }]) => rest(threadId, reached));
}

function requirePath(key: string): void {
  if (!key.startsWith("/")) {
    const message = `\`${clip(key)}\` is no agent path; scripts are keyed by paths such as /root/worker, or by \`*\`.`;
    throw new RejectedError("INVALID_ARGUMENT", message, { argument: "scripts", value: clip(key) });
  }
  resolveReference(ROOT_PATH, key, `The script's key \`${clip(key)}\``);
}

function fillModels(models: Readonly<Record<string, Partial<ModelInfo>>>): Record<string, ModelInfo> {
  const unknown: ModelInfo = {
    contextWindow: null,
    maxOutputTokens: null,
    efforts: null,
    defaultEffort: null,
    collaborates: true,
  };
  return Object.fromEntries(Object.entries(models).map(([name, known]) => [name, { ...unknown, ...known }]));
}
