/**
 * A program that speaks in lines of text over its standard input and output, as coding agents do. It leads a group of its
 * own; whoever starts it ends it.
 *
 * - L1 With the program ends everybody of its group, however it ended, and it ends with this process, however that does.
 * - L2 Memory is bounded: one line, the pipes, and the tail of what it wrote to stderr.
 * - L3 Output that is no line, or no output any more, ends the program. `lines` then throws why; `write` rejects likewise.
 *   After `end` it was asked for, and `lines` just ends.
 */
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { finished } from "node:stream/promises";
import {
  CoppiceError,
  describeError,
  InvariantError,
  RejectedError,
  TransientError,
} from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Clock } from "./clock.ts";
import { findProgram } from "./find-program.ts";
import { linesOf } from "./lines.ts";
import type { ProcessEnd, ProcessSpec, StartedProcess, StartProcess } from "./process.ts";
import { groupLives, signalGroup, unregisteredProcesses } from "./process-group.ts";
import { redact } from "./redact.ts";
import { TextTail } from "./text-tail.ts";

export interface LineProcessOptions {
  readonly clock: Clock;
  /** Registers it with whoever it is for; it is registered nowhere unless given. */
  readonly start?: StartProcess;
  /** Bytes of the longest line that is taken; 32 MiB unless given. */
  readonly maximumLineBytes?: number;
}

/** A running program. Disposing of it ends it at once. */
export interface LineProcess extends AsyncDisposable {
  /** Its process, which leads its group. */
  readonly pid: number;
  /** What it says, for one reader. Who stops reading before the end ends the program. */
  readonly lines: AsyncIterable<string>;
  /** Resolves when it and its group have ended; never rejects. */
  readonly ended: Promise<ProcessEnd>;
  /** The last that it wrote to stderr, without what looks like a secret. */
  stderrTail(): string;
  /**
   * Says a line to it; resolves when there is room for more. Lines arrive in the order of the calls.
   * @throws RejectedError or TransientError when it has ended.
   */
  write(line: string): Promise<void>;
  /** Closes its input, waits, and kills the group when that time is over. */
  end(options: { readonly graceMs: number }): Promise<ProcessEnd>;
}

const MAXIMUM_LINE_BYTES = 32 * 1024 * 1024;
const STDERR_BYTES = 4096;

/** For a program to end that has closed its output, and for pipes that are held by what has left the group. */
const LINGER_MS = 1000;
/** At a group that was killed, until it is left to itself. */
const LOOKS = 1000;

/** @throws RejectedError `PROVIDER_UNAVAILABLE` when there is no such program, or it cannot be started. */
export async function startLineProcess(spec: ProcessSpec, options: LineProcessOptions): Promise<LineProcess> {
  const command = await findProgram(spec);
  const start = options.start ?? unregisteredProcesses(options.clock, LINGER_MS);
  const lifetime = new AbortController();
  let started: StartedProcess;
  try {
    started = await start({ ...spec, command }, lifetime.signal);
  } catch (cause) {
    if (CoppiceError.is(cause)) throw cause;
    const where = spec.cwd === undefined ? "" : ` in ${spec.cwd}`;
    throw new RejectedError(
      "PROVIDER_UNAVAILABLE",
      `${spec.command} could not be started${where}: ${describeError(cause)}`,
      { command: spec.command },
      cause,
    );
  }
  return new RunningProgram(spec.command, started as StartedInNode, options);
}

/** Every process is one of Node's; programs that are compiled without its types see less of it. */
interface StartedInNode extends StartedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

class RunningProgram implements LineProcess {
  readonly pid: number;
  readonly lines: AsyncIterable<string>;
  readonly ended: Promise<ProcessEnd>;
  readonly #command: string;
  readonly #leader: StartedInNode;
  readonly #clock: Clock;
  readonly #stderr = new TextTail(STDERR_BYTES);
  /** When its pipe is full, for all who write. */
  #room: Promise<void> | null = null;
  #spoke = false;
  #endWanted = false;
  #end: ProcessEnd | null = null;

  constructor(command: string, leader: StartedInNode, { clock, maximumLineBytes }: LineProcessOptions) {
    this.pid = leader.pid;
    this.#command = command;
    this.#leader = leader;
    this.#clock = clock;
    leader.stderr.on("data", (chunk: Uint8Array) => this.#stderr.add(chunk));
    // Its input is closed: it cannot be spoken to any more, whether it lives or not.
    leader.stdin.on("error", () => {
      if (!this.#endWanted) this.#kill();
    });
    this.ended = this.#watch();
    this.lines = this.#read(maximumLineBytes ?? MAXIMUM_LINE_BYTES);
  }

  stderrTail(): string {
    return redact(this.#stderr.text());
  }

  async write(line: string): Promise<void> {
    if (line.includes("\n")) throw new InvariantError("a line with a line feed in it is two lines");
    const { stdin } = this.#leader;
    if (stdin.writable) {
      if (stdin.write(`${line}\n`)) return;
      // An input that breaks ends the program, which is what tells why.
      this.#room ??= once(stdin, "drain")
        .catch(() => this.ended)
        .then(() => void (this.#room = null));
      await Promise.race([this.#room, this.ended]);
      if (this.#end === null) return;
    }
    if (this.#endWanted)
      throw new TransientError("PROVIDER_UNREACHABLE", `${this.#command} was ended.`, {
        command: this.#command,
      });
    await this.ended;
    throw this.#gone();
  }

  async end({ graceMs }: { readonly graceMs: number }): Promise<ProcessEnd> {
    this.#endWanted = true;
    if (this.#end !== null) return this.ended;
    this.#leader.stdin.end();
    if (graceMs <= 0) this.#kill();
    const timer = this.#clock.setTimer(graceMs, () => this.#kill(), { keepAlive: true });
    try {
      return await this.ended;
    } finally {
      timer.cancel();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end({ graceMs: 0 });
  }

  async #watch(): Promise<ProcessEnd> {
    const end = await this.#leader.exited;
    this.#kill();
    this.#letGoOfPipes();
    // The last words are what tells why; a stream that breaks has none.
    await finished(this.#leader.stderr).catch(() => undefined);
    await this.#groupEnds();
    this.#end = end;
    return end;
  }

  /** Whoever is killed takes a moment to go, and holds on to files and ports meanwhile. */
  async #groupEnds(): Promise<void> {
    for (let look = 0; look < LOOKS && groupLives(this.pid); look += 1)
      await new Promise<void>((resolve) => this.#clock.defer(resolve));
  }

  async *#read(maximumLineBytes: number): AsyncGenerator<string, void, undefined> {
    const { stdout } = this.#leader;
    // The pipe is closed after the program was told to end, which else would find it broken and end in its own way.
    const chunks = stdout.iterator({ destroyOnReturn: false });
    let fault: unknown;
    let over = false;
    try {
      for await (const line of linesOf(chunks, maximumLineBytes)) {
        this.#spoke = true;
        yield line;
      }
      over = true;
    } catch (error) {
      fault = error;
      over = !(error instanceof RejectedError);
    } finally {
      if (!over) this.#kill();
      stdout.destroy();
    }
    // Output ends a moment before the program does. One that goes on without is of no use, unless it is ending anyway.
    const timer = this.#clock.setTimer(LINGER_MS, () => {
      if (!this.#endWanted) this.#kill();
    });
    await this.ended;
    timer.cancel();
    if (this.#endWanted) return;
    throw fault instanceof RejectedError ? fault : this.#gone(fault);
  }

  /** Why there is nobody any more. */
  #gone(cause?: unknown): RejectedError | TransientError {
    const { code, signal } = this.#end!;
    const stderr = this.stderrTail().trim();
    const how = code === null ? `was ended by ${signal}` : `ended with exit code ${code}`;
    const said = stderr === "" ? "" : `: ${stderr}`;
    const details: JsonObject = { command: this.#command, code, signal, stderr };
    // One that never said a word and gave up by itself does not run here, and will not the next time.
    if (!this.#spoke && code !== null && !this.#endWanted)
      return new RejectedError(
        "PROVIDER_UNAVAILABLE",
        `${this.#command} ${how} before it said anything${said}`,
        details,
      );
    return new TransientError("PROVIDER_UNREACHABLE", `${this.#command} ${how}${said}`, details, { cause });
  }

  #kill(): void {
    signalGroup(this.pid, this.#leader.startedAt, "SIGKILL");
  }

  /** What has left the group may hold the pipes for as long as it lives; what it says is of no interest. */
  #letGoOfPipes(): void {
    this.#clock.setTimer(LINGER_MS, () => {
      const { stdout, stderr } = this.#leader;
      stderr.destroy();
      if (stdout.readableLength > 0 && !this.#endWanted) this.#letGoOfPipes();
      else stdout.destroy();
    });
  }
}
