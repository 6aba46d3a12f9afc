/**
 * A vendor on loopback: one server that plays OpenAI's Responses, chat completions and Anthropic's Messages, told apart by the
 * path. Replies are taken from a queue, one a request; what came is recorded, so that tests hold what was sent against
 * what should be. Nothing here waits for time: a test holds a reply back with a promise, and learns of requests and of
 * closed connections by awaiting them.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { chatFormat } from "../model-wire/chat-format.ts";
import { Arrivals, closing, listen } from "../model-wire/loopback.ts";
import { messagesFormat } from "../model-wire/messages-format.ts";
import { play } from "../model-wire/play.ts";
import type { Reply, WireFormat } from "../model-wire/reply.ts";
import { responsesFormat } from "../model-wire/responses-format.ts";

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
  const arrivals = new Arrivals<VendorRequest>();
  const loopback = await listen((incoming, outgoing) => void serve(incoming, outgoing, queue, arrivals));
  return {
    baseUrl: `${loopback.url}/v1`,
    requests: arrivals.all,
    reply: (...replies) => void queue.push(...replies),
    next: () => arrivals.next(),
    [Symbol.asyncDispose]: () => loopback[Symbol.asyncDispose](),
  };
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  queue: Reply[],
  arrivals: Arrivals<VendorRequest>,
): Promise<void> {
  const path = new URL(incoming.url ?? "/", "http://loopback").pathname;
  const closed = closing(outgoing);
  const sent = Promise.withResolvers<void>();
  void closed.then(() => sent.resolve());
  const body: unknown = JSON.parse(await text(incoming));
  arrivals.add({ path, headers: incoming.headers, body, sent: sent.promise, closed });
  const format = FORMATS[path];
  const reply = queue.shift() ?? { status: 418, message: "the script has no reply for this request" };
  if (format === undefined) {
    outgoing.writeHead(404).end();
    return;
  }
  await play(outgoing, format, reply);
  sent.resolve();
}
