/**
 * What a scripted vendor answers to one request, said once for all wire formats. The formats turn it into events; the server
 * decides how they leave.
 */

/** A piece of an answer, in the order of the answer. */
export type ReplyPart =
  | { readonly type: "text"; readonly deltas: readonly string[] }
  /** `secret` is the signature or the encrypted content; chat completions have none. */
  | { readonly type: "reasoning"; readonly deltas: readonly string[]; readonly secret?: string }
  | {
      readonly type: "call";
      readonly id: string;
      readonly name: string;
      readonly input: string;
      /** Responses only: the namespace of the tool. */
      readonly namespace?: string;
      /** Responses only: the input is free text and no JSON. */
      readonly custom?: boolean;
    };

export interface ReplyUsage {
  /** All input, cached included. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly reasoning: number;
}

export type Reply =
  | {
      /** Names the answer and what is in it; answers of one conversation must not share it where a client keeps them. */
      readonly id?: string;
      readonly parts: readonly ReplyPart[];
      readonly usage?: ReplyUsage;
      readonly finish?: "stop" | "tool_calls" | "length" | "content_filter";
      /**
       * How it ends after the parts: `end` with the format's last events; `stall` never; `cut` with a closed socket; `short`
       * as a whole response without the last events; `malformed` with an event that is no JSON; `error` with an error
       * event of the format. By default `end`.
       */
      readonly ending?: "end" | "stall" | "cut" | "short" | "malformed" | "error";
      /** Nothing is sent, no header either, before this is resolved. */
      readonly after?: Promise<void>;
    }
  | {
      readonly status: number;
      readonly message?: string;
      readonly errorType?: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** A reply that is streamed. */
export type StreamReply = Extract<Reply, { parts: unknown }>;

/** One event of a stream; without a name only its data is written. */
export interface WireEvent {
  readonly event?: string;
  readonly data: unknown;
}

/** A vendor's format: the events before the parts, for them, and at the end. */
export interface WireFormat {
  opening(id: string): WireEvent[];
  parts(parts: readonly ReplyPart[], id: string): WireEvent[];
  closing(reply: StreamReply, id: string): WireEvent[];
  errorEvent(): WireEvent;
  errorBody(message: string, type: string): unknown;
}

export const NO_USAGE: ReplyUsage = { input: 10, cached: 0, output: 5, reasoning: 0 };

/** What the vendor says ended the answer, where the script does not tell. */
export function finishOf(reply: StreamReply): "stop" | "tool_calls" | "length" | "content_filter" {
  return reply.finish ?? (reply.parts.some(({ type }) => type === "call") ? "tool_calls" : "stop");
}

export const text = (...deltas: string[]): ReplyPart => ({ type: "text", deltas });
export const reasoning = (secret: string, ...deltas: string[]): ReplyPart => ({
  type: "reasoning",
  deltas,
  secret,
});
export const call = (id: string, name: string, input: string): ReplyPart => ({
  type: "call",
  id,
  name,
  input,
});
