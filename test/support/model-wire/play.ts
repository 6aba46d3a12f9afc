/** Sends a reply in a vendor's format, one write an event, so that clients see deltas as they were scripted. */
import type { ServerResponse } from "node:http";
import type { Reply, StreamReply, WireEvent, WireFormat } from "./reply.ts";

/** Resolves when all that is to be sent is with the client's socket, or the connection is gone. */
export async function play(outgoing: ServerResponse, format: WireFormat, reply: Reply): Promise<void> {
  if ("parts" in reply) {
    await stream(outgoing, format, reply);
    return;
  }
  const { status, message = "scripted failure", errorType = "scripted_error", headers = {} } = reply;
  outgoing.writeHead(status, { "content-type": "application/json", "x-request-id": "req_1", ...headers });
  outgoing.end(JSON.stringify(format.errorBody(message, errorType)));
}

async function stream(outgoing: ServerResponse, format: WireFormat, reply: StreamReply): Promise<void> {
  const { id = "1" } = reply;
  await reply.after;
  outgoing.writeHead(200, { "content-type": "text/event-stream", "x-request-id": `req_${id}` });
  outgoing.flushHeaders();
  for (const event of [...format.opening(id), ...format.parts(reply.parts, id)])
    await write(outgoing, frame(event));
  switch (reply.ending ?? "end") {
    case "end":
      for (const event of format.closing(reply, id)) await write(outgoing, frame(event));
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
