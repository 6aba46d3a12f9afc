/**
 * Takes secrets out of text that is shown while it comes, in pieces of any length: a secret that is split over pieces does
 * not pass (SEC-3). The sum of what is shown is what the filter makes of the whole text.
 *
 * - S1 What may still turn out to be part of a secret is held back until it is decided, or the text ends.
 * - S2 What is held back is bounded: beyond that it is taken for a secret, and so is all that comes until it has ended.
 * - S3 A stream that is dropped shows nothing more: half a secret is a secret, too.
 */
import { MARKER, type RedactionStep, redactionSteps } from "./redaction-steps.ts";

/** Characters held back by each step; longer than what a model says on one line about a key. */
const MOST_HELD = 4096;
/** Kept of what is taken for a secret: more than the line that ends one. */
const KEPT_OF_SECRET = 128;

export class RedactedStream {
  readonly #stages: readonly Stage[];

  /** @param secrets those that are known by value, as for `createRedactor`. */
  constructor(secrets: readonly string[]) {
    const longest = Math.max(0, ...secrets.map((secret) => secret.length));
    this.#stages = redactionSteps(secrets).map((step) => new Stage(step, MOST_HELD + longest));
  }

  /** Takes a piece, and answers what may be shown now. */
  push(piece: string): string {
    return this.#stages.reduce((text, stage) => stage.take(text, false), piece);
  }

  /** The end of the text: what was held back, redacted. The stream is as new. */
  end(): string {
    return this.#stages.reduce((text, stage) => stage.take(text, true), "");
  }
}

class Stage {
  readonly #step: RedactionStep;
  readonly #mostHeld: number;
  #held = "";
  /** Inside a secret that is too long to be held back. */
  #inSecret = false;

  constructor(step: RedactionStep, mostHeld: number) {
    this.#step = step;
    this.#mostHeld = mostHeld;
  }

  take(piece: string, last: boolean): string {
    this.#held += piece;
    if (this.#inSecret) this.#leaveSecret();
    let shown = "";
    if (!this.#inSecret) {
      const open = last ? this.#held.length : this.#step.openFrom(this.#held);
      shown = this.#step.clean(this.#held.slice(0, open));
      this.#held = this.#held.slice(open);
    }
    if (!this.#inSecret && this.#held.length > this.#mostHeld) {
      this.#inSecret = true;
      shown += MARKER;
    }
    if (this.#inSecret) this.#held = this.#held.slice(-KEPT_OF_SECRET);
    if (!last) return shown;
    this.#held = "";
    this.#inSecret = false;
    return shown;
  }

  #leaveSecret(): void {
    const at = this.#step.closesAt(this.#held);
    if (at === -1) return;
    this.#held = this.#held.slice(at);
    this.#inSecret = false;
  }
}
