/** A real program that speaks JSON-RPC over its standard input and output, with all that it tells. */
import { systemClock } from "../../../src/platform/clock.ts";
import { type LineProcess, startLineProcess } from "../../../src/platform/line-process.ts";
import type { Json } from "../../../src/protocol/json.ts";
import { JsonRpcFault } from "../../../src/providers/json-rpc-message.ts";
import { JsonRpcPeer } from "../../../src/providers/json-rpc.ts";
import { Arrivals } from "../../support/model-wire/loopback.ts";
import type { Home } from "./home.ts";
import type { Installed } from "./programs.ts";

/** A notification; what is in it is the program's. */
export interface Told {
  readonly method: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it by name
  readonly params: any;
}

export interface Speaking {
  readonly peer: JsonRpcPeer;
  readonly program: LineProcess;
  /** All notifications, and who awaits one of them. */
  readonly told: Arrivals<Told>;
  /** Asks, with a deadline. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it by name
  readonly request: (method: string, params: object) => Promise<any>;
}

export interface SpeakOptions {
  readonly args?: readonly string[];
  /** As ACP wants it and Codex does not. */
  readonly versioned: boolean;
  /** Answers what the program asks; unless given, it is told that nobody knows the method. */
  readonly onRequest?: (method: string, params: Json) => Promise<Json>;
}

/** On a busy machine. */
const DEADLINE_MS = 60_000;

export async function speak(installed: Installed, home: Home, options: SpeakOptions): Promise<Speaking> {
  const { args = [], versioned, onRequest } = options;
  const program = await startLineProcess(
    { command: installed.command, args: [...installed.args, ...args], cwd: home.workspace, env: home.env },
    { clock: systemClock },
  );
  const told = new Arrivals<Told>();
  const peer = new JsonRpcPeer({
    program,
    clock: systemClock,
    name: installed.command,
    versioned,
    onNotification: (method, params) => told.add({ method, params }),
    onRequest: onRequest ?? ((method) => Promise.reject(JsonRpcFault.unknownMethod(method))),
  });
  return {
    peer,
    program,
    told,
    request: (method, params) =>
      peer.request(method, params as { [key: string]: Json }, { deadlineMs: DEADLINE_MS }),
  };
}
