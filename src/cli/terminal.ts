/**
 * The terminal, or what stands in its place: lines out, errors aside, signals in.
 *
 * - T1 A reader that goes away (`| head`) ends the process quietly, with the exit code that a shell has for that; output that
 *   cannot be written is an error, whatever the command has done.
 * - T2 The first interrupt asks the command to give back what it holds; one that comes later ends the process at once. The
 *   same interrupt may arrive twice, from the terminal and from a parent that passes it on.
 * - T3 No control character of a text reaches the terminal, whoever forgot to clean it: lines lose them, JSON escapes them.
 */
import { stripVTControlCharacters } from "node:util";
import { systemClock } from "../platform/clock.ts";
import { CommandError, EXIT, type Failure } from "./failure.ts";

export type Style = "bold" | "dim" | "green" | "yellow" | "red" | "cyan";

const CODES: Readonly<Record<Style, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  green: [32, 39],
  yellow: [33, 39],
  red: [31, 39],
  cyan: [36, 39],
};
const SAME_INTERRUPT_MS = 1_000;
const DEFAULT_COLUMNS = 80;

export class Terminal {
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal;
  readonly #colour: boolean;
  readonly #interrupt: AbortController;
  #readerGone = (): void => process.exit(EXIT.readerGone);

  constructor() {
    const { env, stdout } = process;
    this.#colour =
      env["FORCE_COLOR"] !== undefined && env["FORCE_COLOR"] !== "0"
        ? (env["NO_COLOR"] ?? "") === ""
        : stdout.isTTY === true && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
    this.#interrupt = this.#listen();
    this.signal = this.#interrupt.signal;
  }

  /** Can be drawn upon: a terminal that understands movements of the cursor. */
  get interactive(): boolean {
    return process.stdout.isTTY === true && process.env["TERM"] !== "dumb";
  }

  get columns(): number {
    return process.stdout.columns ?? (Number(process.env["COLUMNS"]) || DEFAULT_COLUMNS);
  }

  /** Columns that a line may have: what no terminal shows is whole, for `grep` and files. */
  get room(): number {
    return process.stdout.isTTY === true || Number(process.env["COLUMNS"]) > 0 ? this.columns : Infinity;
  }

  get rows(): number {
    return process.stdout.rows ?? 24;
  }

  line(text = ""): void {
    process.stdout.write(`${harmless(text)}\n`);
  }

  /** As it is: what moves the cursor, and help. */
  raw(text: string): void {
    process.stdout.write(text);
  }

  json(value: unknown): void {
    process.stdout.write(`${jsonLine(value)}\n`);
  }

  /** For people, beside the results. */
  note(text: string): void {
    process.stderr.write(`${harmless(text)}\n`);
  }

  paint(style: Style, text: string): string {
    if (!this.#colour || text === "") return text;
    const [on, off] = CODES[style];
    return `\u001b[${on}m${text}\u001b[${off}m`;
  }

  fail({ exit, code, message }: Failure, json: boolean): number {
    if (json) this.note(jsonLine({ error: { code, message, exit } }));
    else this.note(`coppice: ${clean(message)}`);
    return exit;
  }

  /** For a server, whose client may be killed: from now on a reader that is gone asks it to end, and no more is said. */
  endInOrder(): void {
    this.#readerGone = () => this.#interrupt.abort(new CommandError(EXIT.ok, "RUN_INTERRUPTED", "gone."));
  }

  #listen(): AbortController {
    const controller = new AbortController();
    let firstAt: number | null = null;
    const onSignal = (): void => {
      const now = systemClock.monotonic();
      if (firstAt === null) {
        firstAt = now;
        controller.abort(new CommandError(EXIT.interrupted, "RUN_INTERRUPTED", "interrupted."));
      } else if (now - firstAt > SAME_INTERRUPT_MS) {
        process.exit(EXIT.interrupted);
      }
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
    process.stdout.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") return this.#readerGone();
      this.note(`coppice: standard output cannot be written: ${clean(error.message)}.`);
      process.exit(EXIT.incomplete);
    });
    process.stderr.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") this.#readerGone();
    });
    return controller;
  }
}

/** What `JSON.stringify` leaves as it is: the second range of control characters, and what only steers how text is shown. */
const UNESCAPED = /[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu;

/** JSON on one line that a terminal shows as it is; it reads as the same value. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNESCAPED, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

/** Colours and the ends of lines stay. */
export function harmless(text: string): string {
  return text.replaceAll(/\p{Cc}\[\d{1,2}m|[^\P{Cc}\n]|\p{Cf}/gu, (found) =>
    found.startsWith("\u001b[") ? found : "",
  );
}

/** One line without control characters: what agents write must not reach the terminal as commands. */
export function clean(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll(/[\r\n\t]+/g, " ")
    .replaceAll(/\p{Cc}|\p{Cf}/gu, "");
}

/** The same for several lines. */
export function cleanLines(text: string): string[] {
  return text.split(/\r?\n/).map(clean);
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
const NARROW = /\p{M}|\u200d|\ufe0f/u;

/** Columns that a text without control characters takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of stripVTControlCharacters(text)) {
    width += NARROW.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  }
  return width;
}

/** At most so many columns; what is cut off shows as `…`. */
export function clip(text: string, columns: number): string {
  if (columns <= 0) return "";
  if (widthOf(text) <= columns) return text;
  let clipped = "";
  let width = 0;
  for (const character of text) {
    width += widthOf(character);
    if (width > columns - 1) break;
    clipped += character;
  }
  return `${clipped}…`;
}

/** Lines of at most so many columns, broken between words; what follows the first is indented. */
export function wrap(text: string, columns: number, indent = ""): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line.trim() !== "" && widthOf(line) + 1 + widthOf(word) > Math.max(20, columns)) {
      lines.push(line);
      line = `${indent}${word}`;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

/** Exactly so many columns. */
export function fit(text: string, columns: number, side: "left" | "right" = "left"): string {
  const clipped = clip(text, columns);
  const fill = " ".repeat(Math.max(0, columns - widthOf(clipped)));
  return side === "left" ? `${clipped}${fill}` : `${fill}${clipped}`;
}
