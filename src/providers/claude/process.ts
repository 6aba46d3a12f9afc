/**
 * The program as the SDK wants to see a process of its own: streams and an event at the end. Underneath it is a program that
 * speaks in lines, registered with the tree, which ends with its whole group (REC-4).
 */
import { EventEmitter } from "node:events";
import { PassThrough, Writable } from "node:stream";
import type { Clock } from "../../platform/clock.ts";
import { type LineProcess, startLineProcess } from "../../platform/line-process.ts";
import type { ProcessSpec, StartProcess } from "../../platform/process.ts";
import type { ProviderError } from "../json-rpc.ts";

export interface ClaudeProcessOptions {
  readonly clock: Clock;
  readonly start: StartProcess;
  /** Milliseconds from the end of its input until it is killed. */
  readonly graceMs: number;
}

export class ClaudeProcess extends EventEmitter {
  readonly stdin: Writable;
  readonly stdout = new PassThrough();
  killed = false;
  exitCode: number | null = null;
  signalCode: string | null = null;
  /** Why it is gone; null when it was ended. */
  fault: ProviderError | null = null;
  /** Resolves when it and its group are; never rejects. */
  readonly ended: Promise<void>;
  readonly #program: Promise<LineProcess>;
  readonly #graceMs: number;

  constructor(spec: ProcessSpec, { clock, start, graceMs }: ClaudeProcessOptions) {
    super();
    this.#graceMs = graceMs;
    this.#program = startLineProcess(spec, { clock, start });
    this.stdin = this.#input();
    this.ended = this.#follow();
  }

  /** What the SDK asks for when it waits no longer. */
  kill(): boolean {
    this.killed = true;
    void this.#program.then((program) => program.end({ graceMs: 0 })).catch(() => undefined);
    return true;
  }

  /** Ends its input, and the program when the grace time is over. */
  async end(): Promise<void> {
    await this.#program.then((program) => program.end({ graceMs: this.#graceMs })).catch(() => undefined);
    await this.ended;
  }

  #input(): Writable {
    let begun = "";
    const write = async (chunk: string, done: () => void): Promise<void> => {
      const lines = (begun + chunk).split("\n");
      begun = lines.pop() ?? "";
      try {
        const program = await this.#program;
        for (const line of lines) await program.write(line);
      } catch {
        // One that is gone tells why in its output.
      } finally {
        done();
      }
    };
    return new Writable({
      decodeStrings: false,
      write: (chunk: string | Uint8Array, _encoding, done) => void write(String(chunk), done),
      final: (done) => {
        void this.end();
        done();
      },
    });
  }

  async #follow(): Promise<void> {
    try {
      const program = await this.#program;
      for await (const line of program.lines) this.stdout.write(`${line}\n`);
      const { code, signal } = await program.ended;
      this.exitCode = code;
      this.signalCode = signal;
    } catch (error) {
      this.fault = error as ProviderError;
      const { code, signal } = this.fault.details;
      this.exitCode = typeof code === "number" ? code : null;
      this.signalCode = typeof signal === "string" ? signal : null;
      // One that could not be started has no end of its own.
      if (this.exitCode === null && this.signalCode === null) this.exitCode = 1;
    }
    this.stdout.end();
    this.emit("exit", this.exitCode, this.signalCode);
  }
}
