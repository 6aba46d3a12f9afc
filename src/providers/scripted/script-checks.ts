/**
 * What the words of a script take, looked at when the script is written: a wrong word would else be found in the middle of a
 * run, or never.
 */
import { z } from "zod";
import { check, optionsOf } from "../../platform/check.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { StepUsage } from "../../protocol/provider-events.ts";
import type { AskedAbout } from "../../protocol/wait.ts";
import type {
  FailOptions,
  FinishReason,
  ProviderErrorCode,
  ScriptedStep,
  ScriptedText,
  StepFunction,
} from "./script.ts";

const CODES = [
  "PROVIDER_OVERLOADED",
  "PROVIDER_UNREACHABLE",
  "PROVIDER_STALLED",
  "PROVIDER_REFUSED",
  "PROVIDER_PROTOCOL",
  "MODEL_UNSUPPORTED",
] as const satisfies readonly ProviderErrorCode[];
const REASONS = [
  "stop",
  "tool_calls",
  "length",
  "content_filter",
  "other",
] as const satisfies readonly FinishReason[];

const text = z.custom<ScriptedText>(
  (value) => typeof value === "string" || typeof value === "function",
  "is no text; give a string, or a function that makes one from what the model was sent",
);
const plainObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const options = z.custom<JsonObject>(plainObject, "are no arguments of a tool; give an object");
const name = z.string().min(1);
const figure = z.number().nonnegative().optional();

export const isStep = (value: unknown): boolean =>
  typeof value === "function" || Array.isArray((value as Partial<ScriptedStep> | null)?.acts);

export const stepSchema = z.custom<ScriptedStep | StepFunction>(
  isStep,
  "is no step; use those of `script`, or a function",
);

/** What each word is given, by name. */
const WORDS = {
  say: z.strictObject({ text }),
  think: z.strictObject({ text }),
  call: z.strictObject({
    name,
    input: z.custom(
      (value) => plainObject(value) || typeof value === "function",
      "is no input of a tool; give an object, or a function that makes one",
    ),
  }),
  callWithText: z.strictObject({ name, input: z.string() }),
  spawn: z.strictObject({ name: z.string(), message: text, options }),
  send: z.strictObject({ target: z.string(), message: text }),
  followUp: z.strictObject({ target: z.string(), message: text, options }),
  wait: z.strictObject({ options }),
  interrupt: z.strictObject({ target: z.string(), options }),
  list: z.strictObject({ options }),
  ask: z.strictObject({ text }),
  approve: z.strictObject({
    text,
    about: optionsOf<AskedAbout>({ tool: z.string(), input: z.string() }).nullable(),
  }),
  gate: z.strictObject({
    name,
    options: z.strictObject({ beforeAcceptance: z.boolean().optional() }),
  }),
  ignoreAbort: z.strictObject({ untilGate: name }),
  pause: z.strictObject({ ms: z.number().nonnegative() }),
  fail: z.strictObject({
    options: optionsOf<FailOptions>({
      code: z.enum(CODES).optional(),
      message: z.string().optional(),
      status: z.number().int().optional(),
      retryAfterMs: z.number().nonnegative().optional(),
      accepted: z.boolean().optional(),
      times: z.number().int().nonnegative().optional(),
    }),
  }),
  usage: z.strictObject({
    figures: optionsOf<Partial<StepUsage>>({
      inputTokens: figure,
      cachedInputTokens: figure,
      outputTokens: figure,
      reasoningTokens: figure,
    }).nullable(),
  }),
  finish: z.strictObject({ reason: z.enum(REASONS) }),
  together: z.strictObject({
    steps: z.array(
      z.custom<ScriptedStep>(
        (value) => typeof value !== "function" && isStep(value),
        "is no step of `script`",
      ),
    ),
  }),
  repeat: z.strictObject({
    step: stepSchema,
    times: z.custom<number>(
      (value) => value === Infinity || (Number.isInteger(value) && Number(value) >= 0),
      "is no number of times; give a whole number from 0, or leave it out for ever",
    ),
  }),
};

/** @throws RejectedError `INVALID_ARGUMENT` that names the word and what is wrong. */
export function checkWord(word: keyof typeof WORDS, given: Readonly<Record<string, unknown>>): void {
  check<unknown>(`script.${word}`, WORDS[word], given);
}
