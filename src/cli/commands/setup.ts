/** `coppice setup`: our server in the settings of a client that somebody uses already, and out of them again. */
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { stringify } from "smol-toml";
import type { JsonObject } from "../../protocol/json.ts";
import { installedAgentProgram } from "../agent-programs.ts";
import { badUse } from "../failure.ts";
import { filePlace, readClientFile, type Scope, withEntry, writeClientFile } from "../setup/client-file.ts";
import { ENTRY, MCP_CLIENTS, type McpClient, type ServerCommand } from "../setup/clients.ts";
import { ownCommand } from "../setup/own-command.ts";
import { clean, type Terminal, wrap } from "../terminal.ts";
import { notBlank } from "./options.ts";
import { PROVIDER_HELP } from "./thread-life.ts";

interface Options {
  readonly scope: Scope;
  readonly provider?: string;
  readonly model?: string;
  readonly config?: string;
  readonly store?: string;
  readonly undo?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const NAMES = Object.keys(MCP_CLIENTS);
const PASSED_ON = ["provider", "model", "config", "store"] as const;

export function addSetup(program: Command, terminal: Terminal, version: string): void {
  program
    .command("setup")
    .description("make an agent that you use already a client: its settings get our MCP server")
    .argument("<client>", NAMES.join(", "))
    .addOption(
      new Option("--scope <scope>", "settings for all projects, or for the one in this folder")
        .choices(["user", "project"] satisfies readonly Scope[])
        .default("user"),
    )
    .option(
      "--provider <name>",
      `what its agents are: ${PROVIDER_HELP}; default: the client's own kind, where that is installed`,
      notBlank,
    )
    .option("--model <name>", "their model", notBlank)
    .option("--config <file>", "a module of yours, as of `coppice mcp`", notBlank)
    .option("--store <file>", "the store, as of `coppice mcp`", notBlank)
    .option("--undo", "take it out again")
    .option("--dry-run", "say what would be written, and write nothing")
    .option("--json", "for programs: one object, and nothing else on standard output")
    .addHelpText("after", "\nExample: npx coppice setup claude-code")
    .action(async (name: string, options: Options) => {
      const client = Object.hasOwn(MCP_CLIENTS, name) ? MCP_CLIENTS[name]! : null;
      if (client === null) throw badUse(`there is no client \`${name}\`; choose ${NAMES.join(", ")}.`);
      await setUp(terminal, name, client, options, version);
    });
}

async function setUp(
  terminal: Terminal,
  name: string,
  client: McpClient,
  options: Options,
  version: string,
): Promise<void> {
  const { scope, undo = false, dryRun = false } = options;
  const place = filePlace(client, scope);
  if (place === null) throw badUse(`${client.title} has no settings of a project; leave out --scope.`);
  const server = undo ? null : await serverOf(client, options, version);
  // From here on nothing is waited for: the client may be running, and write what it keeps there.
  const file = readClientFile(client, place);
  const text = withEntry(client, file, server);
  const action = actionOf(file.entry, server, text === file.text);
  if (!dryRun && text !== file.text) writeClientFile(client, file, text);
  if (options.json === true) {
    const entry = server === null ? null : client.entry(server);
    terminal.json({ client: name, file: file.path, scope, action, dryRun, entry });
    return;
  }
  const say = (line: string): void => {
    for (const part of wrap(line, terminal.room)) terminal.line(part);
  };
  say(`${file.path}: ${dryRun ? WOULD[action] : DID[action]}`);
  if (server !== null && action !== "unchanged")
    for (const line of shown(client, server).trimEnd().split("\n")) terminal.line(`  ${clean(line)}`);
  if (dryRun || action === "unchanged" || action === "absent") return;
  say(
    undo
      ? `${client.title} has it no more when it is started anew.`
      : `Start ${client.title} anew; then its agent has spawn_agent and the other tools. Try it: npx coppice doctor. Take it out: npx coppice setup ${name}${scope === "user" ? "" : ` --scope ${scope}`} --undo`,
  );
}

type Action = "added" | "changed" | "unchanged" | "removed" | "absent";

const DID: Readonly<Record<Action, string>> = {
  added: "has the server now.",
  changed: "has the server now, in place of the entry that was there.",
  unchanged: "has it already.",
  removed: "has it no more.",
  absent: "has not got it.",
};
const WOULD: Readonly<Record<Action, string>> = {
  ...DID,
  added: "would get the server.",
  changed: "would get the server in place of the entry that is there.",
  removed: "would have it no more.",
};

function actionOf(entry: JsonObject | null, server: ServerCommand | null, isSame: boolean): Action {
  if (server === null) return entry === null ? "absent" : "removed";
  if (entry === null) return "added";
  return isSame ? "unchanged" : "changed";
}

/** What the client starts: this program, with what its agents are to be. */
async function serverOf({ provider }: McpClient, options: Options, version: string): Promise<ServerCommand> {
  const chosen = options.provider !== undefined || options.model !== undefined || provider === null;
  const same = chosen ? null : await installedAgentProgram([provider]);
  const { config, store } = options;
  const given = {
    ...(same === null ? {} : { provider: same }),
    ...options,
    // The client starts it in whatever folder it is in.
    ...(config === undefined ? {} : { config: resolve(config) }),
    ...(store === undefined ? {} : { store: resolve(store) }),
  };
  const args = PASSED_ON.flatMap((option) => {
    const value = given[option];
    return value === undefined ? [] : [`--${option}`, value];
  });
  return ownCommand(version, ["mcp", ...args]);
}

function shown({ format, within, entry }: McpClient, server: ServerCommand): string {
  const nested = [...within, ENTRY].reduceRight<JsonObject>(
    (value, key) => ({ [key]: value }),
    entry(server),
  );
  return format === "toml" ? stringify(nested) : JSON.stringify(nested, null, 2);
}
