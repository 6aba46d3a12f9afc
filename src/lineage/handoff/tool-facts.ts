/**
 * What tools did, read from their calls and results: files changed, commands with their last results, the plan, failures.
 * Every function reads calls from the newest to the oldest and stops at its cap, so that the latest run of the same thing
 * is the only one that is told of (C6.3).
 *
 * - F1 A file has changed when a tool with the effect `write` was called with a path and did not fail.
 * - F2 A command is a call of a tool with the effect `execute`; its key is the tool, the command and its folder.
 * - F3 A tool whose effects nobody knows may have them all (POL-1): with a path it writes, else it executes.
 */
import type { Effect } from "../../protocol/agent.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { type Call, outputText } from "./gather.ts";

type Effects = ReadonlyMap<string, readonly Effect[]>;
type Place = Pick<Call, "segment" | "run">;

export interface FileChange extends Place {
  readonly path: string;
  readonly by: string;
  /** What the change was, where the call says so for this file alone. */
  readonly diff: string | null;
  readonly finished: boolean;
}

export interface CommandRun extends Place {
  readonly command: string;
  readonly outcome: "ok" | "failed" | "no result";
  readonly output: string;
}

export interface ToolFailure extends Place {
  readonly name: string;
  readonly output: string;
}

const PATH_KEYS = [
  "path",
  "file_path",
  "filePath",
  "file",
  "filename",
  "target_file",
  "notebook_path",
  "paths",
  "files",
];
const COMMAND_KEYS = ["command", "cmd", "script", "argv"];
const FOLDER_KEYS = ["cwd", "workdir", "directory"];
const DIFF_KEYS = ["patch", "diff"];
const EXIT_KEYS = ["exitCode", "exit_code", "code"];
const PLAN_KEYS = ["todos", "plan", "tasks", "steps", "items"];
const STEP_KEYS = ["content", "step", "text", "title", "description"];
const PLAN_WORDS: ReadonlySet<string> = new Set(["plan", "todo", "todos"]);
const PATCHED_FILE = /^(?:\*\*\* (?:Add File|Update File|Delete File|Move to): |\+\+\+ b\/)(.+)$/gm;

/** The newest change of each file, newest first. */
export function fileChanges(
  calls: readonly Call[],
  about: { readonly effects: Effects; readonly workspace: string | null; readonly most: number },
): readonly FileChange[] {
  const changes = new Map<string, FileChange>();
  const add = (change: FileChange): void => {
    const path = relativePath(change.path, about.workspace);
    if (path !== "" && !changes.has(path) && changes.size < about.most)
      changes.set(path, { ...change, path });
  };
  for (const call of calls) {
    if (changes.size >= about.most) break;
    if (!writes(call, about.effects) || call.result?.isError === true) continue;
    const args = argumentsOf(call.input);
    const diff = textAt(args, DIFF_KEYS) ?? (args === null ? call.input : null);
    const paths = pathsOf(args, diff);
    for (const path of paths) {
      const finished = call.result !== null;
      const { segment, run } = call;
      add({ segment, run, path, by: call.name, diff: paths.length === 1 ? diff : null, finished });
    }
  }
  return [...changes.values()];
}

/** The newest run of each command, newest first. */
export function commandRuns(
  calls: readonly Call[],
  about: { readonly effects: Effects; readonly most: number },
): readonly CommandRun[] {
  const runs = new Map<string, CommandRun>();
  for (const call of calls) {
    if (runs.size >= about.most) break;
    if (!executes(call, about.effects)) continue;
    const args = argumentsOf(call.input);
    const command = textAt(args, COMMAND_KEYS) ?? `${call.name} ${call.input}`;
    const key = JSON.stringify([call.name, command, textAt(args, FOLDER_KEYS)]);
    if (runs.has(key)) continue;
    const { segment, run, result } = call;
    const outcome = result === null ? "no result" : failed(result) ? "failed" : "ok";
    runs.set(key, {
      segment,
      run,
      command,
      outcome,
      output: result === null ? "" : outputText(result.output),
    });
  }
  return [...runs.values()];
}

/** Failed calls that are no commands and that no later call of the same kind has mended, newest first. */
export function toolFailures(
  calls: readonly Call[],
  about: { readonly effects: Effects; readonly most: number },
): readonly ToolFailure[] {
  const failures: ToolFailure[] = [];
  const later = new Map<string, Set<string>>();
  for (const call of calls) {
    if (failures.length >= about.most) break;
    if (call.result === null || executes(call, about.effects)) continue;
    const inputs = later.get(call.name) ?? new Set();
    later.set(call.name, inputs);
    if (inputs.has(call.input)) continue;
    inputs.add(call.input);
    if (!call.result.isError) continue;
    const { segment, run, name } = call;
    failures.push({ segment, run, name, output: outputText(call.result.output) });
  }
  return failures;
}

/** The plan as it stands: what was written last with a tool that is named for it; null where there is none. */
export function currentPlan(calls: readonly Call[]): (Place & { readonly lines: readonly string[] }) | null {
  for (const call of calls) {
    if (call.result?.isError === true || !isPlanTool(call.name)) continue;
    const lines = planLines(argumentsOf(call.input));
    if (lines !== null) return { segment: call.segment, run: call.run, lines };
  }
  return null;
}

function isPlanTool(name: string): boolean {
  const words = name.replaceAll(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return words.split(/[^a-z]+/).some((word) => PLAN_WORDS.has(word));
}

function planLines(args: JsonObject | null): readonly string[] | null {
  if (args === null) return null;
  for (const key of PLAN_KEYS) {
    const plan = args[key];
    if (typeof plan === "string" && plan.trim() !== "") return plan.trim().split("\n");
    if (Array.isArray(plan)) return plan.map(planLine);
  }
  return null;
}

function planLine(step: Json): string {
  if (typeof step === "string") return step;
  if (!isObject(step)) return JSON.stringify(step);
  const status = step["status"];
  const text = textAt(step, STEP_KEYS) ?? JSON.stringify(step);
  return typeof status === "string" ? `[${status}] ${text}` : text;
}

function writes(call: Call, effects: Effects): boolean {
  return !isPlanTool(call.name) && (effects.get(call.name)?.includes("write") ?? true);
}

function executes(call: Call, effects: Effects): boolean {
  if (isPlanTool(call.name)) return false;
  const known = effects.get(call.name);
  if (known !== undefined && !known.includes("execute")) return false;
  const args = argumentsOf(call.input);
  if (textAt(args, COMMAND_KEYS) !== null) return true;
  return !(known?.includes("write") ?? true) || pathsOf(args, null).length === 0;
}

function failed(result: NonNullable<Call["result"]>): boolean {
  if (result.isError) return true;
  const { output } = result;
  if (!isObject(output)) return false;
  return EXIT_KEYS.some((key) => typeof output[key] === "number" && output[key] !== 0);
}

/** Paths that the arguments name, and those in a patch. */
function pathsOf(args: JsonObject | null, patch: string | null): readonly string[] {
  const named = PATH_KEYS.flatMap((key) => {
    const value = args?.[key];
    if (typeof value === "string") return [value];
    return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
  });
  const patched = patch === null ? [] : [...patch.matchAll(PATCHED_FILE)].map(([, path]) => path!.trim());
  return [...new Set([...named, ...patched])];
}

function relativePath(path: string, workspace: string | null): string {
  const root = workspace === null ? null : workspace.endsWith("/") ? workspace : `${workspace}/`;
  const inside = root !== null && path.startsWith(root) ? path.slice(root.length) : path;
  return inside.startsWith("./") ? inside.slice(2) : inside;
}

function argumentsOf(input: string): JsonObject | null {
  try {
    const value = JSON.parse(input) as Json;
    return isObject(value) ? value : null;
  } catch {
    // A tool that takes plain text, or arguments that the model got wrong.
    return null;
  }
}

function textAt(args: JsonObject | null, keys: readonly string[]): string | null {
  for (const key of keys) {
    const value = args?.[key];
    if (typeof value === "string") return value;
    if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" ");
  }
  return null;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
