/**
 * What a scripted agent of the demo can know: its own conversation, read again at every step. It remembers nothing else, so it
 * goes on after an unload, in another process, and after `kill -9`.
 */
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { PromptMessage } from "../../protocol/provider-events.ts";

/** A message of another agent or of the runtime. */
export interface Letter {
  readonly type: string;
  readonly sender: string;
  readonly workId: string | null;
  readonly text: string;
  readonly at: number;
}

/** A tool call and what came back. */
export interface Call {
  readonly name: string;
  readonly input: JsonObject;
  readonly output: Json;
  /** `lost`: a crash came between the call and its output, so nobody knows what it did. */
  readonly ending: "ok" | "refused" | "lost" | "open";
  readonly at: number;
}

export interface Conversation {
  readonly letters: readonly Letter[];
  readonly calls: readonly Call[];
  /** What it was asked to do, by agents and by the user, oldest first. */
  readonly tasks: readonly { readonly text: string; readonly at: number }[];
}

export function readConversation(messages: readonly PromptMessage[]): Conversation {
  const letters: Letter[] = [];
  const tasks: { text: string; at: number }[] = [];
  const calls = new Map<string, Call>();
  messages.forEach((message, at) => {
    switch (message.role) {
      case "user": {
        const letter = parseLetter(message.text, at);
        if (letter !== null) letters.push(letter);
        if (letter?.type === "NEW_TASK") tasks.push({ text: letter.text, at });
        if (letter === null && !message.text.startsWith("[runtime: ")) tasks.push({ text: message.text, at });
        break;
      }
      case "assistant":
        for (const part of message.parts) {
          if (part.type !== "tool_call") continue;
          const input = parseInput(part.input);
          calls.set(part.callId, { name: part.name, input, output: null, ending: "open", at });
        }
        break;
      case "tool": {
        const call = calls.get(message.callId);
        if (call === undefined) break;
        calls.set(message.callId, { ...call, output: message.output, ending: endingOf(message), at });
        break;
      }
      case "system":
        break;
    }
  });
  return { letters, tasks, calls: [...calls.values()] };
}

/** The newest output of a call that went well, such as `count` of one path. */
export function outputOf(
  conversation: Conversation,
  name: string,
  fits: (input: JsonObject) => boolean = () => true,
  since = 0,
): JsonObject | null {
  const call = conversation.calls.findLast(
    (one) => one.name === name && one.at >= since && one.ending === "ok" && fits(one.input),
  );
  return call === undefined ? null : objectOf(call.output);
}

/** What a call was refused with, when it was the newest of its kind and was refused. */
export function refusalOf(
  conversation: Conversation,
  name: string,
  fits: (input: JsonObject) => boolean = () => true,
  since = 0,
): string | null {
  const call = conversation.calls.findLast((one) => one.name === name && one.at >= since && fits(one.input));
  if (call?.ending !== "refused") return null;
  const { output } = call;
  if (typeof output === "string") return output;
  return textOf(objectOf(output)["error"]) || JSON.stringify(output);
}

export function objectOf(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

export function rowsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.map((row) => objectOf(row as Json)) : [];
}

export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}

/** What stands in backquotes. */
export function quotedIn(text: string): string | null {
  return /`([^`\n]+)`/.exec(text)?.[1] ?? null;
}

function parseLetter(text: string, at: number): Letter | null {
  const end = text.indexOf("\nPayload:\n");
  if (!text.startsWith("Message Type: ") || end === -1) return null;
  const header = new Map(
    text
      .slice(0, end)
      .split("\n")
      .map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)] as const),
  );
  return {
    type: header.get("Message Type") ?? "",
    sender: header.get("Sender") ?? "",
    workId: header.get("Work id") ?? null,
    // Lines that could pass for a header come marked.
    text: text.slice(end + "\nPayload:\n".length).replaceAll(/^\u00a6 /gmu, ""),
    at,
  };
}

function parseInput(text: string): JsonObject {
  try {
    return objectOf(JSON.parse(text) as Json);
  } catch {
    // A real model may have written it; a script only looks for what it knows.
    return {};
  }
}

function endingOf(message: Extract<PromptMessage, { role: "tool" }>): Call["ending"] {
  if (!message.isError) return "ok";
  const { output } = message;
  return typeof output === "string" && /^(outcome unknown|aborted)/.test(output) ? "lost" : "refused";
}
