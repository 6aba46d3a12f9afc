/**
 * One call of the system's `git`: arguments as a list, never a shell; an environment of ours, so that nothing that this
 * process was started with (`GIT_DIR`, an editor, a pager) reaches it; nothing that could ask or wait for somebody.
 *
 * - G1 What is cut off gets `SIGTERM` first: git removes its lock files then. The call ends when the process has.
 * - G2 No hook, no monitor, no transport runs, whatever a configuration says.
 */
import { spawn } from "node:child_process";
import { delimiter, isAbsolute } from "node:path";
import { InterruptedError } from "../../protocol/errors.ts";
import type { Clock } from "../clock.ts";
import type { Within } from "./port.ts";

/** Why git has not done it. */
export class GitFailure extends Error {
  readonly lasting: boolean;

  constructor(message: string, lasting = false) {
    super(message);
    this.lasting = lasting;
  }
}

export interface GitCall {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Byte by byte, as `out`: names of files need not be text. */
  readonly input?: string;
  /** Bytes of output to keep; a call that says more fails, or is cut off there when `cut` is set. */
  readonly most?: number;
  readonly cut?: boolean;
}

export interface GitEnd {
  readonly code: number;
  /** One character a byte; `textOf` makes a text of it. */
  readonly out: string;
  readonly err: string;
}

const MOST_OUTPUT = 64 * 1024 * 1024;
const MOST_COMPLAINT = 4096;
const GRACE_MS = 2000;
const KEPT = [
  "HOME",
  "XDG_CONFIG_HOME",
  "TMPDIR",
  "USER",
  "LOGNAME",
  "SYSTEMROOT",
  "USERPROFILE",
  "TEMP",
  "TMP",
];

const SETTINGS = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.untrackedCache=false",
  "core.splitIndex=false",
  "core.logAllRefUpdates=false",
  "core.safecrlf=false",
  "submodule.recurse=false",
  "diff.ignoreSubmodules=dirty",
  "gc.auto=0",
  "maintenance.auto=false",
].flatMap((setting) => ["-c", setting]);

function environment(): Record<string, string> {
  // A relative entry would look for git in the workspace.
  const path = (process.env["PATH"] ?? "").split(delimiter).filter(isAbsolute).join(delimiter);
  const kept = KEPT.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(kept),
    PATH: path,
    LC_ALL: "C",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    // Over every configuration: an object that is missing is not fetched by whatever a remote names.
    GIT_ALLOW_PROTOCOL: "none",
    GIT_NO_LAZY_FETCH: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_LITERAL_PATHSPECS: "0",
  };
}

/** Calls of git that end together, at the latest when their time is over. */
export class GitRunner implements Disposable {
  readonly #clock: Clock;
  readonly #over = new AbortController();
  readonly #release: () => void;

  constructor({ clock, limitMs, signal }: Within) {
    this.#clock = clock;
    const timer = clock.setTimer(limitMs, () =>
      this.#over.abort(new GitFailure(`git took longer than ${limitMs} ms`)),
    );
    const onAbort = (): void => this.#over.abort(new GitFailure("it was called off"));
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#release = () => {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
    };
  }

  throwIfOver(): void {
    this.#over.signal.throwIfAborted();
  }

  [Symbol.dispose](): void {
    this.#release();
    this.#over.abort(new InterruptedError("RUN_INTERRUPTED", "the work with git is over."));
  }

  /** What it has said, whatever its exit code. @throws GitFailure when there is no git, or the time is over. */
  run(args: readonly string[], call: GitCall): Promise<GitEnd> {
    const { signal } = this.#over;
    signal.throwIfAborted();
    const child = spawn("git", ["--no-pager", ...SETTINGS, ...args], {
      cwd: call.cwd,
      env: { ...environment(), ...call.env },
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    const most = call.most ?? MOST_OUTPUT;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let tooMuch = false;
    let err = "";
    child.stdout.on("data", (chunk: Buffer) => {
      if (tooMuch) return;
      chunks.push(bytes + chunk.length > most ? chunk.subarray(0, most - bytes) : chunk);
      bytes += chunk.length;
      if (bytes <= most) return;
      tooMuch = true;
      child.kill("SIGTERM");
    });
    child.stderr.on("data", (chunk: Buffer) => {
      if (err.length < MOST_COMPLAINT) err += chunk.toString("utf8");
    });
    // It may end before it has read all of it.
    child.stdin.on("error", () => undefined);
    child.stdin.end(call.input ?? "", "latin1");
    const kill = (): void => {
      child.kill("SIGTERM");
      const timer = this.#clock.setTimer(GRACE_MS, () => void child.kill("SIGKILL"));
      child.once("close", () => timer.cancel());
    };
    signal.addEventListener("abort", kill, { once: true });
    return new Promise((resolve, reject) => {
      child.once("error", (error: NodeJS.ErrnoException) => {
        signal.removeEventListener("abort", kill);
        reject(notStarted(error));
      });
      child.once("close", (code) => {
        signal.removeEventListener("abort", kill);
        const out = Buffer.concat(chunks).toString("latin1");
        if (signal.aborted) reject(signal.reason as Error);
        else if (tooMuch && call.cut !== true)
          reject(new GitFailure(`git answers with more than ${most} bytes`));
        else resolve({ code: tooMuch ? 0 : (code ?? 128), out, err });
      });
    });
  }

  /** What it has said. @throws GitFailure with git's own words unless it exits with 0. */
  async need(args: readonly string[], call: GitCall): Promise<string> {
    const { code, out, err } = await this.run(args, call);
    if (code !== 0)
      throw new GitFailure(`git ${args.find((word) => /^[a-z]/.test(word))}: ${firstLine(err, code)}`);
    return out;
  }
}

function notStarted(error: NodeJS.ErrnoException): GitFailure {
  if (error.code === "ENOENT") return new GitFailure("git is not installed, or the folder is gone", true);
  return new GitFailure(`git could not be started: ${error.message}`);
}

export function firstLine(err: string, code: number): string {
  const line = err.split("\n").find((one) => one.trim() !== "");
  return line?.replace(/^(fatal|error): /, "").slice(0, 300) ?? `it ended with ${code}`;
}

/** Bytes that git has said as text. */
export function textOf(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}

export function bytesOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Names as git lists them, each ended by a zero byte; byte by byte. */
export function names(listed: string): string[] {
  return listed.split("\0").filter((name) => name !== "");
}
