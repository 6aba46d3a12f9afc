/** A process as whoever starts one sees it, also a program that is compiled without the types of Node. */

/** A process to start. */
export interface ProcessSpec {
  readonly command: string;
  readonly args?: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** How a process has ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Node's `Writable`, by what a program's compiler needs to see of it. */
export interface ProcessInput {
  write(chunk: string | Uint8Array): boolean;
  end(chunk?: string | Uint8Array): unknown;
  on(event: string, listener: (...values: never[]) => void): unknown;
}

/** Node's `Readable`, likewise. */
export interface ProcessOutput extends AsyncIterable<string | Uint8Array> {
  setEncoding(encoding: "utf8" | "latin1" | "hex" | "base64"): unknown;
  on(event: string, listener: (...values: never[]) => void): unknown;
  once(event: string, listener: (...values: never[]) => void): unknown;
  resume(): unknown;
}

/** A process that runs, in a group of its own; it ends with what it was started for. */
export interface StartedProcess {
  readonly pid: number;
  /** Start time, in the unit of its system. */
  readonly startedAt: string;
  readonly stdin: ProcessInput;
  readonly stdout: ProcessOutput;
  readonly stderr: ProcessOutput;
  readonly exited: Promise<ProcessEnd>;
}

/**
 * Starts a process that ends when `lifetime` is over: by `SIGTERM`, and by `SIGKILL` after a grace time, with all of its group.
 * @throws the lifetime's reason, or what starting it failed with.
 */
export type StartProcess = (spec: ProcessSpec, lifetime: AbortSignal) => Promise<StartedProcess>;
