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
