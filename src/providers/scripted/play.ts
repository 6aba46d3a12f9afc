/**
 * Plays one step as the events of a provider. Everything in it is decided by the request: ids of calls and questions, usage,
 * text. Waiting is for a gate, the injected clock or the abort signal, never for anything else.
 *
 * - Y1 `accepted` comes before the first act that shows, and never before a failure or gate that is to precede acceptance.
 * - Y2 An abort ends it at once with the signal's reason, unless the script says that it is deaf.
 */
import { type Clock, delay } from "../../platform/clock.ts";
import { sha256 } from "../../platform/digest.ts";
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { RequestId } from "../../protocol/ids.ts";
import type { Json } from "../../protocol/json.ts";
import type { PromptMessage, StepEvent, StepRequest, StepUsage } from "../../protocol/provider-events.ts";
import type { AssistantPart } from "../../protocol/transcript.ts";
import type { ScriptContext } from "./context.ts";
import type { Gates } from "./gates.ts";
import { type Act, type FailOptions, type FinishReason, textOf } from "./script.ts";

/** What a player may wait for. */
export interface Stage {
  readonly gates: Gates;
  readonly clock: Clock;
}

/** Plays the acts of one response; throws what the script or the signal says. */
export async function* play(
  acts: readonly Act[],
  context: ScriptContext,
  stage: Stage,
  signal: AbortSignal,
): AsyncGenerator<StepEvent, void, void> {
  const parts: AssistantPart[] = [];
  let accepted = false;
  let deaf = false;
  let figures: Partial<StepUsage> | null = {};
  let reason: FinishReason | null = null;
  for (const act of acts) {
    if (!deaf) signal.throwIfAborted();
    if (!accepted && !precedesAcceptance(act)) {
      accepted = true;
      yield { type: "accepted" };
    }
    switch (act.kind) {
      case "text":
      case "reasoning": {
        const text = textOf(act.text, context);
        yield { type: act.kind, text };
        if (!deaf) signal.throwIfAborted();
        const part: AssistantPart = { type: act.kind, text };
        parts.push(part);
        yield { type: "part", part };
        break;
      }
      case "call":
      case "request": {
        const part = partOf(act, context, parts.length);
        parts.push(part);
        yield { type: "part", part };
        break;
      }
      case "gate":
        deaf ||= act.ignoresAbort;
        await stage.gates.pass(act.name, deaf ? undefined : signal);
        break;
      case "pause":
        await delay(stage.clock, act.ms, deaf ? undefined : signal);
        break;
      case "fail":
        throw failure(act.options);
      case "stall":
        await aborted(signal);
        break;
      case "usage":
        figures = act.figures;
        break;
      case "finish":
        reason = act.reason;
        break;
      case "end":
        break;
    }
  }
  if (!deaf) signal.throwIfAborted();
  if (!accepted) yield { type: "accepted" };
  if (figures !== null) yield { type: "usage", usage: { ...countUsage(context.request, parts), ...figures } };
  const calls = parts.some((part) => "callId" in part);
  yield { type: "finish", reason: reason ?? (calls ? "tool_calls" : "stop") };
}

/** Four characters a token: nothing a tokenizer would say, but the same on every machine. */
export function countUsage(request: StepRequest, parts: readonly AssistantPart[]): StepUsage {
  const reasoning = tokens(sum(parts.map((part) => (part.type === "reasoning" ? part.text.length : 0))));
  return {
    inputTokens: tokens(sum(request.messages.map(lengthOf))),
    cachedInputTokens: 0,
    outputTokens: tokens(sum(parts.map(lengthOfPart))) + reasoning,
    reasoningTokens: reasoning,
  };
}

export function precedesAcceptance(act: Act): boolean {
  switch (act.kind) {
    case "usage":
    case "finish":
      return true;
    case "gate":
      return act.beforeAcceptance;
    case "fail":
      return act.options.accepted !== true;
    default:
      return false;
  }
}

function partOf(
  act: Extract<Act, { kind: "call" | "request" }>,
  context: ScriptContext,
  index: number,
): AssistantPart {
  const { threadId, runId, ownSteps } = context.request;
  // Of the request alone, so that a repeated request repeats its ids; of the run, so that a thread cut back does not.
  const digest = sha256([threadId, runId, ownSteps, index].join(" ")).slice(0, 21);
  if (act.kind === "request") {
    const requestId: RequestId = `req_${digest}`;
    const text = textOf(act.text, context);
    const asked = { type: "request", callId: `call_${digest}`, requestId, kind: act.asks, text } as const;
    return act.about === null ? asked : { ...asked, about: act.about };
  }
  const input =
    typeof act.input === "string"
      ? act.input
      : JSON.stringify(typeof act.input === "function" ? act.input(context) : act.input);
  return { type: "tool_call", callId: `call_${digest}`, name: act.name, input };
}

export function failure(options: FailOptions): RejectedError | TransientError {
  const code = options.code ?? "PROVIDER_OVERLOADED";
  const message = options.message ?? "The script has this request fail.";
  const details = options.status === undefined ? {} : { status: options.status };
  switch (code) {
    case "PROVIDER_REFUSED":
    case "PROVIDER_PROTOCOL":
    case "MODEL_UNSUPPORTED":
      return new RejectedError(code, message, details);
    default:
      return new TransientError(code, message, details, { retryAfterMs: options.retryAfterMs ?? null });
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

function lengthOf(message: PromptMessage): number {
  switch (message.role) {
    case "assistant":
      return sum(
        message.parts.map((part) => lengthOfPart(part) + (part.type === "reasoning" ? part.text.length : 0)),
      );
    case "tool":
      return typeof message.output === "string" ? message.output.length : lengthOfJson(message.output);
    default:
      return message.text.length;
  }
}

/** An output comes with every later request of its thread. */
const lengths = new WeakMap<object, number>();

function lengthOfJson(value: Json): number {
  if (typeof value !== "object" || value === null) return JSON.stringify(value).length;
  let length = lengths.get(value);
  if (length === undefined) {
    length = JSON.stringify(value).length;
    lengths.set(value, length);
  }
  return length;
}

/** Characters of a part, reasoning apart. */
function lengthOfPart(part: AssistantPart): number {
  switch (part.type) {
    case "reasoning":
      return 0;
    case "tool_call":
      return part.name.length + part.input.length;
    default:
      return part.text.length;
  }
}

function tokens(characters: number): number {
  return Math.ceil(characters / 4);
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0);
}
