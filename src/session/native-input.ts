/**
 * The input of a turn of a provider's own loop, made from what is due (pure): the user's message, and context beside it in
 * the best channel that the provider has (lineage C6.10).
 *
 * - I1 Mail never goes into a channel that has more authority than the user's words (MBX-11).
 * - I2 Without a channel, notes and mail stand before the user's words under their header. A handoff does not: a provider
 *   that takes no context is refused one (C4.9).
 */
import { RejectedError } from "../protocol/errors.ts";
import type { Preamble } from "../protocol/native-events.ts";
import { CONTEXT_CHANNELS, type ContextChannel } from "../protocol/provider-capabilities.ts";
import type { PromptMessage } from "../protocol/provider-events.ts";
import type { ItemBody } from "../protocol/transcript.ts";

export interface TurnWords {
  readonly userMessage: string;
  readonly preambles: readonly Preamble[];
}

const MAIL_CHANNELS: readonly ContextChannel[] = ["history_items", "synthetic_user"];

interface Words {
  readonly kind: Preamble["kind"] | "user";
  readonly text: string;
}

/** @throws RejectedError `CONTEXT_UNSUPPORTED` for a handoff to a provider that takes none. */
export function turnWords(bodies: readonly ItemBody[], channels: readonly ContextChannel[]): TurnWords {
  const words = bodies.flatMap(wordsOf);
  // Without words of the user what the turn is for stands in the mail; without that, in the runtime's own text.
  const main = (["user", "mail", "note"] as const).find((kind) => words.some((one) => one.kind === kind));
  const preambles: Preamble[] = [];
  const message: string[] = [];
  for (const { kind, text } of words) {
    const channel = kind === main || kind === "user" ? undefined : channelFor(kind, channels);
    if (channel === undefined) message.push(text);
    else preambles.push({ kind: kind as Preamble["kind"], channel, text });
  }
  // A turn wants words, also when all that is due stands beside them.
  return { userMessage: message.length === 0 ? "Go on." : message.join("\n\n"), preambles };
}

function wordsOf(body: ItemBody): Words[] {
  switch (body.kind) {
    case "user":
      return body.inherited ? [] : [{ kind: "user", text: body.text }];
    case "mail":
      return [{ kind: "mail", text: body.text }];
    case "context":
      // What was inherited is told by the text of its handoff.
      if (body.topic === "inherited_history") return [];
      return body.topic === "handoff"
        ? [{ kind: "handoff", text: body.text }]
        : [{ kind: "note", text: `[runtime: ${body.topic}]\n${body.text}` }];
    default:
      return [];
  }
}

function channelFor(kind: Preamble["kind"], channels: readonly ContextChannel[]): ContextChannel | undefined {
  const order = kind === "mail" ? MAIL_CHANNELS : CONTEXT_CHANNELS;
  const best = order.find((channel) => channels.includes(channel));
  if (best === undefined && kind === "handoff") {
    throw new RejectedError(
      "CONTEXT_UNSUPPORTED",
      "The provider takes no context beside the user's message, so it cannot be told what went before; nothing was sent.",
      { channels: [...channels] },
    );
  }
  return best;
}

/** As messages, for the estimate of what they cost. */
export function asMessages({ userMessage, preambles }: TurnWords): PromptMessage[] {
  return [...preambles.map(({ text }) => text), userMessage].map((text) => ({ role: "user", text }));
}
