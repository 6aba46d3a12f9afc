/**
 * What a scripted model can see: the request, and the questions that scripts ask of it most. Nothing here remembers anything;
 * all is read from the messages, so that a script goes on after a reload or in another process.
 */
import type { Json } from "../../protocol/json.ts";
import type { PromptMessage, StepRequest } from "../../protocol/provider-events.ts";

type ToolMessage = Extract<PromptMessage, { role: "tool" }>;

/** What a scripted step may decide by: the request, and nothing else. */
export interface ScriptContext {
  readonly request: StepRequest;
  readonly path: string;
  readonly messages: readonly PromptMessage[];
  /** Answers that the thread has given before, in all its runs. */
  readonly ownSteps: number;
  /** Requests of this provider that failed or were aborted since the last answer. */
  readonly failures: number;
  /** Texts given since the last answer: input of the user and mail, oldest first. */
  readonly inputs: readonly string[];
  /** Tool results since the last answer, in the order of the calls' results. */
  readonly toolResults: readonly ToolMessage[];
  /** Output of the newest tool result, or null. */
  readonly lastToolResult: Json;
  /** The same as text: a string as it is, anything else as JSON. */
  readonly lastToolText: string;
  /** Output of the newest call of a tool, or undefined when there is none. */
  readonly resultOf: (tool: string) => Json | undefined;
}

export function scriptContext(request: StepRequest, failures: number): ScriptContext {
  const { messages } = request;
  const fresh = (): readonly PromptMessage[] =>
    messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  const newest = (name?: string): ToolMessage | undefined =>
    messages.findLast(
      (message): message is ToolMessage =>
        message.role === "tool" && (name === undefined || message.name === name),
    );
  return {
    request,
    path: request.path,
    messages,
    ownSteps: request.ownSteps,
    failures,
    get inputs() {
      return fresh().flatMap((message) => (message.role === "user" ? [message.text] : []));
    },
    get toolResults() {
      return fresh().filter((message): message is ToolMessage => message.role === "tool");
    },
    get lastToolResult() {
      return newest()?.output ?? null;
    },
    get lastToolText() {
      const output = newest()?.output ?? null;
      return typeof output === "string" ? output : JSON.stringify(output);
    },
    resultOf: (tool) => newest(tool)?.output,
  };
}
