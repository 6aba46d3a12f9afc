/** Calls and questions of a provider's own loop in the words of a transcript, and results in the provider's (pure). */
import type { RequestId } from "../protocol/ids.ts";
import type { Json } from "../protocol/json.ts";
import type { NativeAnswer, NativeItem, NativeRequest } from "../protocol/native-events.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import type { AssistantPart } from "../protocol/transcript.ts";
import { readDecision } from "../protocol/decision.ts";
import { sha256 } from "../platform/digest.ts";
import type { Call, ResultBody } from "./ports.ts";

/** A call that the provider has carried out itself. */
export function recordedCall(item: Extract<NativeItem, { kind: "tool" | "file_change" }>): {
  readonly part: AssistantPart;
  readonly result: ResultBody;
} {
  const { callId } = item;
  if (item.kind === "tool") {
    const { name, input, output, isError } = item;
    return {
      part: { type: "tool_call", callId, name, input },
      result: resultOf(callId, name, output, isError),
    };
  }
  const input = JSON.stringify({ path: item.path, change: item.change });
  return {
    part: { type: "tool_call", callId, name: item.kind, input },
    result: resultOf(callId, item.kind, item.summary, false),
  };
}

/** What it asks of us. Ids are ours, made of the turn and the provider's own: those repeat from turn to turn, and from call to call. */
export function askedCall(request: NativeRequest, turn: string): Call {
  const callId = callIdOf(request.ref, turn);
  if (request.kind === "tool") return { type: "tool_call", callId, name: request.name, input: request.input };
  const { kind, text, about } = request;
  const asked = { type: "request", callId, requestId: requestIdOf(request.ref, turn), kind, text } as const;
  return about === null ? asked : { ...asked, about };
}

export function callIdOf(ref: NativeRef, turn: string): string {
  return `call_${digestOf(ref, turn)}`;
}

export function requestIdOf(ref: NativeRef, turn: string): RequestId {
  return `req_${digestOf(ref, turn)}`;
}

function digestOf({ nativeId }: NativeRef, turn: string): string {
  return sha256([turn, nativeId].join(" ")).slice(0, 21);
}

/** `notice` says that mail waits; it ends the results of our own tools (RUN-5). */
export function answerOf(request: NativeRequest, item: ResultBody, notice: string | null): NativeAnswer {
  if (request.kind !== "tool") {
    if (item.isError) return { kind: "cancelled" };
    const text = textOf(item.output);
    return request.kind === "question"
      ? { kind: "answer", text }
      : { kind: "decision", decision: readDecision(text) };
  }
  const { isError } = item;
  if (notice === null) return { kind: "tool", output: item.output, isError };
  const output: Json =
    typeof item.output === "string" ? `${item.output}\n\n${notice}` : { output: item.output, notice };
  return { kind: "tool", output, isError };
}

function textOf(output: Json): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}

export function resultOf(callId: string, name: string, output: Json, isError: boolean): ResultBody {
  return {
    kind: "tool_result",
    callId,
    name,
    output,
    isError,
    mailIds: [],
    waitId: null,
    elapsedMs: 0,
  };
}
