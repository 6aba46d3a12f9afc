/**
 * Coding agents as providers, by the names that the command line has for them. Each program is started when an agent first needs
 * it; it has the settings and the login that it has for its user.
 */
import { systemClock } from "../platform/clock.ts";
import { findProgram } from "../platform/find-program.ts";
import { startLineProcess } from "../platform/line-process.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import { CODEX_CAPABILITIES } from "../providers/codex/capabilities.ts";
import { createCodexProvider } from "../providers/codex/codex-provider.ts";
import type { ProviderAdapter } from "../providers/port.ts";

interface AgentProgram {
  readonly command: string;
  /** What is typed to get it. */
  readonly install: string;
  readonly capabilities: ThreadCapabilities;
  readonly provider: () => ProviderAdapter;
}

const PROGRAMS = {
  codex: {
    command: "codex",
    install: "npm install -g @openai/codex, then: codex login",
    capabilities: CODEX_CAPABILITIES,
    provider: () => createCodexProvider(),
  },
} as const satisfies Readonly<Record<string, AgentProgram>>;

export const AGENT_PROGRAMS = Object.keys(PROGRAMS) as readonly (keyof typeof PROGRAMS)[];

export function agentProviders(): Readonly<Record<string, ProviderAdapter>> {
  return Object.fromEntries(Object.entries(PROGRAMS).map(([name, { provider }]) => [name, provider()]));
}

export interface AgentProgramState {
  readonly name: string;
  /** Null when it is not installed. */
  readonly path: string | null;
  /** What it says of itself; null when it says nothing in time. */
  readonly version: string | null;
  readonly capabilities: ThreadCapabilities;
  /** What to do when it is missing. */
  readonly install: string;
}

/** Asks each program for its version, and for nothing else: no login, no model, no money. */
export function agentProgramStates(): Promise<AgentProgramState[]> {
  return Promise.all(Object.entries(PROGRAMS).map(([name, program]) => stateOf(name, program)));
}

async function stateOf(
  name: string,
  { command, capabilities, install }: AgentProgram,
): Promise<AgentProgramState> {
  const path = await findProgram({ command, args: [] }).catch(() => null);
  const version = path === null ? null : await versionOf(path);
  return { name, path, version, capabilities, install };
}

const VERSION_MS = 5_000;

async function versionOf(path: string): Promise<string | null> {
  try {
    await using program = await startLineProcess(
      { command: path, args: ["--version"] },
      { clock: systemClock },
    );
    using _deadline = deadline(() => void program.end({ graceMs: 0 }));
    for await (const line of program.lines) if (line.trim() !== "") return line.trim();
  } catch {
    // It is there and cannot be run: its version is not known.
  }
  return null;
}

function deadline(over: () => void): Disposable {
  const timer = systemClock.setTimer(VERSION_MS, over);
  return { [Symbol.dispose]: () => timer.cancel() };
}
