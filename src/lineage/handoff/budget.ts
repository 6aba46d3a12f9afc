/**
 * Room of a handoff (C6.7, C18.11): how much may be sent at all, and the meter that everything written is charged to,
 * its frame included.
 *
 * - B1 One byte counts as one token: no text has more tokens than bytes, whoever counts them.
 * - B2 Characters are UTF-16 units. A text never has more of them than bytes, so both limits are always finite.
 */
import { byteLength } from "../../platform/text.ts";
import { LINEAGE_BOUNDS, type LineageLimits } from "../../protocol/lineage-limits.ts";
import { ASSUMED_CONTEXT_WINDOW } from "../../protocol/limits.ts";

export interface HandoffBudget {
  /** The narrowest limit, in its own unit; `maxBytes` and `maxChars` hold together. */
  readonly limit: number;
  readonly unit: "tokens" | "bytes" | "chars";
  readonly maxBytes: number;
  readonly maxChars: number;
}

export interface BudgetRequest {
  readonly limits: LineageLimits;
  /** Tokens of a handoff or characters of a seed; null takes the limits' own for a handoff. */
  readonly configured: { readonly unit: "tokens" | "chars"; readonly limit: number } | null;
  /** `maxRecommendedChars` of the provider. */
  readonly providerMaxChars: number | null;
  /** Tokens of the target's context window; null where nobody knows. */
  readonly window: number | null;
  /** Tokens that the provider thread holds already. */
  readonly occupied: number;
  /** The user's message that goes along. */
  readonly message: { readonly text: string; readonly images: number; readonly attachments: number };
  /** What the other texts of the same start leave of the window, and of what the provider recommends. */
  readonly most?: Size | undefined;
}

/** Of a text, or of the room for one. */
export interface Size {
  readonly bytes: number;
  readonly chars: number;
}

export function budgetFor(request: BudgetRequest): HandoffBudget {
  const { limits, message } = request;
  const configured = request.configured ?? { unit: "tokens", limit: limits.handoffTokens };
  const capped = clamp(
    configured.limit,
    configured.unit === "tokens" ? LINEAGE_BOUNDS.handoffTokens : LINEAGE_BOUNDS.seedChars,
  );
  const window = request.window ?? ASSUMED_CONTEXT_WINDOW;
  const spoken =
    byteLength(message.text) +
    message.images * limits.imageTokens +
    message.attachments * limits.attachmentTokens;
  const caps: { unit: HandoffBudget["unit"]; limit: number }[] = [
    { unit: configured.unit, limit: capped },
    { unit: "tokens", limit: Math.max(0, roomOf(window, limits) - request.occupied - spoken) },
  ];
  // The cap in bytes is a handoff's; a seed has its own cap in characters.
  if (configured.unit === "tokens") caps.push({ unit: "bytes", limit: limits.handoffBytes });
  if (request.providerMaxChars !== null) caps.push({ unit: "chars", limit: request.providerMaxChars });
  if (request.most !== undefined) {
    caps.push({ unit: "bytes", limit: request.most.bytes }, { unit: "chars", limit: request.most.chars });
  }
  return narrowest(caps);
}

/**
 * Of messages that go as such into a conversation of ours: all that the window has room for. No estimate of a request counts
 * more than one token for two bytes.
 */
export function conversationBudget({
  limits,
  window,
  occupied,
  message,
}: Omit<BudgetRequest, "configured" | "providerMaxChars" | "most">): HandoffBudget {
  const room = roomOf(window ?? ASSUMED_CONTEXT_WINDOW, limits) - occupied;
  const limit = Math.max(0, 2 * room - byteLength(message.text));
  return { limit, unit: "bytes", maxBytes: limit, maxChars: limit };
}

/** What all the texts of a start may take together; the cap of each is its own (C6.7). */
export function roomForAll({
  limits,
  window,
  occupied,
  message,
  providerMaxChars,
}: Omit<BudgetRequest, "configured" | "most">): Size {
  const left = roomOf(window ?? ASSUMED_CONTEXT_WINDOW, limits) - occupied - byteLength(message.text);
  return { bytes: Math.max(0, left), chars: providerMaxChars ?? Number.POSITIVE_INFINITY };
}

/** Who wants less than an equal share leaves the rest to the others. Who must have what it wants gets it first. */
export function shareOut(
  wants: readonly number[],
  room: number,
  must: ReadonlySet<number> = new Set(),
): readonly number[] {
  const given = [...wants];
  let left = room - wants.reduce((sum, want, at) => sum + (must.has(at) ? want : 0), 0);
  const open = [...wants.keys()].filter((at) => !must.has(at)).toSorted((a, b) => wants[a]! - wants[b]!);
  open.forEach((at, done) => {
    const share = Math.floor(Math.max(0, left) / (open.length - done));
    given[at] = Math.min(wants[at]!, share);
    left -= given[at];
  });
  return given;
}

/** Tokens of a window that what was said before may take; the rest is kept for a run. Below zero for a small one. */
export function roomOf(
  window: number,
  limits: Pick<LineageLimits, "windowReserveTokens" | "windowReserveShare">,
): number {
  return window - Math.max(limits.windowReserveTokens, Math.ceil(window * limits.windowReserveShare));
}

function narrowest(caps: readonly { unit: HandoffBudget["unit"]; limit: number }[]): HandoffBudget {
  const least = (kept: (unit: HandoffBudget["unit"]) => boolean): number =>
    Math.min(...caps.filter(({ unit }) => kept(unit)).map(({ limit }) => limit));
  const all = least(() => true);
  const tightest = caps.find(({ limit }) => limit === all)!;
  const maxBytes = least((unit) => unit !== "chars");
  return {
    ...tightest,
    maxBytes,
    maxChars: Math.min(
      maxBytes,
      least((unit) => unit === "chars"),
    ),
  };
}

export function clamp(value: number, [least, most]: readonly [number, number]): number {
  return Math.min(Math.max(value, least), most);
}

/** How much of a budget a text takes, in the unit of its limit. */
export function usedOf(text: string, { unit }: Pick<HandoffBudget, "unit">): number {
  return unit === "chars" ? text.length : byteLength(text);
}

/** What is left of a budget. A share spends from its whole as well. */
export class Meter {
  #bytes: number;
  #chars: number;
  readonly #whole: Meter | null;

  constructor(maxBytes: number, maxChars: number, whole: Meter | null = null) {
    this.#bytes = maxBytes;
    this.#chars = maxChars;
    this.#whole = whole;
  }

  /** At most this part of what is left now. */
  share(part: number): Meter {
    return new Meter(Math.floor(this.#bytes * part), Math.floor(this.#chars * part), this);
  }

  /** As much as is left now, apart from what is spent from here on. */
  copy(): Meter {
    return new Meter(this.#bytes, this.#chars);
  }

  fits(text: string): boolean {
    return this.#holds(byteLength(text), text.length);
  }

  /** Charges the text, or says that there is no room for it and charges nothing. */
  take(text: string): boolean {
    const bytes = byteLength(text);
    if (!this.#holds(bytes, text.length)) return false;
    this.#charge(bytes, text.length);
    return true;
  }

  #holds(bytes: number, chars: number): boolean {
    const here = bytes <= this.#bytes && chars <= this.#chars;
    return here && (this.#whole === null || this.#whole.#holds(bytes, chars));
  }

  #charge(bytes: number, chars: number): void {
    this.#bytes -= bytes;
    this.#chars -= chars;
    if (this.#whole !== null) this.#whole.#charge(bytes, chars);
  }
}
