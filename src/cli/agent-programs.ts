/**
 * Coding agents as providers, by the names that the command line has for them. Each program is started when an agent first needs
 * it; it has the settings and the login that it has for its user.
 */
import { systemClock } from "../platform/clock.ts";
import { findProgram } from "../platform/find-program.ts";
import { startLineProcess } from "../platform/line-process.ts";
import { CoppiceError } from "../protocol/errors.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import { createAcpProvider } from "../providers/acp/acp-provider.ts";
import { CLAUDE_CAPABILITIES } from "../providers/claude/capabilities.ts";
import { createClaudeProvider } from "../providers/claude/claude-provider.ts";
import { loadClaudeSdk } from "../providers/claude/sdk.ts";
import { CODEX_CAPABILITIES } from "../providers/codex/capabilities.ts";
import { createCodexProvider } from "../providers/codex/codex-provider.ts";
import { OPENCODE_CAPABILITIES } from "../providers/opencode/capabilities.ts";
import { createOpenCodeProvider } from "../providers/opencode/opencode-provider.ts";
import { CommandError, EXIT } from "./failure.ts";
import type { ProviderAdapter } from "../providers/port.ts";

/** What is said of one that is there, such as its version; or what to do when it is not. */
type Found = { readonly there: string } | { readonly missing: string };

interface AgentProgram {
  readonly capabilities: ThreadCapabilities;
  readonly provider: () => ProviderAdapter;
  /** What to do when it is not there; null when it is. */
  readonly missing: () => Promise<string | null>;
  /** What is said of one that is there. */
  readonly there: () => Promise<string>;
}

const PROGRAMS: Readonly<Record<string, AgentProgram>> = {
  codex: {
    capabilities: CODEX_CAPABILITIES,
    provider: () => createCodexProvider(),
    missing: () => missingProgram("codex", "npm install -g @openai/codex, then: codex login"),
    there: () => programOf("codex"),
  },
  claude: {
    capabilities: CLAUDE_CAPABILITIES,
    provider: () => createClaudeProvider(),
    missing: async () => missingSdkOfClaude(),
    there: async () => "its Agent SDK is installed; it has the login of Claude Code, or ANTHROPIC_API_KEY",
  },
  opencode: {
    capabilities: OPENCODE_CAPABILITIES,
    provider: () => createOpenCodeProvider(),
    missing: () => missingProgram("opencode", "npm install -g opencode-ai, then: opencode auth login"),
    there: () => programOf("opencode"),
  },
};

export const AGENT_PROGRAMS = Object.keys(PROGRAMS);

/** Whatever speaks the Agent Client Protocol has the name of its command: `acp:gemini --experimental-acp`. */
const ACP = "acp:";

export function isAgentProgram(name: string): boolean {
  return AGENT_PROGRAMS.includes(name) || isAcp(name);
}

export function isAcp(name: string): boolean {
  return name.startsWith(ACP) && name.slice(ACP.length).trim() !== "";
}

/** `acp` are names of that kind. */
export function agentProviders(acp: Iterable<string>): Readonly<Record<string, ProviderAdapter>> {
  return {
    ...Object.fromEntries(Object.entries(PROGRAMS).map(([name, { provider }]) => [name, provider()])),
    ...Object.fromEntries([...acp].map((name) => [name, acpProvider(name)])),
  };
}

function acpProvider(name: string): ProviderAdapter {
  return createAcpProvider(commandOf(name));
}

function commandOf(name: string): { readonly command: string; readonly args: readonly string[] } {
  const [command = "", ...args] = name.slice(ACP.length).trim().split(/\s+/u);
  return { command, args };
}

export interface AgentProgramState {
  readonly name: string;
  readonly found: Found;
  readonly capabilities: ThreadCapabilities;
}

/** Asks each program for its version at most: no login, no model, no money. */
export function agentProgramStates(): Promise<AgentProgramState[]> {
  return Promise.all(
    Object.entries(PROGRAMS).map(async ([name, { missing, there, capabilities }]) => {
      const remedy = await missing();
      const found = remedy === null ? { there: await there() } : { missing: remedy };
      return { name, found, capabilities };
    }),
  );
}

/** The first of these that is installed; null where there is none. Nothing is started. */
export async function installedAgentProgram(
  names: readonly string[] = AGENT_PROGRAMS,
): Promise<string | null> {
  for (const name of names) if ((await PROGRAMS[name]!.missing()) === null) return name;
  return null;
}

/** Before anything is stored that wants it. @throws CommandError `PROVIDER_UNAVAILABLE` with what to do. */
export async function requireProgram(provider: string): Promise<void> {
  const { command } = isAcp(provider) ? commandOf(provider) : { command: provider };
  const remedy = isAcp(provider)
    ? await missingProgram(command, "install it, or give its path after `acp:`.")
    : await PROGRAMS[provider]!.missing();
  if (remedy === null) return;
  const message = `there is no program \`${command}\` here: ${remedy}`;
  throw new CommandError(EXIT.badUse, "PROVIDER_UNAVAILABLE", message, "doctor");
}

function missingSdkOfClaude(): string | null {
  try {
    loadClaudeSdk();
    return null;
  } catch (error) {
    if (!CoppiceError.is(error)) throw error;
    const named = error.details["package"];
    return named === undefined ? error.message : `npm install ${named as string}`;
  }
}

async function missingProgram(command: string, remedy: string): Promise<string | null> {
  try {
    await findProgram({ command, args: [] });
    return null;
  } catch (error) {
    if (CoppiceError.is(error)) return remedy;
    throw error;
  }
}

async function programOf(command: string): Promise<string> {
  const path = await findProgram({ command, args: [] });
  return `${(await versionOf(path)) ?? "does not tell its version"} (${path})`;
}

const VERSION_MS = 5_000;

/** Null when it says nothing in time, or cannot be run. */
async function versionOf(path: string): Promise<string | null> {
  try {
    await using program = await startLineProcess(
      { command: path, args: ["--version"] },
      { clock: systemClock },
    );
    using _deadline = deadline(() => void program.end({ graceMs: 0 }));
    for await (const line of program.lines) if (line.trim() !== "") return line.trim();
  } catch {
    // What it is then shows when an agent needs it.
  }
  return null;
}

function deadline(over: () => void): Disposable {
  const timer = systemClock.setTimer(VERSION_MS, over);
  return { [Symbol.dispose]: () => timer.cancel() };
}
