/**
 * The provider port, written against capabilities, never against names (lineage 3; RUN-5). An adapter with
 * `loop: "ours"` answers one model request at a time and the run loop of `session/` does the rest: tools, mail,
 * persistence, limits.
 *
 * - P1 `step` yields `accepted` first, as soon as it is certain that the provider has taken the request.
 * - P2 It throws `ProviderError`s only (TransientError or RejectedError of the PROVIDER_… and MODEL_… codes) or the reason
 *   of the signal; nothing else escapes.
 * - P3 After an abort it ends within the grace time; what it yields then is ignored.
 *
 * An adapter with `loop: "theirs"` owns its loop: it is given a turn and tells what happens in it.
 *
 * - P4 P2 holds for every method. A refusal before acceptance rejects `startTurn` and no event of that turn comes. It rejects with
 *   the signal's reason only where nothing was sent: the conversation holds no such turn.
 * - P5 An accepted turn ends with one `turn.terminal`, unless the events themselves end or throw: then its provider is
 *   gone and the session with it. What `interruptTurn` answers is an acknowledgement and no end.
 * - P6 `resumeThread` works or throws; it never answers with an empty conversation. `startTurn` is only called while no
 *   turn of the thread is under way.
 * - P7 Optional methods are called through `nativeCall`, which holds them to the capability that goes with them.
 * - P8 A turn that is stopped before its provider has begun with it is stopped as soon as it has. `close` stops the turn under way
 *   before it leaves the conversation, in bounded time: what serves it may go on to serve others (INT-3, INT-7).
 */
import type { StartProcess } from "../platform/process.ts";
import type { Effect } from "../protocol/agent.ts";
import type {
  NativeAnswer,
  NativeEvent,
  NativeHistoryPage,
  NativeThread,
  NativeTurn,
  Preamble,
} from "../protocol/native-events.ts";
import type { StepEvent, StepRequest } from "../protocol/provider-events.ts";
import type { Boundary, ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import type { ToolSpec } from "../protocol/tool.ts";

/** What a provider can do; the runtime asks for these and never for names. */
export interface ProviderCapabilities {
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

interface AnyAdapter {
  /** `scripted`, `model`, `codex`, `claude`. */
  readonly driver: string;
  /** Adapters that share it may resume each other's threads (C4.3); the name in the runtime's options unless given. */
  readonly instanceId?: string;
  readonly defaultModel: string | null;
  /** Models by name, or null when any name is taken. */
  models(): Readonly<Record<string, ModelInfo>> | null;
  /** One answer to a prompt, outside of every conversation; goes with `context.canSummarise` (lineage C6.6). */
  summarise?(prompt: string, signal: AbortSignal): Promise<string>;
}

/** A provider whose loop is ours. */
export interface OwnLoopAdapter extends AnyAdapter {
  readonly loop: "ours";
  readonly capabilities: ProviderCapabilities;
  /** What its conversations can do, which are transcripts of ours. */
  readonly threads: ThreadCapabilities;
  openSession(input: {
    readonly threadId: string;
    readonly path: string;
    readonly model: string | null;
  }): Promise<ProviderSession>;
}

/** What a user may change between two runs. */
export interface NativeSelection {
  readonly model: string | null;
  readonly effort: string | null;
}

/** What it takes for a change: nothing, another session on the same conversation, or another conversation. */
export type SelectionChange = "apply_next_turn" | "restart_session" | "handoff" | { readonly reject: string };

export interface NativeSessionInput {
  /** Names the tree. Sessions of one tree may share what serves them, such as a process. */
  readonly treeId: string;
  readonly threadId: string;
  readonly path: string;
  readonly model: string | null;
  readonly workspace: string | null;
  /** What the agent may do to the world; what is not among them is kept from it (POL-2). */
  readonly effects: readonly Effect[];
  /** The agent's system text. */
  readonly instructions: string | null;
  /** Tools of ours that it may call; each call comes as a request and is answered by `respond`. */
  readonly tools: readonly ToolSpec[];
  /** Milliseconds that a call of these may last where its transport is given up on after that (WAI-7). */
  readonly transportWaitMs: number;
  /** Of the tree: registered with it, ended with its ownership, swept by its next owner (REC-4). */
  readonly startProcess: StartProcess;
}

/** What a turn is allowed and asked to do, of the agent's own settings and never of another session's (C5.21). */
export interface NativePolicy extends NativeSelection {
  readonly effects: readonly Effect[];
  readonly workspace: string | null;
  readonly maxOutputTokens: number | null;
}

export interface NativeTurnInput {
  readonly thread: NativeRef;
  /** Names the turn in the events of the session. */
  readonly key: string;
  readonly userMessage: string;
  /** In the order in which they are to be read, before the user's message. */
  readonly preambles: readonly Preamble[];
}

export interface NativeForkInput {
  readonly source: NativeRef;
  readonly boundary: Boundary;
  /** The turns of the source that carried runs of ours, oldest first, from the run at the boundary on. */
  readonly turns: readonly NativeTurn[];
  /** The intent record of this fork (C5.19). */
  readonly intentId: string;
  readonly signal?: AbortSignal;
}

export interface NativeRollbackInput {
  readonly thread: NativeRef;
  readonly boundary: Boundary;
  /** From the last turn that stays on, oldest first. */
  readonly turns: readonly NativeTurn[];
}

/** One agent's session with a provider that owns its loop. */
export interface NativeSession {
  /** What this session can do in fact; the adapter's `capabilities()` is what its kind can do. */
  readonly negotiated: ThreadCapabilities;
  /** Everything that happens from now on, for one reader. */
  events(): AsyncIterable<NativeEvent>;
  /** A conversation of its own, empty. */
  ensureThread(selection: NativeSelection): Promise<NativeThread>;
  resumeThread(thread: NativeRef): Promise<NativeThread>;
  startTurn(
    input: NativeTurnInput & { readonly policy: NativePolicy; readonly signal: AbortSignal },
  ): Promise<{ readonly turn: NativeRef | null }>;
  interruptTurn(thread: NativeRef, key: string): Promise<void>;
  respond(request: NativeRef, answer: NativeAnswer): Promise<void>;
  /** Puts input into the turn under way; rejects when it is over. */
  steerTurn?(input: NativeTurnInput): Promise<void>;
  forkThread?(input: NativeForkInput): Promise<NativeThread>;
  rollbackThread?(input: NativeRollbackInput): Promise<NativeThread>;
  readThread?(thread: NativeRef, page?: string): Promise<NativeHistoryPage>;
  /** Conversations that were forked from this one, of which we may know nothing (C5.19). */
  findForks?(source: NativeRef): Promise<readonly NativeThread[]>;
  close(): Promise<void>;
}

/** A provider that owns its loop. */
export interface NativeAdapter extends AnyAdapter {
  readonly loop: "theirs";
  /** Names under which its driver went before: records that bear one are its own. */
  readonly aliases?: readonly string[];
  capabilities(): Promise<ThreadCapabilities>;
  /**
   * What an agent can do in fact that was given these effects, its provider's own tools included. One that could do more than
   * it was given is refused (POL-2).
   */
  effectiveEffects(effects: readonly Effect[]): readonly Effect[];
  classifySelectionChange(current: NativeSelection, next: NativeSelection): SelectionChange;
  openSession(input: NativeSessionInput): Promise<NativeSession>;
}

/** What `createRuntime` is given by name, by who owns the loop. */
export type ProviderAdapter = OwnLoopAdapter | NativeAdapter;
