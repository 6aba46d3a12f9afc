/**
 * Which messages go into a handoff, and how one is written (C6.8): the latest of the user, the latest of the assistant, the
 * first of the user, then from the newest to the oldest. A message goes in whole or not at all.
 *
 * - D1 What does not fit though nothing but the frame were there is passed over; the first other one that does not fit is
 *   the end, so that the oldest are dropped first and a long thread costs no more than what goes in.
 * - D2 A message is redacted and written at most once for each time that it is tried.
 */
import type { Meter } from "./budget.ts";
import { endingOf, nameOf, placeOf } from "./frame.ts";
import type { Utterance } from "./gather.ts";
import type { HandoffInput } from "./input.ts";
import { clean, headChars } from "./words.ts";

const SPEAKERS: Readonly<Record<Utterance["speaker"], string>> = {
  user: "User",
  assistant: "Assistant",
  mail: "Message",
};

export class DialogueSelection {
  readonly #input: HandoffInput;
  /** Newest first. */
  readonly #candidates: readonly Utterance[];
  readonly #chosen = new Map<number, string>();
  readonly #segments = new Set<number>();
  readonly #most: number;

  constructor(input: HandoffInput, dialogue: readonly Utterance[]) {
    this.#input = input;
    this.#candidates = dialogue.slice(0, input.window?.candidates);
    this.#most = input.window?.most ?? Number.POSITIVE_INFINITY;
  }

  get size(): number {
    return this.#chosen.size;
  }

  /** The three that matter most, as far as they fit. */
  takeLandmarks(meter: Meter): void {
    const of = (speaker: Utterance["speaker"]) => (one: Utterance) => one.speaker === speaker;
    this.#take(this.#candidates.findIndex(of("user")), meter);
    this.#take(this.#candidates.findIndex(of("assistant")), meter);
    this.#take(this.#candidates.findLastIndex(of("user")), meter);
  }

  /** The rest, as far as the room goes. */
  takeNewest(meter: Meter): void {
    const empty = meter.copy();
    for (let at = 0; at < this.#candidates.length && this.#chosen.size < this.#most; at += 1) {
      if (this.#chosen.has(at)) continue;
      const text = this.#render(this.#candidates[at]!);
      if (this.#takeText(at, text, meter)) continue;
      if (empty.fits(text)) break;
    }
  }

  /** In the order in which it was said. */
  text(): string {
    const parts: string[] = [];
    let segment = -1;
    for (const at of [...this.#chosen.keys()].toSorted((a, b) => b - a)) {
      const utterance = this.#candidates[at]!;
      if (utterance.segment !== segment) parts.push(this.#divider(utterance.segment));
      segment = utterance.segment;
      parts.push(this.#chosen.get(at)!);
    }
    return parts.join("");
  }

  /** Whether that one went in; the places are those of the dialogue that was given. */
  has(at: number): boolean {
    return this.#chosen.has(at);
  }

  #take(at: number, meter: Meter): void {
    if (at === -1 || this.#chosen.has(at) || this.#chosen.size >= this.#most) return;
    this.#takeText(at, this.#render(this.#candidates[at]!), meter);
  }

  #takeText(at: number, text: string, meter: Meter): boolean {
    const { segment } = this.#candidates[at]!;
    const divider = this.#segments.has(segment) ? "" : this.#divider(segment);
    if (!meter.take(divider + text)) return false;
    this.#segments.add(segment);
    this.#chosen.set(at, text);
    return true;
  }

  /** Between the threads of a chain; one thread alone needs none. */
  #divider(segment: number): string {
    const { segments } = this.#input;
    return segments.length === 1 ? "" : `=== From ${nameOf(segments[segment]!, this.#input)} ===\n`;
  }

  #render({ segment, run, speaker, note, text }: Utterance): string {
    const { segments, redact, window } = this.#input;
    const said = clean(text, redact);
    const kept = headChars(said, window?.clipChars ?? said.length);
    const ending = run === null || run.status === "completed" ? "" : ` (${endingOf(run)})`;
    const who = [SPEAKERS[speaker], note].filter((word) => word !== "").join(" ");
    return `=== ${who}, ${placeOf({ segment, run }, segments)}${ending} ===\n${kept}\n`;
  }
}
