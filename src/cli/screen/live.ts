/**
 * A block at the bottom of the terminal that is drawn in place, with lines above it that stay.
 *
 * - B1 A drawing is one write that overwrites the former lines and clears only what is left of them, so that nothing flickers.
 * - B2 The block never takes more rows than the terminal, or the cursor could not get back to its top: what is too much goes
 *   from the middle, so that its end is seen. A line that is too long takes several rows.
 */
import { type Clock, systemClock, type Timer } from "../../platform/clock.ts";
import { harmless, type Terminal, widthOf } from "../terminal.ts";

const BEGIN = "\u001b[?2026h\u001b[?25l";
const END = "\u001b[?25h\u001b[?2026l";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const REDRAW_MS = 80;
const TICK_MS = 1_000;
/** Of a block that is too long, so many lines of its end are shown. */
const END_LINES = 6;

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
    const block = this.#fitted(lines ?? []);
    const up = this.#shown > 0 ? `\u001b[${this.#shown}A\r` : "\r";
    const body = [...above, ...block].map((line) => `${harmless(line)}${CLEAR_LINE}\n`).join("");
    this.#terminal.raw(`${BEGIN}${up}${body}${CLEAR_BELOW}${END}`);
    this.#shown = this.#rowsOf(block);
  }

  #rowsOf(lines: readonly string[]): number {
    const { columns } = this.#terminal;
    return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(widthOf(line) / columns)), 0);
  }

  #fitted(lines: readonly string[]): readonly string[] {
    const room = Math.max(1, this.#terminal.rows - 2);
    if (this.#rowsOf(lines) <= room) return lines;
    const end: string[] = [];
    for (const line of lines.slice(-END_LINES).toReversed()) {
      if (this.#rowsOf([line, ...end]) > room / 2) break;
      end.unshift(line);
    }
    const rest = lines.slice(0, lines.length - end.length);
    const start: string[] = [];
    for (const line of rest) {
      if (this.#rowsOf([...start, line, ...end]) >= room) break;
      start.push(line);
    }
    return [...start, this.#terminal.paint("dim", `… ${rest.length - start.length} more lines`), ...end];
  }
}
