/** Starts processes of `process.ts`, reads what they say, and ends them the hard way. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { JsonObject } from "../../../src/protocol/json.ts";

export class Process {
  readonly child: ChildProcess;
  readonly lines: JsonObject[] = [];
  /** Resolves when everything that it ever said has been read. */
  readonly ended: Promise<void>;
  readonly #waiting = new Set<() => void>();
  #over = false;

  constructor(program: URL, args: readonly string[]) {
    const script = fileURLToPath(program);
    this.child = spawn(process.execPath, [script, ...args], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface({ input: this.child.stdout! });
    lines.on("line", (line) => {
      this.lines.push(JSON.parse(line) as JsonObject);
      this.#look();
    });
    this.ended = new Promise((resolve) =>
      lines.on("close", () => {
        this.#over = true;
        this.#look();
        resolve();
      }),
    );
    onTestFinished(() => void this.child.kill("SIGKILL"));
  }

  #look(): void {
    for (const look of this.#waiting) look();
  }

  /** Resolves with the first line that has this field; rejects when it ends without one. */
  async says(field: string): Promise<JsonObject> {
    await this.until(() => this.lines.some((line) => field in line));
    const found = this.lines.find((line) => field in line);
    if (found === undefined)
      throw new Error(`It ended without saying ${field}: ${JSON.stringify(this.lines.slice(-3))}`);
    return found;
  }

  /** Resolves when the condition holds or it is over. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!condition() && !this.#over) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  all(field: string): readonly JsonObject[] {
    return this.lines.filter((line) => field in line);
  }

  go(): void {
    this.child.stdin!.write("go\n");
  }

  order(order: JsonObject): void {
    this.child.stdin!.write(`${JSON.stringify(order)}\n`);
  }

  freeze(): void {
    this.child.kill("SIGSTOP");
  }

  thaw(): void {
    this.child.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}

export function start(path: string, mode: string, tree = "-", options: JsonObject = {}): Process {
  return new Process(new URL("process.ts", import.meta.url), [path, mode, tree, JSON.stringify(options)]);
}

/** One that does what it is told, order by order. */
export function startRacer(path: string): Process {
  return new Process(new URL("racer.ts", import.meta.url), [path]);
}
