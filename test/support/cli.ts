/** The command line as a child process: the sources, run by the Node that the package brings along. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const NODE = join(ROOT, "node_modules/.bin/node");
export const BIN = join(ROOT, "src/cli/bin.ts");

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A line of NDJSON, of whatever shape. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Row = any;

/** A command under way. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  readonly lines: string[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(
    args: readonly string[],
    options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; readonly input?: string | Buffer },
  ) {
    const env = { ...process.env, NO_COLOR: "1", COPPICE_STORE: "", ...options.env };
    this.child = spawn(NODE, [BIN, ...args], { cwd: options.cwd ?? ROOT, env, stdio: "pipe" });
    let stdout = "";
    let stderr = "";
    // A character may come in two pieces.
    this.child.stdout!.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.lines.push(line);
      for (const look of this.#waiting) look();
    });
    this.child.stdin!.on("error", () => undefined);
    this.child.stdin!.end(options.input ?? "");
    this.ended = new Promise((resolve) => {
      this.child.on("close", (code) => {
        resolve({ code, stdout, stderr });
        for (const look of this.#waiting) look();
      });
    });
  }

  /** The first line that fits; rejects when the command ends without it. */
  line(fits: (line: string, index: number) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.lines.find(fits);
        if (found === undefined && this.child.exitCode === null && this.child.signalCode === null) return;
        this.#waiting.delete(look);
        if (found === undefined) void this.ended.then((ended) => reject(new Error(JSON.stringify(ended))));
        else resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** The first event of a type, of an agent where one is named. */
  event(type: string, path?: string): Promise<string> {
    return this.line((line) => {
      const row = JSON.parse(line) as Row;
      return row.type === type && (path === undefined || row.path === path);
    });
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** A folder of its own, with a place to look through and a store, gone at the end. */
export class Place implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "coppice-cli-"));
  readonly dir = join(this.path, "project");
  readonly store = join(this.path, "store.db");

  constructor(files: Readonly<Record<string, string>> = PROJECT) {
    mkdirSync(this.dir);
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  write(name: string, text: string): void {
    const place = join(this.dir, name);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, text);
  }

  start(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
    input: string | Buffer = "",
    cwd = this.path,
  ): Running {
    return new Running(args, { cwd, env, input });
  }

  /** Runs a command to its end, on this place's store. */
  run(...args: readonly string[]): Promise<Ended> {
    return this.start(this.#onStore(args)).ended;
  }

  /** The demo, as fast as it goes. */
  demo(...args: readonly string[]): Running {
    return this.start([
      "demo",
      "--json",
      "--store",
      this.store,
      ...(args.includes("--pace") ? [] : ["--pace", "0"]),
      ...args,
    ]);
  }

  async rows(...args: readonly string[]): Promise<Row[]> {
    const { stdout } = await this.start(this.#onStore([...args, "--json"])).ended;
    return rowsOf(stdout);
  }

  /** Options stand before what follows a `--`. */
  #onStore(args: readonly string[]): string[] {
    const end = args.includes("--") ? args.indexOf("--") : args.length;
    return [...args.slice(0, end), "--store", this.store, ...args.slice(end)];
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export function rowsOf(text: string): Row[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row);
}

/** What a demo answered. */
export function answerOf(ended: Ended): string {
  const last = rowsOf(ended.stdout).at(-1) as Row;
  if (last?.type !== "demo.ended") throw new Error(JSON.stringify(ended));
  return last.answer as string;
}

const PROJECT: Readonly<Record<string, string>> = {
  "README.md": "# Alpha kit\n\n## Use\n\nCall alpha.\n",
  "NOTES.md": "# Notes\n\nWhat alpha leaves open.\n",
  "src/longest.ts": "// alpha\n".repeat(30),
  "src/short.ts": "export const beta = 1;\n",
  "docs/guide.md": "# Guide\n\nalpha, then beta.\n",
};
