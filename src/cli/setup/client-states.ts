/**
 * Which clients have our server, and whether it answers when it is started as they would start it.
 *
 * - S1 A file of a folder may be anybody's: what it names is started only where that is this very program.
 */
import type { JsonObject } from "../../protocol/json.ts";
import { clean, clip } from "../terminal.ts";
import { filePlace, readClientFile, type Scope } from "./client-file.ts";
import { MCP_CLIENTS, type ServerCommand } from "./clients.ts";
import { ownCommand } from "./own-command.ts";
import { type Tried, tryServer } from "./try-server.ts";

export interface ClientState {
  readonly client: string;
  readonly title: string;
  readonly scope: Scope;
  readonly file: string;
  readonly tried: Tried;
}

/** Of those that have it; a file that cannot be read is told, as it may be why a client has no tools. */
export async function clientStates(version: string): Promise<readonly ClientState[]> {
  const states: ClientState[] = [];
  for (const [client, known] of Object.entries(MCP_CLIENTS)) {
    for (const scope of ["user", "project"] as const) {
      const place = filePlace(known, scope);
      if (place === null) continue;
      const state = { client, title: known.title, scope, file: place };
      try {
        const { entry } = readClientFile(known, place);
        if (entry === null) continue;
        const command = commandOf(entry);
        const trusted = scope === "user" || isThisProgram(command, version);
        states.push({
          ...state,
          tried: trusted ? await tryServer(command) : { fault: otherCommand(command) },
        });
      } catch (error) {
        states.push({ ...state, tried: { fault: error instanceof Error ? error.message : String(error) } });
      }
    }
  }
  return states;
}

function isThisProgram({ command, args, env }: ServerCommand, version: string): boolean {
  const own = ownCommand(version, ["mcp"]);
  const isSame = own.args.every((word, at) => args[at] === word);
  return command === own.command && isSame && Object.keys(env ?? {}).length === 0;
}

const SHOWN_CHARACTERS = 80;

function otherCommand({ command, args }: ServerCommand): string {
  const shown = clip(clean([command, ...args].join(" ")), SHOWN_CHARACTERS);
  return `it names another program, which is not started from here: ${shown}`;
}

/** Clients write it in two ways: in one list, or the program apart from its arguments. */
function commandOf({ command, args, env, environment }: JsonObject): ServerCommand {
  const [program = "", ...rest] = [command, args].flat().filter((word) => typeof word === "string");
  const given = Object.entries((env ?? environment ?? {}) as JsonObject);
  const texts = given.filter((one): one is [string, string] => typeof one[1] === "string");
  return { command: program, args: rest, env: Object.fromEntries(texts) };
}
