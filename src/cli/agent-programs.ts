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
import type { ProviderAdapter } from "../providers/port.ts";

/** What is said of one that is there, such as its version; or what to do when it is not. */
type Found = { readonly there: string } | { readonly missing: string };

interface AgentProgram {
  readonly capabilities: ThreadCapabilities;
  readonly provider: () => ProviderAdapter;
  readonly find: () => Promise<Found>;
  readonly isThere: () => Promise<boolean>;
}

const PROGRAMS: Readonly<Record<string, AgentProgram>> = {
  codex: {
    capabilities: CODEX_CAPABILITIES,
    provider: () => createCodexProvider(),
    find: () => programOf("codex", "npm install -g @openai/codex, then: codex login"),
    isThere: () => isProgram("codex"),
  },
  claude: {
    capabilities: CLAUDE_CAPABILITIES,
    provider: () => createClaudeProvider(),
    find: async () => sdkOfClaude(),
    isThere: async () => "there" in sdkOfClaude(),
  },
  opencode: {
    capabilities: OPENCODE_CAPABILITIES,
    provider: () => createOpenCodeProvider(),
    find: () => programOf("opencode", "npm install -g opencode-ai, then: opencode auth login"),
    isThere: () => isProgram("opencode"),
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
  const [command = "", ...args] = name.slice(ACP.length).trim().split(/\s+/u);
  return createAcpProvider({ command, args });
}

export interface AgentProgramState {
  readonly name: string;
  readonly found: Found;
  readonly capabilities: ThreadCapabilities;
}

/** Asks each program for its version at most: no login, no model, no money. */
export function agentProgramStates(): Promise<AgentProgramState[]> {
  return Promise.all(
    Object.entries(PROGRAMS).map(async ([name, { find, capabilities }]) => ({
      name,
      found: await find(),
      capabilities,
    })),
  );
}

/** The first of these that is installed; null where there is none. Nothing is started. */
export async function installedAgentProgram(
  names: readonly string[] = AGENT_PROGRAMS,
): Promise<string | null> {
  for (const name of names) if (await PROGRAMS[name]!.isThere()) return name;
  return null;
}

function sdkOfClaude(): Found {
  try {
    loadClaudeSdk();
    return { there: "its Agent SDK is installed; it has the login of Claude Code, or ANTHROPIC_API_KEY" };
  } catch (error) {
    if (!CoppiceError.is(error)) throw error;
    return {
      missing:
        error.details["package"] === undefined
          ? error.message
          : `npm install ${error.details["package"] as string}`,
    };
  }
}

function isProgram(command: string): Promise<boolean> {
  return findProgram({ command, args: [] }).then(
    () => true,
    () => false,
  );
}

async function programOf(command: string, missing: string): Promise<Found> {
  try {
    const path = await findProgram({ command, args: [] });
    return { there: `${(await versionOf(path)) ?? "does not tell its version"} (${path})` };
  } catch (error) {
    if (CoppiceError.is(error)) return { missing };
    throw error;
  }
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
