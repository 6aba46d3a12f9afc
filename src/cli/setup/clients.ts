/**
 * Clients of the Model Context Protocol that people have, and where each keeps its servers: a table, checked against what their
 * makers document.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../protocol/json.ts";

/** How our server is started. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Beside those that the client has itself. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface McpClient {
  /** As its maker writes it. */
  readonly title: string;
  readonly format: "json" | "toml";
  /** Of the file for all projects. */
  readonly user: (env: NodeJS.ProcessEnv) => string;
  /** Of the one for a project, from its folder; null where the client has none. */
  readonly project: string | null;
  /** Where the servers stand in the file, by names. */
  readonly within: readonly string[];
  readonly entry: (server: ServerCommand) => JsonObject;
  /** What the agents of its tree are: the same program, where it is one that Coppice runs. */
  readonly provider: string | null;
}

/** The name under which clients list our server. */
export const ENTRY = "coppice";
/** A wait through a client lasts 45 s at most; clients with a shorter limit of their own are told a longer one. */
const CALL_SECONDS = 120;

const plain = ({ command, args }: ServerCommand): JsonObject => ({ command, args: [...args] });
const home = (...path: readonly string[]): string => join(homedir(), ...path);
const configured = (env: NodeJS.ProcessEnv, ...path: readonly string[]): string =>
  join(env["XDG_CONFIG_HOME"] || home(".config"), ...path);

/** By the names that `coppice setup` takes. */
export const MCP_CLIENTS: Readonly<Record<string, McpClient>> = {
  "claude-code": {
    title: "Claude Code",
    format: "json",
    user: (env) =>
      env["CLAUDE_CONFIG_DIR"] ? join(env["CLAUDE_CONFIG_DIR"], ".claude.json") : home(".claude.json"),
    project: ".mcp.json",
    within: ["mcpServers"],
    entry: (server) => ({ type: "stdio", ...plain(server) }),
    provider: "claude",
  },
  codex: {
    title: "Codex",
    format: "toml",
    user: (env) => join(env["CODEX_HOME"] || home(".codex"), "config.toml"),
    project: ".codex/config.toml",
    within: ["mcp_servers"],
    entry: (server) => ({ ...plain(server), tool_timeout_sec: CALL_SECONDS }),
    provider: "codex",
  },
  opencode: {
    title: "OpenCode",
    format: "json",
    user: (env) => configured(env, "opencode", "opencode.json"),
    project: "opencode.json",
    within: ["mcp"],
    entry: ({ command, args }) => ({
      type: "local",
      command: [command, ...args],
      enabled: true,
      timeout: CALL_SECONDS * 1_000,
    }),
    provider: "opencode",
  },
  vscode: {
    title: "VS Code",
    format: "json",
    user: (env) => join(appFolder(env), "Code", "User", "mcp.json"),
    project: ".vscode/mcp.json",
    within: ["servers"],
    entry: (server) => ({ type: "stdio", ...plain(server) }),
    provider: null,
  },
  cursor: {
    title: "Cursor",
    format: "json",
    user: () => home(".cursor", "mcp.json"),
    project: ".cursor/mcp.json",
    within: ["mcpServers"],
    entry: plain,
    provider: null,
  },
  gemini: {
    title: "Gemini CLI",
    format: "json",
    user: () => home(".gemini", "settings.json"),
    project: ".gemini/settings.json",
    within: ["mcpServers"],
    entry: plain,
    provider: null,
  },
  zed: {
    title: "Zed",
    format: "json",
    user: (env) => configured(env, "zed", "settings.json"),
    project: ".zed/settings.json",
    within: ["context_servers"],
    entry: (server) => ({ ...plain(server), env: {} }),
    provider: null,
  },
  windsurf: {
    title: "Windsurf",
    format: "json",
    user: () => home(".codeium", "windsurf", "mcp_config.json"),
    project: null,
    within: ["mcpServers"],
    entry: plain,
    provider: null,
  },
};

/** Where programs with a window keep what is the user's. */
function appFolder(env: NodeJS.ProcessEnv): string {
  if (process.platform === "darwin") return home("Library", "Application Support");
  if (process.platform === "win32") return env["APPDATA"] || home("AppData", "Roaming");
  return configured(env);
}
