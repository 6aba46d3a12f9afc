/**
 * The words of which scripts are made. A script is a list of steps, or a function that is asked for each step; a step is one
 * model response: what it says, what it calls, and what it waits for while it does.
 *
 * A step on its own that answers nothing yet (`think`, `gate`, `pause`, `usage`, `finish`) belongs to the answer that follows
 * it in the list. `together` makes one response of several steps. Playing them is `play.ts`, finding the next `program.ts`.
 * Each word refuses what it cannot take with `INVALID_ARGUMENT`, at once.
 */
import type { AskedAbout } from "../../protocol/wait.ts";
import type { StepEvent, StepUsage } from "../../protocol/provider-events.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { ScriptContext } from "./context.ts";
import { checkWord } from "./script-checks.ts";

/** Text, or how to make it from what the model was sent. */
export type ScriptedText = string | ((context: ScriptContext) => string);
/** The arguments of a call, or how to make them from what the model was sent. */
export type ScriptedInput = JsonObject | ((context: ScriptContext) => JsonObject);

export type ProviderErrorCode =
  | "PROVIDER_OVERLOADED"
  | "PROVIDER_UNREACHABLE"
  | "PROVIDER_STALLED"
  | "PROVIDER_REFUSED"
  | "PROVIDER_PROTOCOL"
  | "MODEL_UNSUPPORTED";

/** How a request fails: with which code, before or after it was accepted, and how often. */
export interface FailOptions {
  /** Default `PROVIDER_OVERLOADED`, which may be retried; `PROVIDER_REFUSED` may not. */
  readonly code?: ProviderErrorCode;
  readonly message?: string;
  /** The HTTP status, found in the error's details. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Fails after the request was accepted; else before. */
  readonly accepted?: boolean;
  /** How many requests fail, one after the other; 1 unless given. */
  readonly times?: number;
}

/** Why a response ends, as a provider says it. */
export type FinishReason = Extract<StepEvent, { type: "finish" }>["reason"];

/** One thing that a response does. */
export type Act =
  | { readonly kind: "text" | "reasoning"; readonly text: ScriptedText }
  | {
      readonly kind: "call";
      readonly name: string;
      readonly input: ScriptedInput | string;
      /** What comes of it, where the provider itself carries the call out. */
      readonly output?: Json;
    }
  | {
      readonly kind: "request";
      readonly asks: "question" | "approval";
      readonly text: ScriptedText;
      readonly about: AskedAbout | null;
    }
  | {
      readonly kind: "gate";
      readonly name: string;
      readonly beforeAcceptance: boolean;
      readonly ignoresAbort: boolean;
    }
  | { readonly kind: "pause"; readonly ms: number }
  | { readonly kind: "fail"; readonly options: FailOptions }
  | { readonly kind: "stall" }
  | { readonly kind: "usage"; readonly figures: Partial<StepUsage> | null }
  | { readonly kind: "finish"; readonly reason: FinishReason }
  | { readonly kind: "end" };

/** One model response. */
export interface ScriptedStep {
  readonly acts: readonly Act[];
}

/** Decides a response from what the model was sent. Must be a pure function of it: it is asked again after a restart. */
export type StepFunction = (context: ScriptContext) => ScriptedStep;

/** A response that is given several times. */
export interface RepeatedStep {
  readonly step: ScriptedStep | StepFunction;
  readonly times: number;
}

/** One place of a script: a response, how to make it, or either several times. */
export type ScriptEntry = ScriptedStep | StepFunction | RepeatedStep;
/** What an agent answers: response by response, or a function that decides each. */
export type Script = readonly ScriptEntry[] | StepFunction;

const one = (act: Act): ScriptedStep => ({ acts: [act] });

/** Visible text; the answer of the run when nothing is called beside it. */
export function say(text: ScriptedText): ScriptedStep {
  checkWord("say", { text });
  return one({ kind: "text", text });
}

/** Reasoning of the response that follows. */
export function think(text: ScriptedText): ScriptedStep {
  checkWord("think", { text });
  return one({ kind: "reasoning", text });
}

/** Calls a tool. */
export function call(name: string, input: ScriptedInput = {}): ScriptedStep {
  checkWord("call", { name, input });
  return one({ kind: "call", name, input });
}

/** Calls a tool with arguments exactly as written, such as broken JSON. */
export function callWithText(name: string, input: string): ScriptedStep {
  checkWord("callWithText", { name, input });
  return one({ kind: "call", name, input });
}

/** `spawn_agent`; the options have the tool's own names, such as `fork_turns`. */
export function spawn(name: string, message: ScriptedText, options: JsonObject = {}): ScriptedStep {
  checkWord("spawn", { name, message, options });
  return call("spawn_agent", (context) => ({
    task_name: name,
    message: textOf(message, context),
    ...options,
  }));
}

/** `send_message`, which starts no run. */
export function send(target: string, message: ScriptedText): ScriptedStep {
  checkWord("send", { target, message });
  return call("send_message", (context) => ({ target, message: textOf(message, context) }));
}

/** `followup_task`; the options have the tool's own names. */
export function followUp(target: string, message: ScriptedText, options: JsonObject = {}): ScriptedStep {
  checkWord("followUp", { target, message, options });
  return call("followup_task", (context) => ({ target, message: textOf(message, context), ...options }));
}

/** `wait_agent`; the options have the tool's own names, such as `targets` and `timeout_ms`. */
export function wait(options: JsonObject = {}): ScriptedStep {
  checkWord("wait", { options });
  return call("wait_agent", options);
}

/** `interrupt_agent`; the options have the tool's own names. */
export function interrupt(target: string, options: JsonObject = {}): ScriptedStep {
  checkWord("interrupt", { target, options });
  return call("interrupt_agent", { target, ...options });
}

/** `list_agents`; the options have the tool's own names. */
export function list(options: JsonObject = {}): ScriptedStep {
  checkWord("list", { options });
  return call("list_agents", options);
}

/** `report_result` with a value. */
export function report(result: Json): ScriptedStep {
  return call("report_result", { result });
}

/** Asks the user a question; the answer is the next request's tool result. */
export function ask(question: ScriptedText): ScriptedStep {
  checkWord("ask", { text: question });
  return one({ kind: "request", asks: "question", text: question, about: null });
}

/** Asks for an approval, of a call of a tool where one is named. */
export function approve(text: ScriptedText, about: AskedAbout | null = null): ScriptedStep {
  checkWord("approve", { text, about });
  return one({ kind: "request", asks: "approval", text, about });
}

/** Waits at a named gate until the test opens it, after the request was accepted unless `beforeAcceptance` is set. */
export function gate(name: string, options: { readonly beforeAcceptance?: boolean } = {}): ScriptedStep {
  checkWord("gate", { name, options });
  const beforeAcceptance = options.beforeAcceptance ?? false;
  return one({ kind: "gate", name, beforeAcceptance, ignoresAbort: false });
}

/** Waits at a gate, deaf to the abort signal, and then answers as if nothing had happened (INT-3). */
export function ignoreAbort(untilGate: string): ScriptedStep {
  checkWord("ignoreAbort", { untilGate });
  return one({ kind: "gate", name: untilGate, beforeAcceptance: false, ignoresAbort: true });
}

/** Lets time pass on the provider's clock. */
export function pause(ms: number): ScriptedStep {
  checkWord("pause", { ms });
  return one({ kind: "pause", ms });
}

/** Fails the request. It leaves no answer: the next request, a retry or the next run's, gets the step that follows. */
export function fail(options: FailOptions = {}): ScriptedStep {
  checkWord("fail", { options });
  return one({ kind: "fail", options });
}

/** Never answers; ends when it is aborted, and the next request gets the step that follows. */
export function stall(): ScriptedStep {
  return one({ kind: "stall" });
}

/** Figures in place of those counted from the text; `null` reports none. */
export function usage(figures: Partial<StepUsage> | null): ScriptedStep {
  checkWord("usage", { figures });
  return one({ kind: "usage", figures });
}

/** The reason with which the response finishes, in place of `tool_calls` or `stop`. */
export function finish(reason: FinishReason): ScriptedStep {
  checkWord("finish", { reason });
  return one({ kind: "finish", reason });
}

/** An empty answer. */
export function end(): ScriptedStep {
  return one({ kind: "end" });
}

/** One response made of several: reasoning, text, parallel calls, with gates and pauses between them. */
export function together(...steps: readonly ScriptedStep[]): ScriptedStep {
  checkWord("together", { steps });
  return { acts: steps.flatMap((step) => step.acts) };
}

/** The same step for a number of requests, or for all that follow when none is given. */
export function repeat(step: ScriptedStep | StepFunction, times: number = Infinity): RepeatedStep {
  checkWord("repeat", { step, times });
  return { step, times };
}

/** The text of a scripted text, as a step says it. */
export function textOf(text: ScriptedText, context: ScriptContext): string {
  return typeof text === "string" ? text : text(context);
}

/** True when the act completes a response, with or without an answer; the others only lead to one. */
export function completes(act: Act): boolean {
  return !["reasoning", "gate", "pause", "usage", "finish"].includes(act.kind);
}

/** True when a step ends without an answer: it fails or stalls. A function counts as one that answers. */
export function leavesNothing(step: ScriptedStep | StepFunction): boolean {
  return typeof step !== "function" && step.acts.some(({ kind }) => kind === "fail" || kind === "stall");
}

/** A step in few words, for messages. */
export function describeStep(step: ScriptedStep | StepFunction): string {
  if (typeof step === "function") return "a function";
  const words = step.acts.map((act) => {
    switch (act.kind) {
      case "call":
      case "gate":
        return `${act.kind} ${act.name}`;
      case "text":
        return typeof act.text === "string" ? `say ${JSON.stringify(act.text.slice(0, 40))}` : "say";
      case "request":
        return act.asks;
      default:
        return act.kind;
    }
  });
  return words.join(", ");
}
