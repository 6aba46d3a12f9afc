/**
 * What a provider that owns its loop tells the session, and what it is told (lineage 3.1). Ids of the provider are evidence
 * and are handed back as they came; what a turn is called on our side is its `key`.
 */
import type { Decision } from "./decision.ts";
import type { RejectedError, TransientError } from "./errors.ts";
import type { Json } from "./json.ts";
import type { StepUsage } from "./provider-events.ts";
import type { ContextChannel } from "./provider-capabilities.ts";
import type { NativeRef } from "./provider-thread.ts";
import type { AskedAbout } from "./wait.ts";

/** Context beside the user's message, in the channel that was chosen for it (C6.10). */
export interface Preamble {
  readonly kind: "handoff" | "note" | "mail";
  readonly channel: ContextChannel;
  readonly text: string;
}

/** Something whole that a turn has brought. */
export type NativeItem =
  | { readonly kind: "text" | "reasoning"; readonly text: string; readonly ref: NativeRef | null }
  /** A call of one of the provider's own tools, with what came of it: recorded, never carried out here. */
  | {
      readonly kind: "tool";
      readonly callId: string;
      readonly name: string;
      readonly input: string;
      readonly output: Json;
      readonly isError: boolean;
      readonly ref: NativeRef | null;
    }
  | {
      readonly kind: "file_change";
      readonly callId: string;
      readonly path: string;
      readonly change: "added" | "changed" | "deleted";
      readonly summary: string;
      readonly ref: NativeRef | null;
    };

/** Something that a turn waits for: `respond` ends it. */
export type NativeRequest =
  /** A call of a tool that it was offered. */
  | {
      readonly kind: "tool";
      readonly ref: NativeRef;
      readonly callId: string;
      readonly name: string;
      readonly input: string;
    }
  /** The user is asked: words for a question, a yes or no for an approval. */
  | {
      readonly kind: "question" | "approval";
      readonly ref: NativeRef;
      readonly text: string;
      /** Null when it is about no call of a tool. */
      readonly about: AskedAbout | null;
    };

/** The answer to a request. */
export type NativeAnswer =
  | { readonly kind: "tool"; readonly output: Json; readonly isError: boolean }
  /** To a question. */
  | { readonly kind: "answer"; readonly text: string }
  /** To an approval. */
  | { readonly kind: "decision"; readonly decision: Decision }
  /** Nobody answers any more. */
  | { readonly kind: "cancelled" };

/** What happened in a turn; `key` is the one its `startTurn` was given, null for a turn that nobody here asked for. */
export type NativeTurnEvent =
  /** The provider has taken the turn. Where it cannot say so, the first other event of the turn counts. */
  | { readonly type: "turn.accepted"; readonly turn: NativeRef | null }
  | { readonly type: "turn.started"; readonly turn: NativeRef | null }
  /** Text as it streams; the item that follows holds it whole. */
  | { readonly type: "delta"; readonly text: string }
  | { readonly type: "item"; readonly item: NativeItem }
  /** Requests of one turn may be open beside one another. */
  | { readonly type: "request"; readonly request: NativeRequest }
  /** A question or an approval that its asker does not wait for any more (WAI-2). */
  | { readonly type: "withdrawn"; readonly request: NativeRef }
  /** What was used since the one before, where the provider tells it before the end; it counts at once (BUD-2). */
  | { readonly type: "usage"; readonly usage: StepUsage }
  | {
      readonly type: "turn.terminal";
      readonly outcome: "completed" | "failed" | "interrupted";
      /** The turn as forks and rollbacks name it, which some providers know at its end only. */
      readonly turn: NativeRef | null;
      /** What no event `usage` of the turn has told; null when it is not reported. */
      readonly usage: StepUsage | null;
      /** Set when it has failed. */
      readonly error: RejectedError | TransientError | null;
    };

/** A conversation that the provider has opened under one of its turns. */
export type NativeChildEvent =
  | { readonly type: "child.started"; readonly child: NativeRef; readonly prompt: string }
  | {
      readonly type: "child.terminal";
      readonly child: NativeRef;
      readonly outcome: "completed" | "failed" | "interrupted";
      readonly text: string;
    };

/** An event of a native session, with the key of its turn. */
export type NativeEvent = (NativeTurnEvent | NativeChildEvent) & { readonly key: string | null };

/** A turn of the provider's that carried a run of ours. */
export interface NativeTurn {
  readonly ordinal: number;
  /** Null for one without a name, such as one whose end was never told. No boundary names it; it counts as any other. */
  readonly ref: NativeRef | null;
}

/** A conversation of the provider's. */
export interface NativeThread {
  readonly ref: NativeRef;
  /** Its newest turn, where it has one that can be named. */
  readonly head: NativeRef | null;
  /** Its turns, oldest first, as they are named from now on; null when the provider does not tell. */
  readonly turns: readonly NativeRef[] | null;
  readonly forkedFrom: NativeRef | null;
}

export interface NativeHistoryPage {
  readonly turns: readonly {
    readonly ref: NativeRef;
    readonly status: "running" | "completed" | "failed" | "interrupted";
    readonly items: readonly {
      readonly ref: NativeRef;
      readonly role: "user" | "assistant" | "tool";
      readonly text: string;
    }[];
  }[];
  /** Pass it for the next page; null at the end. */
  readonly next: string | null;
}
