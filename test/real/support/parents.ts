/** The real programs that can be at the root of a tree: their homes, their adapters, and what one has to know of each. */
import { createAcpProvider } from "../../../src/providers/acp/acp-provider.ts";
import { createCodexProvider } from "../../../src/providers/codex/codex-provider.ts";
import type { NativeAdapter } from "../../../src/providers/port.ts";
import type { ModelServer } from "../../support/model-server/model-server.ts";
import { claudeAdapter, claudeHome } from "./claude.ts";
import { codexHome } from "./codex.ts";
import type { Home } from "./home.ts";
import { openCodeAdapter, openCodeHome } from "./opencode.ts";
import { findReal, type Installed, type ProgramName } from "./programs.ts";

/** For an answer, on a machine that may be busy. */
const BUSY_MS = 240_000;

interface Parent {
  readonly program: ProgramName;
  readonly home: (server: ModelServer) => Home;
  /** What stands before a tool of ours, where the program has others of the same name. */
  readonly before?: string;
  readonly provider: (program: Installed, at: Place) => NativeAdapter | Promise<NativeAdapter>;
}

/** Where a program runs. */
interface Place {
  readonly env: Home["env"];
}

const acp =
  (options: { readonly args?: readonly string[]; readonly mode?: string } = {}) =>
  ({ command, args }: Installed, { env }: Place): NativeAdapter =>
    createAcpProvider({
      command,
      args: [...args, ...(options.args ?? [])],
      env,
      deadlineMs: BUSY_MS,
      ...(options.mode === undefined ? {} : { mode: options.mode }),
    });

export const PARENTS = {
  codex: {
    program: "codex",
    home: codexHome,
    provider: ({ command, args }, { env }) => createCodexProvider({ command, args, env, isolated: true }),
  },
  claude: {
    program: "claude",
    home: claudeHome,
    provider: (program, at) => claudeAdapter(program, at),
  },
  opencode: {
    program: "opencode",
    home: openCodeHome,
    provider: (program, at) => openCodeAdapter(program, at),
  },
  "claude-acp": {
    program: "claude-acp",
    home: (server) => claudeHome(server, { ENABLE_TOOL_SEARCH: "false" }),
    provider: acp({ mode: "default" }),
  },
  "codex-acp": { program: "codex-acp", home: codexHome, provider: acp({ mode: "agent-full-access" }) },
  "zed-codex-acp": {
    program: "zed-codex-acp",
    home: (server) => codexHome(server, { tables: [] }),
    before: "mcp__coppice.",
    provider: acp(),
  },
  "opencode-acp": { program: "opencode", home: openCodeHome, provider: acp({ args: ["acp"] }) },
} as const satisfies Readonly<Record<string, Parent>>;

export type ParentName = keyof typeof PARENTS;

export function parentOf(name: ParentName): Parent {
  return PARENTS[name];
}

/** @throws when the program is not installed. */
export async function parentProvider(name: ParentName, at: Place): Promise<NativeAdapter> {
  const parent = parentOf(name);
  const found = findReal(parent.program);
  if ("missing" in found) throw new Error(found.missing);
  return parent.provider(found, at);
}
