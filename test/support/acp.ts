/** The agent of `acp-agent.mjs`, with a folder of its own for a test. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { type AcpOptions, createAcpProvider } from "../../src/providers/acp/acp-provider.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import { processesWith } from "./processes.ts";

const PROGRAM = fileURLToPath(new URL("acp-agent.mjs", import.meta.url));

/** What an agent was asked and told by its client. */
export interface Heard {
  readonly method?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it by name
  readonly params?: any;
  // oxlint-disable-next-line typescript/no-explicit-any -- likewise
  readonly result?: any;
}

export interface FakeAgent {
  /** An adapter whose program has these ways. */
  adapter(ways?: object, options?: Partial<AcpOptions>): NativeAdapter;
  heard(method?: string): Heard[];
  /** Ids of its processes that live. */
  processes(): number[];
}

export function fakeAgent(): FakeAgent {
  const folder = mkdtempSync(join(tmpdir(), "coppice-acp-"));
  const log = join(folder, "log.jsonl");
  const env = { ...process.env, ACP_STORE: folder, ACP_LOG: log };
  onTestFinished(() => {
    for (const { pid } of processesWith(`ACP_STORE=${folder}`)) process.kill(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    adapter: (ways = {}, options = {}) =>
      createAcpProvider({
        command: process.execPath,
        args: [PROGRAM, JSON.stringify(ways)],
        env,
        ...options,
      }),
    heard: (method) =>
      (existsSync(log) ? readFileSync(log, "utf8").split("\n") : [])
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Heard)
        .filter((one) => method === undefined || one.method === method),
    processes: () =>
      // Not the shell that waits in the group for the end of whoever has started it.
      processesWith(`ACP_STORE=${folder}`).flatMap(({ pid, command }) =>
        command.startsWith("/bin/sh") ? [] : [pid],
      ),
  };
}
