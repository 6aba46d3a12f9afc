/**
 * A block at the bottom of the terminal that is drawn in place, with lines above it that stay.
 *
 * - B1 A drawing is one write that overwrites the former lines and clears only what is left of them, so that nothing flickers.
 * - B2 The block never has more lines than the terminal, or the cursor could not get back to its top.
 */
import { type Clock, systemClock, type Timer } from "../../platform/clock.ts";
import type { Terminal } from "../terminal.ts";

const BEGIN = "\u001b[?2026h\u001b[?25l";
const END = "\u001b[?25h\u001b[?2026l";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const REDRAW_MS = 80;
const TICK_MS = 1_000;

export class LiveBlock {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  readonly #render: () => Promise<readonly string[]>;
  #above: string[] = [];
  #shown = 0;
  #timer: Timer | null = null;
  #drawing: Promise<void> | null = null;
  #ended = false;

  constructor(terminal: Terminal, render: () => Promise<readonly string[]>, clock: Clock = systemClock) {
    this.#terminal = terminal;
    this.#render = render;
    this.#clock = clock;
    this.#arm(0);
  }

  /** A line above the block, which stays. */
  print(line: string): void {
    this.#above.push(line);
    this.changed();
  }

  /** Something that the block shows has changed. */
  changed(): void {
    if (!this.#ended) this.#arm(REDRAW_MS);
  }

  /** Draws the last state, which stays, and gives the terminal back. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#timer?.cancel();
    await this.#drawing;
    await this.#draw();
  }

  #armedFor = Infinity;

  #arm(ms: number): void {
    const at = this.#clock.monotonic() + ms;
    if (this.#timer !== null && this.#armedFor <= at) return;
    this.#timer?.cancel();
    this.#armedFor = at;
    this.#timer = this.#clock.setTimer(ms, () => {
      this.#timer = null;
      this.#drawing = this.#draw().finally(() => {
        this.#drawing = null;
        if (!this.#ended) this.#arm(TICK_MS);
      });
    });
  }

  async #draw(): Promise<void> {
    // A store that cannot be read right now leaves the block as it was.
    const lines = await this.#render().catch(() => null);
    const above = this.#above.splice(0);
    if (lines === null && above.length === 0) return;
    const block = (lines ?? []).slice(0, Math.max(1, this.#terminal.rows - 2));
    const up = this.#shown > 0 ? `\u001b[${this.#shown}A\r` : "\r";
    const body = [...above, ...block].map((line) => `${line}${CLEAR_LINE}\n`).join("");
    this.#terminal.raw(`${BEGIN}${up}${body}${CLEAR_BELOW}${END}`);
    this.#shown = block.length;
  }
}
