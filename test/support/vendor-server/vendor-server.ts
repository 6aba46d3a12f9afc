/**
 * A vendor on loopback: one server that plays OpenAI's Responses, chat completions and Anthropic's Messages, told apart by the
 * path. Replies are taken from a queue, one a request; what came is recorded, so that tests hold what was sent against
 * what should be. Nothing here waits for time: a test holds a reply back with a promise, and learns of requests and of
 * closed connections by awaiting them.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { chatFormat } from "./chat-format.ts";
import { messagesFormat } from "./messages-format.ts";
import type { Reply, WireEvent, WireFormat } from "./reply.ts";
import { responsesFormat } from "./responses-format.ts";

const FORMATS: Readonly<Record<string, WireFormat>> = {
  "/v1/responses": responsesFormat,
  "/v1/chat/completions": chatFormat,
  "/v1/messages": messagesFormat,
};

/** A request as it came. */
export interface VendorRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  // The body is the vendor's; tests reach into it by name.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
  /** Resolves when all scripted events are with the client's socket, or the connection is gone. */
  readonly sent: Promise<void>;
  /** Resolves when the response is over: `done` by the server, or `gone` because the client closed the connection. */
  readonly closed: Promise<"done" | "gone">;
}

export interface VendorServer extends AsyncDisposable {
  /** What clients take as their address, version included. */
  readonly baseUrl: string;
  /** Every request so far. */
  readonly requests: readonly VendorRequest[];
  /** Adds replies to the queue. A request without one gets status 418. */
  reply(...replies: Reply[]): void;
  /** The next request that no earlier call was given. */
  next(): Promise<VendorRequest>;
}

export async function startVendorServer(): Promise<VendorServer> {
  const queue: Reply[] = [];
  const requests: VendorRequest[] = [];
  const waiting: ((request: VendorRequest) => void)[] = [];
  let given = 0;
  const server = createServer((incoming, outgoing) => {
    void serve(incoming, outgoing, queue, (request) => {
      requests.push(request);
      const waiter = waiting.shift();
      if (waiter !== undefined) {
        given += 1;
        waiter(request);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    reply: (...replies) => void queue.push(...replies),
    next() {
      const ready = requests[given];
      if (ready === undefined || waiting.length > 0) return new Promise((resolve) => waiting.push(resolve));
      given += 1;
      return Promise.resolve(ready);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  queue: Reply[],
  record: (request: VendorRequest) => void,
): Promise<void> {
  const path = new URL(incoming.url ?? "/", "http://loopback").pathname;
  const closed = Promise.withResolvers<"done" | "gone">();
  const sent = Promise.withResolvers<void>();
  outgoing.on("close", () => {
    closed.resolve(outgoing.writableFinished ? "done" : "gone");
    sent.resolve();
  });
  const body: unknown = JSON.parse(await text(incoming));
  record({ path, headers: incoming.headers, body, sent: sent.promise, closed: closed.promise });
  const format = FORMATS[path];
  const reply = queue.shift() ?? { status: 418, message: "the script has no reply for this request" };
  if (format === undefined) {
    outgoing.writeHead(404).end();
  } else if ("status" in reply) {
    const { status, message = "scripted failure", errorType = "scripted_error", headers = {} } = reply;
    outgoing.writeHead(status, { "content-type": "application/json", "x-request-id": "req_1", ...headers });
    outgoing.end(JSON.stringify(format.errorBody(message, errorType)));
  } else {
    await stream(outgoing, format, reply);
    sent.resolve();
  }
}

async function stream(
  outgoing: ServerResponse,
  format: WireFormat,
  reply: Extract<Reply, { parts: unknown }>,
): Promise<void> {
  await reply.after;
  outgoing.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "req_1" });
  outgoing.flushHeaders();
  // One write an event: clients see deltas as they were scripted.
  for (const event of [...format.opening(), ...format.parts(reply.parts)])
    await write(outgoing, frame(event));
  switch (reply.ending ?? "end") {
    case "end":
      for (const event of format.closing(reply)) await write(outgoing, frame(event));
      outgoing.end();
      return;
    case "error":
      await write(outgoing, frame(format.errorEvent()));
      outgoing.end();
      return;
    case "malformed":
      await write(outgoing, 'data: {"type": "response.\n\n');
      outgoing.end();
      return;
    case "short":
      outgoing.end();
      return;
    case "cut":
      outgoing.destroy();
      return;
    case "stall":
  }
}

function frame({ event, data }: WireEvent): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** Resolves when the bytes are with the socket, or when there is no socket any more. */
function write(outgoing: ServerResponse, bytes: string): Promise<void> {
  return new Promise((resolve) => {
    if (outgoing.destroyed) resolve();
    else outgoing.write(bytes, () => resolve());
  });
}
