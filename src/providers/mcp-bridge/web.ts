/** Requests and answers of Node's HTTP as those of the Web, which the protocol's library takes. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Its signal is aborted when the client has gone before it was answered. */
export function asWebRequest(incoming: IncomingMessage, outgoing: ServerResponse): Request {
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableEnded) gone.abort();
  });
  const { method = "GET", url = "/" } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  const body =
    method === "GET" || method === "HEAD"
      ? {}
      : { body: Readable.toWeb(incoming) as ReadableStream<Uint8Array>, duplex: "half" as const };
  return new Request(new URL(url, `http://${incoming.headers.host}`), {
    method,
    headers,
    signal: gone.signal,
    ...body,
  });
}

/** Resolves when all of it is said. @throws what broke it off. */
export async function answerWith(
  outgoing: ServerResponse,
  { status, headers, body }: Response,
): Promise<void> {
  outgoing.writeHead(status, Object.fromEntries(headers));
  if (body === null) outgoing.end();
  else await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), outgoing);
}
