/**
 * A seat in the words of the Model Context Protocol, of both its revisions. Nothing is kept between two requests, so that
 * whoever shows the token of an agent is answered, over whatever connection (SEC-1).
 */
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import type { Clock } from "../../platform/clock.ts";
import { every } from "../../platform/every.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { ToolSpec } from "../../protocol/tool.ts";
import { type BridgeSeat, SERVER_NAME, type ToolAnswer } from "./seat.ts";

export type McpHandler = (request: Request) => Promise<Response>;

/** Milliseconds between two notifications to a program that asked for progress, so that it does not give up on a call. */
export const PROGRESS_MS = 5_000;

/** `maximumBytes` bounds the body of a request. */
export function mcpHandler(seat: BridgeSeat, clock: Clock, maximumBytes: number): McpHandler {
  const serve = ({ requestInfo }: { readonly requestInfo?: Request }): Server => {
    const server = new Server(
      { name: SERVER_NAME, version: "1" },
      { capabilities: { tools: {} }, instructions: "Work with other agents, and tools of the host." },
    );
    server.setRequestHandler("tools/list", () => ({ tools: seat.tools.map(toTool) }));
    server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
      const { name, arguments: given = {} } = params;
      const progressToken = mcpReq._meta?.progressToken;
      using _progress =
        progressToken === undefined
          ? null
          : every(clock, PROGRESS_MS, (progress) => {
              const params = { progressToken, progress, message: `${name} goes on` };
              return mcpReq.notify({ method: "notifications/progress", params });
            });
      const signals = [mcpReq.signal, ...(requestInfo === undefined ? [] : [requestInfo.signal])];
      const answer = await seat.call(
        { name, input: JSON.stringify(given), key: keyOf(mcpReq._meta) },
        AbortSignal.any(signals),
      );
      return toResult(answer);
    });
    return server;
  };
  const { fetch } = createMcpHandler(serve, { maxRequestBodySize: maximumBytes, keepAliveMs: 0 });
  return fetch;
}

/** Names of a call that programs send along, from the one that says most. */
const KEYS = ["callId", "claudecode/toolUseId", "progressToken"] as const;

function keyOf(meta: Readonly<Record<string, unknown>> | undefined): string | null {
  for (const name of KEYS) {
    const value = meta?.[name];
    if (typeof value === "string" || typeof value === "number") return `${name}:${value}`;
  }
  return null;
}

function toTool({ name, description, parameters, title, hints }: ToolSpec) {
  return {
    name,
    description,
    inputSchema: parameters as JsonObject & { type: "object" },
    ...(title === undefined ? {} : { title }),
    ...(hints === undefined
      ? {}
      : {
          annotations: {
            readOnlyHint: hints.readOnly,
            destructiveHint: hints.destructive,
            idempotentHint: hints.idempotent,
            openWorldHint: hints.openWorld,
          },
        }),
  };
}

function toResult({ output, isError }: ToolAnswer) {
  const text = typeof output === "string" ? output : JSON.stringify(output);
  const structured =
    typeof output === "object" && output !== null && !Array.isArray(output)
      ? { structuredContent: output as Record<string, unknown> }
      : {};
  return { content: [{ type: "text" as const, text }], ...structured, isError };
}
