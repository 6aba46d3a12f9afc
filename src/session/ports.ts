/**
 * What the run loop asks of those around it. `control` implements it: each call that writes is one commit, and the
 * session is brought up to date in the same synchronous block that follows it. The loop knows no tree and no limits.
 */
import type { NativeChildEvent, NativeThread } from "../protocol/native-events.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import type { NativeSelection, NativeSession } from "../providers/port.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { MailId, ProviderThreadId, RequestId } from "../protocol/ids.ts";
import type { PromptMessage, StepUsage } from "../protocol/provider-events.ts";
import type { ToolHost, ToolSpec } from "../protocol/tool.ts";
import type { Attributes } from "../platform/telemetry.ts";
import type { AssistantPart, ItemBody } from "../protocol/transcript.ts";
import type { Session } from "./session.ts";

export type AssistantBody = Extract<ItemBody, { kind: "assistant" }>;
export type ResultBody = Extract<ItemBody, { kind: "tool_result" }>;

/** Mail and notes that go into the next request, not yet stored as items. */
export interface NextInput {
  readonly mail: readonly MailRecord[];
  readonly stubs: readonly MailRecord[];
  readonly leftOut: readonly MailRecord[];
  /** The runtime's own texts and the mail, in the order of the request. */
  readonly bodies: readonly ItemBody[];
  /** Results that waits of this run handed out with outputs the provider has not accepted yet. */
  readonly handed: readonly MailId[];
  /** The mode hint among the bodies, to be remembered as sent (POL-4). */
  readonly modeHint: string | null;
}

export type Admitted =
  /** `reservation` is given back when the usage is stored, or the request has failed. */
  | {
      readonly kind: "go";
      readonly reservation: Disposable;
      readonly tools: readonly ToolSpec[];
      readonly maxOutputTokens: number | null;
      /** The last step, which offers no tools and has a time of its own (RUN-3). */
      readonly wrapUp: boolean;
    }
  /** The run has been settled by a limit or a budget, or is held until a budget has room again. */
  | { readonly kind: "ended" };

export interface RetryAnswer {
  readonly retry: boolean;
  readonly delayMs: number;
}

/** A preview that is dropped shows nothing more. */
export interface Preview {
  push(text: string): void;
  /** The end of the response. */
  end(): void;
}

export interface RunPorts {
  readonly toolHost: ToolHost;
  readonly tools: readonly ToolSpec[];
  readonly conversationKey: string;
  /** Aborted when the time of the run is used up: what is under way is cut off, save the wrap-up step (RUN-3). */
  readonly timeUp: AbortSignal;
  /**
   * What the run starts with, decided and stored before its first request (lineage C4); where it goes on, what its provider
   * has seen. False when it cannot start: it has been settled.
   */
  start(): Promise<boolean>;
  /** What is to go into the next request. Composing the first one closes the run to joining results (WAI-1). */
  nextInput(): Promise<NextInput>;
  /** Limits, budgets and the provider's back-off; may wait. */
  admit(messages: readonly PromptMessage[]): Promise<Admitted>;
  /** The provider has accepted the request with this input. */
  accepted(input: NextInput, native?: NativeAcceptance): Promise<void>;
  /** A response with tool calls, or with questions. */
  calls(body: AssistantBody, usage: StepUsage | null): Promise<void>;
  /** A response without calls: the run is settled, or goes on when more is due. `cut`: what cut it off before its end. */
  answered(
    body: AssistantBody,
    usage: StepUsage | null,
    text: string,
    cut?: "length" | "content_filter" | null,
  ): Promise<"settled" | "continues">;
  toolReturned(body: ResultBody): Promise<void>;
  /** Outputs of waits that have ended and of questions that were answered, appended. Answers the calls that still wait. */
  collect(calls: readonly Call[]): Promise<ReadonlySet<string>>;
  /** True when the run now waits; false when everything has ended meanwhile. */
  suspend(): Promise<boolean>;
  /** A request has failed; bounded, jittered, shared by all runs of the provider (RUN-4). */
  failed(error: unknown, attempt: number, visible: boolean): Promise<RetryAnswer>;
  /** A request was cut off by `timeUp`: what it has said so far is kept. */
  cutOff(): Promise<void>;
  /** The retries are spent, or there are none: settles the run. */
  giveUp(error: unknown, usage: StepUsage | null): Promise<void>;
  readonly native: NativePorts;
  pause(ms: number, signal: AbortSignal): Promise<void>;
  /** Shows the text of one response to those who watch, as it streams. */
  preview(): Preview;
  /** Runs a body inside a span; `add` gives it attributes that are known only then (OBS-2). */
  span<T>(
    name: string,
    attributes: Attributes,
    body: (add: (attributes: Attributes) => void) => Promise<T>,
    origin?: { readonly client?: boolean },
  ): Promise<T>;
}

/** The turn of a provider's own loop that took the input; a run may need several. */
export interface NativeAcceptance {
  readonly thread: NativeThreadHandle;
  readonly turn: NativeRef | null;
  /** Turns before it that the provider may have taken as well. */
  readonly unsure: number;
}

/** The provider's conversation that a run goes to, and the record of it. */
export interface NativeThreadHandle {
  readonly id: ProviderThreadId;
  readonly thread: NativeThread;
}

/** What a run asks for beside that when its provider owns the loop. */
export interface NativePorts {
  /** The conversation of the agent, made or resumed. */
  nativeThread(session: Session): Promise<NativeThreadHandle>;
  /** The selection of the run wants another session than one that was opened for this. */
  restarts(opened: NativeSelection): boolean;
  /** Another session in place of one that is being closed. */
  reopen(
    closing: Promise<void>,
  ): Promise<{ readonly session: NativeSession; readonly selection: NativeSelection }>;
  /** A step of the provider's loop, and what came of its calls; `over` when a limit of the run is reached with it. */
  record(body: AssistantBody, results: readonly ResultBody[]): Promise<"on" | "over">;
  /** Calls that came while others of the newest step are open. */
  join(body: AssistantBody): Promise<void>;
  /** Counts at once; a budget that is spent with it stops the run (BUD-2). */
  used(usage: StepUsage): Promise<void>;
  /** A question or an approval that nobody waits for any more. */
  withdraw(request: RequestId): Promise<void>;
  /** Resolves when one of the calls has an output, which is to be collected. @throws the signal's reason. */
  callEnded(calls: readonly Call[], signal: AbortSignal): Promise<void>;
  /** The turn is over and so are the calls that are still open. */
  closeCalls(text: string): Promise<void>;
  /** A conversation that the provider has opened or ended under the turn: observed, never driven (lineage C8.1). */
  child(event: NativeChildEvent): Promise<void>;
  /** A turn was asked for that the provider may have taken. False where that cannot be stored, and is to be kept in mind. */
  doubt(thread: NativeThreadHandle): Promise<boolean>;
  /** The turn is over, and this is how it can be named from now on. */
  turnEnded(thread: NativeThreadHandle, turn: NativeRef | null): Promise<void>;
  /** Grows with each mail to the agent. */
  newestMail(): number;
  mailAfter(seq: number, signal: AbortSignal): Promise<void>;
  /** Says that mail waits, to a provider that takes none in the middle of a turn (RUN-5). */
  unreadNotice(): Promise<string | null>;
  /** Something has happened in a turn whose run waits: the run is driven again. */
  wake(): void;
}

export type Call = Extract<AssistantPart, { callId: string }>;
