/** Words for scripts of a provider that owns its loop, beside those of `script.ts`. */
import type { Json, JsonObject } from "../../../protocol/json.ts";
import type { ScriptedStep } from "../script.ts";

export const FILE_CHANGE = "file_change";

/** Calls one of the provider's own tools, which the runtime only gets to see. */
export function ownTool(name: string, input: JsonObject = {}, output: Json = "done"): ScriptedStep {
  return { acts: [{ kind: "call", name, input, output }] };
}

/** Changes a file, with the provider's own means. */
export function changeFile(path: string, summary: string): ScriptedStep {
  return ownTool(FILE_CHANGE, { path, change: "changed" }, summary);
}

export const CHILD = "native_child";

export interface ChildWords {
  readonly prompt: string;
  readonly outcome: "completed" | "failed" | "interrupted";
}

/** Has a subagent of the provider's own do something, which the runtime only gets to see. */
export function nativeChild(
  prompt: string,
  text: string,
  outcome: "completed" | "failed" | "interrupted" = "completed",
): ScriptedStep {
  return ownTool(CHILD, { prompt, outcome }, text);
}
