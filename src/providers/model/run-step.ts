/**
 * One model request: `doStream`, and its stream as step events. What came is passed on as it comes; how a failure is
 * called is left to `failure.ts`, how long to wait to `patience.ts`, how parts are built to `answer.ts`.
 *
 * - `accepted` comes with the first thing the stream holds that is no error: by then the response has begun.
 * - Raw chunks are asked for, because they carry the vendor's own signs of life; each one starts the stall time anew.
 * - The transcript holds text, reasoning and calls of our tools. An answer with anything else that a later request would
 *   need (tools that the provider ran itself, approvals, files) is refused, not shortened. Sources are only for display
 *   and custom content holds the vendor's own marks, without which a later request is still whole: both are left out.
 * - No retries here: they are the run loop's (RUN-4).
 */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { StepEvent, StepRequest, StepUsage } from "../../protocol/provider-events.ts";
import type { Clock } from "../../platform/clock.ts";
import { Answer } from "./answer.ts";
import { brokenProtocol, cut, type Subject, toProviderError } from "./failure.ts";
import { createPatience, type Patience } from "./patience.ts";
import { toPrompt, toTools, withCacheMarks } from "./prompt.ts";

type Finish = Extract<LanguageModelV4StreamPart, { type: "finish" }>;
type Effort = NonNullable<LanguageModelV4CallOptions["reasoning"]>;

const EFFORTS: readonly string[] = [
  "none",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
  "max",
] satisfies Effort[];

/** How long the end of a stream is awaited after its last event, so that the connection can be used again. */
const END_OF_STREAM_MS = 1_000;

/** What stays the same over the requests of a provider. */
export interface StepSettings {
  readonly clock: Clock;
  readonly stallMs: number;
  readonly providerOptions: SharedV4ProviderOptions;
}

/** The events of one request. */
export async function* runStep(
  model: LanguageModelV4,
  request: StepRequest,
  caller: AbortSignal,
  { clock, stallMs, providerOptions }: StepSettings,
): AsyncGenerator<StepEvent> {
  const subject: Subject = { provider: model.provider, model: model.modelId };
  using patience = createPatience(clock, caller, () => stalled(subject, stallMs));
  try {
    caller.throwIfAborted();
    const options = callOptions(request, patience.signal, providerOptions);
    const stream = await open(model, options, patience, stallMs);
    yield* read(stream.getReader(), new Answer(callIdsOf(request)), subject, patience, stallMs);
  } catch (error) {
    caller.throwIfAborted();
    throw toProviderError(error, subject, clock.now());
  }
}

async function open(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
  patience: Patience,
  stallMs: number,
): Promise<ReadableStream<LanguageModelV4StreamPart>> {
  const opening = Promise.resolve(model.doStream(options));
  try {
    return (await patience.wait(opening, stallMs)).stream;
  } catch (error) {
    // The stream of a model that does not heed the signal may still come, and nobody would read it.
    void opening.then(({ stream }) => stream.cancel()).catch(() => {});
    throw error;
  }
}

async function* read(
  reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
  answer: Answer,
  subject: Subject,
  patience: Patience,
  stallMs: number,
): AsyncGenerator<StepEvent> {
  let accepted = false;
  try {
    for (;;) {
      const { done, value } = await patience.wait(reader.read(), stallMs);
      if (done) throw cut(subject);
      if (value.type === "error") throw value.error;
      if (!accepted) {
        accepted = true;
        yield { type: "accepted" };
      }
      if (value.type === "finish") {
        yield* finish(value, answer, subject);
        await drain(reader, patience);
        return;
      }
      const preview = take(value, answer, subject);
      if (preview !== undefined) yield preview;
      for (const part of answer.take()) yield { type: "part", part };
    }
  } finally {
    // For models that do not heed the signal. Not awaited: a stream that hangs may also hang here.
    void reader.cancel().catch(() => {});
  }
}

/** Puts one stream part into the answer; deltas are also shown at once. */
function take(
  value: Exclude<LanguageModelV4StreamPart, Finish>,
  answer: Answer,
  subject: Subject,
): StepEvent | undefined {
  switch (value.type) {
    case "text-start":
    case "text-delta":
    case "reasoning-start":
    case "reasoning-delta": {
      const type = value.type.startsWith("text") ? "text" : "reasoning";
      const delta = "delta" in value ? value.delta : "";
      answer.add(type, value.id, delta, value.providerMetadata);
      return delta === "" ? undefined : { type, text: delta };
    }
    case "text-end":
      answer.end("text", value.id, value.providerMetadata);
      return undefined;
    case "reasoning-end":
      answer.end("reasoning", value.id, value.providerMetadata);
      return undefined;
    case "tool-input-start":
      // Marks the call's place among the parts; its input comes whole with the call.
      if (value.providerExecuted !== true) answer.add("tool_call", value.id, "", value.providerMetadata);
      return undefined;
    case "tool-call":
      if (value.providerExecuted === true)
        throw unkept(subject, `a call of ${value.toolName}, run by the provider`);
      answer.call(value);
      return undefined;
    case "tool-result":
      throw unkept(subject, `a result of ${value.toolName}, run by the provider`);
    case "tool-approval-request":
    case "file":
    case "reasoning-file":
      throw unkept(subject, `a part of type ${value.type}`);
    case "tool-input-delta":
    case "tool-input-end":
    case "source":
    case "custom":
    case "stream-start":
    case "response-metadata":
    case "ping":
    case "raw":
    case "error":
      return undefined;
  }
}

function* finish({ finishReason, usage }: Finish, answer: Answer, subject: Subject): Generator<StepEvent> {
  const { unified } = finishReason;
  if (unified === "interrupted") throw cut(subject);
  if (unified === "error") throw cut(subject, finishReason.raw ?? "it reported an error without a reason");
  for (const part of answer.take(true)) yield { type: "part", part };
  const figures = toUsage(usage);
  if (figures !== undefined) yield { type: "usage", usage: figures };
  switch (unified) {
    case "length":
      yield { type: "finish", reason: "length" };
      return;
    case "content-filter":
      yield { type: "finish", reason: "content_filter" };
      return;
    case "tool-calls":
    case "stop":
    case "other":
      // Some vendors say `stop` although they call tools, and the reverse.
      yield {
        type: "finish",
        reason: answer.calls > 0 ? "tool_calls" : unified === "other" ? "other" : "stop",
      };
  }
}

/** Totals include cached input and reasoning; without totals there is no report (`complete` becomes false). */
function toUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): StepUsage | undefined {
  if (inputTokens.total === undefined || outputTokens.total === undefined) return undefined;
  return {
    inputTokens: inputTokens.total,
    cachedInputTokens: inputTokens.cacheRead ?? 0,
    outputTokens: outputTokens.total,
    reasoningTokens: outputTokens.reasoning ?? 0,
  };
}

async function drain(
  reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
  patience: Patience,
): Promise<void> {
  try {
    while (!(await patience.wait(reader.read(), END_OF_STREAM_MS)).done);
  } catch {
    // The answer is whole; how its connection ends no longer matters.
  }
}

function callOptions(
  request: StepRequest,
  signal: AbortSignal,
  providerOptions: SharedV4ProviderOptions,
): LanguageModelV4CallOptions {
  const tools = toTools(request.tools);
  const { effort, maxOutputTokens, conversationKey } = request;
  if (effort !== null && !EFFORTS.includes(effort)) {
    throw new RejectedError(
      "PROVIDER_REFUSED",
      `The reasoning effort "${effort}" is unknown; use one of ${EFFORTS.join(", ")}.`,
      { effort, known: EFFORTS },
    );
  }
  return {
    prompt: promptOf(request, providerOptions),
    abortSignal: signal,
    includeRawChunks: true,
    providerOptions: withDefaults(providerOptions, conversationKey),
    ...(tools !== undefined && { tools }),
    ...(maxOutputTokens !== null && { maxOutputTokens }),
    ...(effort !== null && { reasoning: effort as Effort }),
  };
}

/** Whoever says how Anthropic is to cache, marks for themselves. */
function promptOf({ messages }: StepRequest, { anthropic }: SharedV4ProviderOptions) {
  const prompt = toPrompt(messages);
  return anthropic !== undefined && "cacheControl" in anthropic ? prompt : withCacheMarks(prompt);
}

/** The transcript is ours: nothing in it may depend on what a vendor stores. The user's options win. */
function withDefaults(given: SharedV4ProviderOptions, conversationKey: string): SharedV4ProviderOptions {
  const openai = { store: false, promptCacheKey: conversationKey };
  return { ...given, openai: { ...openai, ...given["openai"] }, azure: { ...openai, ...given["azure"] } };
}

function callIdsOf({ messages }: StepRequest): string[] {
  return messages.flatMap((message) =>
    message.role === "assistant"
      ? message.parts.flatMap((part) => ("callId" in part ? [part.callId] : []))
      : [],
  );
}

function stalled(subject: Subject, stallMs: number): TransientError {
  return new TransientError(
    "PROVIDER_STALLED",
    `${subject.provider} sent nothing for ${stallMs} ms; the request was ended.`,
    { ...subject, stallMs },
  );
}

function unkept(subject: Subject, what: string): RejectedError {
  return brokenProtocol(
    subject,
    `it holds ${what}, which a transcript cannot keep; turn that feature off in the model's provider options`,
  );
}
