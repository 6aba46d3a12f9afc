/**
 * The bridge for programs that start their servers: reads messages from its standard input, hands each to the endpoint that its
 * environment names, and writes what comes back. It ends with its input.
 *
 * - I1 It knows no message: what the protocol wants in headers is taken out of the message as it stands.
 * - I2 Whoever is told that a call was cancelled hangs up on it.
 */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly requestId?: string | number;
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
}

const { COPPICE_BRIDGE_URL: url = "", COPPICE_BRIDGE_TOKEN: token = "" } = process.env;
const underWay = new Map<string | number, AbortController>();

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", (line) => {
  if (line.trim() !== "") void handOn(line);
});
lines.on("close", () => {
  for (const call of underWay.values()) call.abort();
});

async function handOn(line: string): Promise<void> {
  const message = parse(line);
  const { id, method, params } = message;
  if (method === "notifications/cancelled") underWay.get(params?.requestId ?? "")?.abort();
  const call = new AbortController();
  if (id !== undefined) underWay.set(id, call);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: headersOf(message),
      body: line,
      signal: call.signal,
    });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      for await (const data of eventsOf(response.body!)) say(data);
      return;
    }
    const text = await response.text();
    if (text !== "" && id !== undefined) say(response.ok || isMessage(text) ? text : fault(id, text));
  } catch (error) {
    if (id !== undefined && !call.signal.aborted) say(fault(id, String(error)));
  } finally {
    if (id !== undefined) underWay.delete(id);
  }
}

function headersOf({ method, params }: Message): Record<string, string> {
  const version = params?._meta?.["io.modelcontextprotocol/protocolVersion"];
  return {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(typeof version === "string" ? { "mcp-protocol-version": version, "mcp-method": method ?? "" } : {}),
    ...(typeof version === "string" && typeof params?.name === "string" ? { "mcp-name": params.name } : {}),
  };
}

/** Data of the events of a stream, as they come; comments and names are of no interest. */
async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const input = Readable.fromWeb(stream as Parameters<typeof Readable.fromWeb>[0]);
  let data: string[] = [];
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (line.startsWith("data:")) data.push(line.slice("data:".length).trim());
    else if (line === "" && data.join("") !== "") {
      yield data.join("\n");
      data = [];
    }
  }
  if (data.join("") !== "") yield data.join("\n");
}

function parse(line: string): Message {
  try {
    return JSON.parse(line) as Message;
  } catch {
    // The endpoint says what is wrong with it.
    return {};
  }
}

function isMessage(text: string): boolean {
  return parse(text) !== null && "jsonrpc" in parse(text);
}

function fault(id: string | number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_603, message } });
}

function say(message: string): void {
  process.stdout.write(`${message.replaceAll("\n", " ")}\n`);
}
