/** The provider `model` over the three vendors' real clients, each pointed at the vendor server. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { StepEvent, StepRequest } from "../../src/protocol/provider-events.ts";
import type { AssistantPart } from "../../src/protocol/transcript.ts";
import type { ProviderSession } from "../../src/providers/port.ts";
import { createModelProvider, type ModelProviderOptions } from "../../src/providers/model/model-provider.ts";

/** Looks like a key, so that a leak is seen. */
export const KEY = "sk-loopback-0123456789abcdef";

export interface VendorClient {
  readonly vendor: string;
  readonly model: (baseURL: string) => LanguageModelV4;
}

export const vendors: readonly VendorClient[] = [
  { vendor: "openai", model: (baseURL) => createOpenAI({ baseURL, apiKey: KEY })("gpt-5") },
  {
    vendor: "openai-compatible",
    model: (baseURL) =>
      createOpenAICompatible({ name: "local", baseURL, apiKey: KEY, includeUsage: true })("scripted"),
  },
  { vendor: "anthropic", model: (baseURL) => createAnthropic({ baseURL, apiKey: KEY })("claude-sonnet-4-5") },
];

/** A session of a provider that has one model. */
export function openSession(
  model: LanguageModelV4,
  options: Partial<ModelProviderOptions> = {},
): Promise<ProviderSession> {
  const adapter = createModelProvider({ models: { one: model }, ...options });
  return adapter.openSession({ threadId: "thread_1", path: "/root", model: null });
}

export function stepRequest(changes: Partial<StepRequest> = {}): StepRequest {
  return {
    threadId: "thread_1",
    conversationKey: "thread_1",
    path: "/root",
    runId: "run_1",
    step: 1,
    attempt: 1,
    model: null,
    effort: null,
    ownSteps: 0,
    messages: [
      { role: "system", text: "You look at things." },
      { role: "user", text: "Look." },
    ],
    tools: [],
    maxOutputTokens: null,
    ...changes,
  };
}

export const LOOK: StepRequest["tools"][number] = {
  name: "look",
  description: "Looks at one thing.",
  parameters: { type: "object", properties: { at: { type: "string" } }, required: ["at"] },
  effects: [],
};

/** All events of a step. */
export async function run(
  session: ProviderSession,
  request: StepRequest = stepRequest(),
  signal: AbortSignal = new AbortController().signal,
): Promise<StepEvent[]> {
  const events: StepEvent[] = [];
  for await (const event of session.step(request, signal)) events.push(event);
  return events;
}

export function partsOf(events: readonly StepEvent[]): AssistantPart[] {
  return events.flatMap((event) => (event.type === "part" ? [event.part] : []));
}

export function deltasOf(events: readonly StepEvent[], type: "text" | "reasoning"): string[] {
  return events.flatMap((event) => (event.type === type ? [event.text] : []));
}
