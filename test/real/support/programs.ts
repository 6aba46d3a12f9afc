/**
 * The real programs that `test/real/package.json` pins: whether one is installed here, and how it is started. What is missing
 * is told, so that its tests are skipped and never pass.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder with the manifest of the programs. */
export const REAL = fileURLToPath(new URL("..", import.meta.url));
const MODULES = join(REAL, "node_modules");
const PLATFORM = `${process.platform}-${process.arch}`;

/** Of one that is installed. */
export interface Installed {
  readonly version: string;
  /** What starts it, without what it is told to do. */
  readonly command: string;
  readonly args: readonly string[];
  /** What its package exports, for one that is used as a library. */
  readonly module?: string;
}

/** How a program is found; each answers what is there of it and throws `Missing` otherwise. */
const FINDERS = {
  codex: (): Installed => {
    const version = versionOf("@openai/codex");
    return { version, command: binary(MODULES, `@openai/codex-${PLATFORM}/vendor/*/bin/codex`), args: [] };
  },
  claude: (): Installed => {
    const name = "@anthropic-ai/claude-agent-sdk";
    const version = versionOf(name);
    const command = binary(MODULES, `${name}-${PLATFORM}/claude`);
    return { version, command, args: [], module: binary(MODULES, `${name}/sdk.mjs`) };
  },
  opencode: (): Installed => {
    // Not `opencode-ai`, which names it: that one also names packages which not every registry has, and no lock holds it then.
    const name = `opencode-${PLATFORM}`;
    return { version: versionOf(name), command: binary(MODULES, `${name}/bin/opencode`), args: [] };
  },
  "claude-acp": (): Installed =>
    scriptWith("@agentclientprotocol/claude-agent-acp", `@anthropic-ai/claude-agent-sdk-${PLATFORM}`),
  "codex-acp": (): Installed => scriptWith("@agentclientprotocol/codex-acp", `@openai/codex-${PLATFORM}`),
  "zed-codex-acp": (): Installed => {
    const name = "@zed-industries/codex-acp";
    const version = versionOf(name);
    return { version, command: binary(MODULES, `${name}-${PLATFORM}/bin/codex-acp`), args: [] };
  },
};

export type ProgramName = keyof typeof FINDERS;
export const PROGRAM_NAMES = Object.keys(FINDERS) as readonly ProgramName[];

/** A program, or why it cannot be run here. */
export function findReal(name: ProgramName): Installed | { readonly missing: string } {
  try {
    return FINDERS[name]();
  } catch (error) {
    if (error instanceof Missing) return { missing: error.message };
    throw error;
  }
}

class Missing extends Error {}

/** The version that is installed, which has to be the one that is pinned. */
function versionOf(name: string): string {
  const manifest = JSON.parse(readFileSync(join(REAL, "package.json"), "utf8"));
  const wanted: string | undefined = manifest.optionalDependencies[name];
  if (wanted === undefined) throw new Missing(`${name} is not among the programs that are installed`);
  const path = join(MODULES, name, "package.json");
  if (!existsSync(path)) throw new Missing(`${name} ${wanted} is not installed`);
  const { version } = JSON.parse(readFileSync(path, "utf8"));
  if (version !== wanted) throw new Missing(`${name} is ${version}, and ${wanted} is wanted`);
  return version;
}

function binary(folder: string, pattern: string): string {
  const [found] = globSync(pattern, { cwd: folder });
  if (found === undefined) throw new Missing(`${pattern} was not installed for this platform`);
  return join(folder, found);
}

/** A program of JavaScript, which starts a binary of its own. */
function scriptWith(name: string, needed: string): Installed {
  const version = versionOf(name);
  if (![join(MODULES, name, "node_modules"), MODULES].some((folder) => existsSync(join(folder, needed))))
    throw new Missing(`${needed} was not installed for ${name}`);
  return { version, command: process.execPath, args: [join(MODULES, name, "dist/index.js")] };
}
