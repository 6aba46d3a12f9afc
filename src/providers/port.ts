/**
 * The provider port, written against capabilities, never against names (lineage 3; RUN-5). An adapter with
 * `loop: "ours"` answers one model request at a time and the run loop of `session/` does the rest: tools, mail,
 * persistence, limits.
 *
 * - P1 `step` yields `accepted` first, as soon as it is certain that the provider has taken the request.
 * - P2 It throws `ProviderError`s only (TransientError or RejectedError of the PROVIDER_… and MODEL_… codes) or the reason
 *   of the signal; nothing else escapes.
 * - P3 After an abort it ends within the grace time; what it yields then is ignored.
 */
import type { StepEvent, StepRequest } from "../protocol/provider-events.ts";

/** What a provider can do; the runtime asks for these and never for names. */
export interface ProviderCapabilities {
  readonly loop: "ours";
  /** Its transcript is ours: recovery is exact and an open wait can be parked (REC-5, RES-2). */
  readonly exact: boolean;
  readonly parksWaits: boolean;
  readonly questions: boolean;
  readonly approvals: boolean;
}

/** What is known of a model. */
export interface ModelInfo {
  /** Tokens of the context window, or null when unknown (128,000 is then assumed). */
  readonly contextWindow: number | null;
  readonly maxOutputTokens: number | null;
  /** Reasoning efforts in the order in which they are offered; null when it takes any. */
  readonly efforts: readonly string[] | null;
  readonly defaultEffort: string | null;
  /** False makes its agents leaves, without collaboration tools (agents.md 82). */
  readonly collaborates: boolean;
  readonly modeHint?: string | null;
}

/** Requests of one loaded agent, one at a time. */
export interface ProviderSession {
  step(request: StepRequest, signal: AbortSignal): AsyncIterable<StepEvent>;
  close(): Promise<void>;
}

/** What a provider does: it names its models and opens a session for each loaded agent. */
export interface ProviderAdapter {
  /** `scripted`, `model`. */
  readonly driver: string;
  readonly capabilities: ProviderCapabilities;
  readonly defaultModel: string | null;
  /** Models by name, or null when any name is taken. */
  models(): Readonly<Record<string, ModelInfo>> | null;
  openSession(input: {
    readonly threadId: string;
    readonly path: string;
    readonly model: string | null;
  }): Promise<ProviderSession>;
}
