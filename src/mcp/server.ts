/**
 * A tree in the words of the Model Context Protocol: tools, resources and progress, for clients of every revision that the
 * protocol's library serves. One server a connection; all of them serve the same tree.
 *
 * - P1 A client that asked for progress is told that its call goes on, so that it does not give up on a wait.
 * - P2 What a call asks for goes on when the client has gone (HDR-4).
 */
import { Server } from "@modelcontextprotocol/server";
import type { JsonObject } from "../protocol/json.ts";
import type { Clock } from "../platform/clock.ts";
import { every } from "../platform/every.ts";
import type { HostTool } from "../tools/host-tools.ts";
import { answerMcpCall, toMcpTools } from "../tools/bindings/mcp.ts";
import { callIdOf } from "./call-id.ts";
import { AGENT_INSTRUCTIONS, ROOT_INSTRUCTIONS } from "./instructions.ts";
import { listResources, listTemplates, readResource, type ResourceSource } from "./resources.ts";

export interface McpSurface extends ResourceSource {
  readonly version: string;
  /** The client is the root; else it is one agent of a tree, by its token, and sees no more than its tools show (SEC-1). */
  readonly isRoot: boolean;
  readonly tools: readonly HostTool[];
  readonly clock: Clock;
  /** How what it waits for stands, in a line. */
  readonly progress: () => Promise<string>;
}

/** Milliseconds between two notifications: clients give up after half a minute and more without one. */
export const PROGRESS_MS = 5_000;

export function mcpServer(surface: McpSurface): Server {
  const server = new Server(
    { name: "coppice", title: "Coppice", version: surface.version },
    surface.isRoot
      ? { capabilities: { tools: {}, resources: {} }, instructions: ROOT_INSTRUCTIONS }
      : { capabilities: { tools: {} }, instructions: AGENT_INSTRUCTIONS },
  );
  const tools = toMcpTools(surface.tools).map((tool) => ({
    ...tool,
    inputSchema: tool.inputSchema as JsonObject & { type: "object" },
  }));
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const callId = callIdOf(mcpReq._meta);
    const progressToken = mcpReq._meta?.progressToken;
    using _progress =
      progressToken === undefined
        ? null
        : every(surface.clock, PROGRESS_MS, async (progress, over) => {
            const params = { progressToken, progress, message: await surface.progress() };
            over.throwIfAborted();
            await mcpReq.notify({ method: "notifications/progress", params });
          });
    const answer = await answerMcpCall(surface.tools, params, {
      signal: mcpReq.signal,
      ...(callId === undefined ? {} : { callId }),
    });
    return { ...answer, content: [...answer.content] };
  });
  if (!surface.isRoot) return server;
  server.setRequestHandler("resources/list", () => ({ resources: listResources() }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: listTemplates() }));
  server.setRequestHandler("resources/read", ({ params }) => readResource(surface, params.uri));
  return server;
}
