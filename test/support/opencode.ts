/** The server of `opencode-server.mjs`, with a folder of its own for a test. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { startLineProcess } from "../../src/platform/line-process.ts";
import {
  createOpenCodeProvider,
  type OpenCodeOptions,
} from "../../src/providers/opencode/opencode-provider.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import { processesWith } from "./processes.ts";

const PROGRAM = fileURLToPath(new URL("opencode-server.mjs", import.meta.url));

/** What a server was asked. */
export interface Asked {
  /** Its method, and its path with `:id` for what is named there. */
  readonly request: string;
  readonly id: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it by name
  readonly body: any;
}

export interface FakeOpenCode {
  /** An adapter whose server has these ways. */
  adapter(ways?: object, options?: Partial<OpenCodeOptions>): NativeAdapter;
  /** One that somebody else runs; its address. */
  serve(options?: {
    readonly password?: string;
    readonly port?: number;
    readonly ways?: object;
  }): Promise<string>;
  asked(request?: string): Asked[];
  /** Ids of its processes that live. */
  processes(): number[];
  /** Has one that waits with its turn begin. */
  begin(): void;
  /** Ends all of them at once, as a crash would. */
  kill(): void;
}

export function fakeOpenCode(): FakeOpenCode {
  const folder = mkdtempSync(join(tmpdir(), "coppice-opencode-"));
  const log = join(folder, "log.jsonl");
  const env = { ...process.env, OPENCODE_STORE: folder, OPENCODE_LOG: log };
  // Not the shell that waits in the group for the end of whoever has started it.
  const processes = (): number[] =>
    processesWith(`OPENCODE_STORE=${folder}`).flatMap(({ pid, command }) =>
      command.startsWith("/bin/sh") ? [] : [pid],
    );
  const signal = (name: "SIGKILL" | "SIGUSR2"): void => {
    for (const pid of processes()) process.kill(pid, name);
  };
  const kill = (): void => signal("SIGKILL");
  onTestFinished(() => {
    kill();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    processes,
    kill,
    begin: () => signal("SIGUSR2"),
    adapter: (ways = {}, options = {}) =>
      createOpenCodeProvider({
        ...(options.url === undefined
          ? { command: process.execPath, args: [PROGRAM, JSON.stringify(ways)], env }
          : {}),
        ...options,
      }),
    async serve({ password, port, ways } = {}) {
      const program = await startLineProcess(
        {
          command: process.execPath,
          args: [PROGRAM, JSON.stringify({ ...ways, port })],
          env: { ...env, ...(password === undefined ? {} : { OPENCODE_SERVER_PASSWORD: password }) },
        },
        { clock: systemClock },
      );
      onTestFinished(async () => void (await program.end({ graceMs: 0 })));
      const { value } = await program.lines[Symbol.asyncIterator]().next();
      return /http:\S+/.exec(String(value))![0];
    },
    asked: (request) =>
      (existsSync(log) ? readFileSync(log, "utf8").split("\n") : [])
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Asked)
        .filter((one) => request === undefined || one.request === request),
  };
}
