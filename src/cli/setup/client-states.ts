/** Which clients have our server, and whether it answers when it is started as they would start it. */
import type { JsonObject } from "../../protocol/json.ts";
import { filePlace, readClientFile, type Scope } from "./client-file.ts";
import { MCP_CLIENTS, type ServerCommand } from "./clients.ts";
import { type Tried, tryServer } from "./try-server.ts";

export interface ClientState {
  readonly client: string;
  readonly title: string;
  readonly scope: Scope;
  readonly file: string;
  readonly tried: Tried;
}

/** Of those that have it; a file that cannot be read is told, as it may be why a client has no tools. */
export async function clientStates(): Promise<readonly ClientState[]> {
  const states: ClientState[] = [];
  for (const [client, known] of Object.entries(MCP_CLIENTS)) {
    for (const scope of ["user", "project"] as const) {
      const place = filePlace(known, scope);
      if (place === null) continue;
      const state = { client, title: known.title, scope, file: place };
      try {
        const { entry } = readClientFile(known, place);
        if (entry !== null) states.push({ ...state, tried: await tryServer(commandOf(entry)) });
      } catch (error) {
        states.push({ ...state, tried: { fault: error instanceof Error ? error.message : String(error) } });
      }
    }
  }
  return states;
}

/** Clients write it in two ways: in one list, or the program apart from its arguments. */
function commandOf({ command, args }: JsonObject): ServerCommand {
  const [program = "", ...rest] = [command, args].flat().filter((word) => typeof word === "string");
  return { command: program, args: rest };
}
