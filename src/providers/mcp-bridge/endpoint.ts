/**
 * The bridge by which programs with a loop of their own get our tools: an endpoint of the Model Context Protocol on loopback,
 * in this process, with a seat for each agent.
 *
 * - E1 A caller is known by the token that was minted for its agent, by nothing else; with the seat the token is over (SEC-1).
 * - E2 It listens on loopback alone, and answers nobody who came by another name or from a page of somewhere else, before a
 *   byte of the body is read; bodies are bounded (SEC-2).
 * - E3 It listens as long as somebody sits at it.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { sha256 } from "../../platform/digest.ts";
import type { Random } from "../../platform/ids.ts";
import type { McpHandler } from "./mcp-server.ts";
import { BridgeSeat, type SeatOptions } from "./seat.ts";
import { answerWith, asWebRequest } from "./web.ts";

export interface BridgeOptions extends Omit<SeatOptions, "tools" | "holdMs"> {
  readonly random: Random;
}

/** A seat, and how its program gets to it. */
export interface SeatedAgent {
  readonly seat: BridgeSeat;
  readonly url: string;
  /** To be shown as `Authorization: Bearer`; no one else is told. */
  readonly token: string;
  /** The token is over, and all calls with it. */
  leave(): Promise<void>;
}

/** As the longest line of a program. */
const MAXIMUM_BODY_BYTES = 32 * 1024 * 1024;
const TOKEN_BYTES = 32;

export class McpBridge {
  readonly #options: BridgeOptions;
  /** By the digests of their tokens: what is looked up tells nothing of them by how long it takes. */
  readonly #seats = new Map<string, McpHandler>();
  #listening: Promise<Server> | null = null;

  constructor(options: BridgeOptions) {
    this.#options = options;
  }

  /** A seat for one agent with these tools, whose calls are held for so long. */
  async sit(tools: SeatOptions["tools"], holdMs: number): Promise<SeatedAgent> {
    // The protocol's library takes its time to load, which nobody pays who has no such program.
    const { mcpHandler } = await import("./mcp-server.ts");
    const { clock, driver, random } = this.#options;
    const token = Buffer.from(random.bytes(TOKEN_BYTES)).toString("base64url");
    const seat = new BridgeSeat({ clock, driver, tools, holdMs });
    const key = sha256(token);
    this.#seats.set(key, mcpHandler(seat, clock, MAXIMUM_BODY_BYTES));
    const leave = async (): Promise<void> => {
      if (!this.#seats.delete(key)) return;
      seat.endTurn();
      if (this.#seats.size > 0) return;
      const listening = this.#listening;
      this.#listening = null;
      await listening?.then(closed, () => undefined);
    };
    try {
      const server = await (this.#listening ??= this.#listen());
      const { port } = server.address() as AddressInfo;
      return { seat, token, leave, url: `http://${LOOPBACK}:${port}/mcp` };
    } catch (error) {
      this.#listening = null;
      await leave();
      throw error;
    }
  }

  async #listen(): Promise<Server> {
    const server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing));
    server.listen(0, LOOPBACK);
    await once(server, "listening");
    // It serves programs that somebody else keeps alive.
    server.unref();
    return server;
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { host, origin, authorization = "" } = incoming.headers;
    const { port } = incoming.socket.address() as AddressInfo;
    const names = [`${LOOPBACK}:${port}`, `localhost:${port}`];
    if (!names.includes(host ?? "")) return refuse(outgoing, 403, "this host is not served here");
    if (origin !== undefined && !names.some((name) => origin === `http://${name}`))
      return refuse(outgoing, 403, "this origin is not served here");
    const [, token = ""] = /^Bearer (.+)$/i.exec(authorization) ?? [];
    const handler = this.#seats.get(sha256(token));
    if (handler === undefined) return refuse(outgoing, 401, "no living agent has this token");
    try {
      await answerWith(outgoing, await handler(asWebRequest(incoming, outgoing)));
    } catch {
      // Whoever has asked is gone.
      outgoing.destroy();
    }
  }
}

const LOOPBACK = "127.0.0.1";

/** The same for a program that starts its servers: what it starts hands on to the endpoint what it is told. */
export function stdioServer({ url, token }: Pick<SeatedAgent, "url" | "token">) {
  const file = import.meta.url.endsWith(".ts") ? "stdio.ts" : "stdio.js";
  return {
    command: process.execPath,
    args: [fileURLToPath(new URL(file, import.meta.url))],
    env: { COPPICE_BRIDGE_URL: url, COPPICE_BRIDGE_TOKEN: token },
  };
}

function refuse(outgoing: ServerResponse, status: number, error: string): void {
  outgoing.writeHead(status, {
    "content-type": "application/json",
    connection: "close",
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  });
  outgoing.end(JSON.stringify({ error }));
}

async function closed(server: Server): Promise<void> {
  const gone = once(server, "close");
  server.close();
  server.closeAllConnections();
  await gone;
}
