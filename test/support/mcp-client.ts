/** Clients of the Model Context Protocol at a server of ours: its own library over two streams of this process, and lines by hand. */
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { Client, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import type { McpSurface } from "../../src/mcp/server.ts";
import { serveMcpStdio } from "../../src/mcp/stdio.ts";

/** Both of the protocol's ways to begin. */
export type Revision = "2025" | "2026";

/** A server over streams of this process. */
export interface ServedHere extends AsyncDisposable {
  /** What the client writes. */
  readonly input: PassThrough;
  /** What the server has said, a message each. */
  readonly said: unknown[];
  readonly faults: Error[];
  /** Resolves when the server has ended. */
  readonly ended: Promise<void>;
  connect(revision: Revision): Promise<Client>;
}

export function serveHere(surface: McpSurface): ServedHere {
  const input = new PassThrough();
  const output = new PassThrough();
  const faults: Error[] = [];
  const said: unknown[] = [];
  const stop = new AbortController();
  let hear: ((message: JSONRPCMessage) => void) | undefined;
  createInterface({ input: output }).on("line", (line) => {
    const message = JSON.parse(line) as JSONRPCMessage;
    said.push(message);
    hear?.(message);
  });
  const onFault = (error: Error): void => void faults.push(error);
  const ended = serveMcpStdio(surface, { input, output, onFault }, stop.signal);
  return {
    input,
    said,
    faults,
    ended,
    async connect(revision) {
      const transport: Transport = {
        start: async () => {
          hear = (message) => transport.onmessage?.(message);
        },
        send: async (message) => void input.write(`${JSON.stringify(message)}\n`),
        close: async () => {
          input.end();
          transport.onclose?.();
        },
      };
      const client = new Client(
        { name: "test", version: "1" },
        revision === "2026" ? { versionNegotiation: { mode: "auto" } } : {},
      );
      await client.connect(transport);
      return client;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}
