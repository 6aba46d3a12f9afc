/** The server over standard input and output, as clients start it. It ends with its input. */
import type { Readable, Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { mcpServer, type McpSurface } from "./server.ts";

/** As a request over HTTP, and the longest line of a program. */
const MAXIMUM_LINE_BYTES = 32 * 1024 * 1024;

export interface StdioStreams {
  readonly input: Readable;
  readonly output: Writable;
  /** What is no message, or cannot be said any more. */
  readonly onFault: (error: Error) => void;
}

/** Resolves when the client has gone, or the signal was raised. */
export async function serveMcpStdio(
  surface: McpSurface,
  { input, output, onFault }: StdioStreams,
  signal: AbortSignal,
): Promise<void> {
  const transport = new StdioServerTransport(input, output, { maxBufferSize: MAXIMUM_LINE_BYTES });
  const over = Promise.withResolvers<void>();
  const gone = (): void => over.resolve();
  const handle = serveStdio(() => mcpServer(surface), { transport, onerror: onFault });
  // The library has set its own, and closes what it serves with it.
  const closed = transport.onclose;
  transport.onclose = () => {
    closed?.();
    gone();
  };
  signal.addEventListener("abort", gone, { once: true });
  if (signal.aborted) gone();
  try {
    await over.promise;
  } finally {
    signal.removeEventListener("abort", gone);
    await handle.close();
  }
}
