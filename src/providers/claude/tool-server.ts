/**
 * Our tools for one session, as a server of the Model Context Protocol that lives in this process: the SDK takes any object
 * that speaks it. Whose calls they are stands in whom it was made for, and not in what the model writes.
 */
import { z } from "zod";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { NativeAnswer } from "../../protocol/native-events.ts";
import type { ToolSpec } from "../../protocol/tool.ts";
import { JsonRpcFault } from "../json-rpc-message.ts";

/** The model sees `mcp__coppice__<name>`. */
export const TOOL_SERVER = "coppice";
export const TOOL_PREFIX = `mcp__${TOOL_SERVER}__`;

export interface ToolCall {
  readonly callId: string;
  readonly name: string;
  readonly input: string;
}

/** The SDK's end of the connection. */
interface Transport {
  onmessage?: (message: unknown) => void;
  start(): Promise<void>;
  send(message: object): Promise<void>;
}

const id = z.union([z.string(), z.number()]);
const message = z.object({
  id: id.optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
});
const initialize = z.object({ protocolVersion: z.string() });
const call = z.object({
  name: z.string(),
  arguments: z.unknown().optional(),
  _meta: z.object({ "claudecode/toolUseId": z.string().optional() }).optional(),
});

export class ClaudeToolServer {
  readonly #tools: readonly ToolSpec[];
  readonly #called: (call: ToolCall) => Promise<NativeAnswer>;

  constructor(tools: readonly ToolSpec[], called: (call: ToolCall) => Promise<NativeAnswer>) {
    this.#tools = tools;
    this.#called = called;
  }

  async connect(transport: Transport): Promise<void> {
    transport.onmessage = (given) => void this.#heard(transport, given);
    await transport.start();
  }

  async close(): Promise<void> {}

  async #heard(transport: Transport, given: unknown): Promise<void> {
    const parsed = message.safeParse(given);
    // Notifications want nothing; a call that is cancelled ends with its turn.
    if (!parsed.success || parsed.data.id === undefined || parsed.data.method === undefined) return;
    const answer = { jsonrpc: "2.0", id: parsed.data.id };
    try {
      const result = await this.#answer(parsed.data.method, parsed.data.params);
      await transport.send({ ...answer, result });
    } catch (error) {
      const { code, message: text } =
        error instanceof JsonRpcFault ? error : new JsonRpcFault(-32603, "the call has failed");
      // Nobody is there to be told any more.
      await transport.send({ ...answer, error: { code, message: text } }).catch(() => undefined);
    }
  }

  async #answer(method: string, params: unknown): Promise<JsonObject> {
    switch (method) {
      case "initialize": {
        const { protocolVersion } = parse(initialize, params);
        const serverInfo = { name: TOOL_SERVER, version: "1" };
        return { protocolVersion, capabilities: { tools: {} }, serverInfo };
      }
      case "ping":
        return {};
      case "tools/list":
        return { tools: this.#tools.map(listed) };
      case "tools/call": {
        const { name, arguments: input = {}, _meta } = parse(call, params);
        const callId = _meta?.["claudecode/toolUseId"];
        // It would wait for a call that is never heard of.
        if (callId === undefined)
          throw new JsonRpcFault(-32602, "this call does not say which one it is; a newer Claude Code does");
        return resultOf(await this.#called({ callId, name, input: JSON.stringify(input) }));
      }
      default:
        throw JsonRpcFault.unknownMethod(method);
    }
  }
}

function listed({ name, description, parameters }: ToolSpec): Json {
  return { name, description, inputSchema: parameters };
}

function resultOf(answer: NativeAnswer): JsonObject {
  if (answer.kind !== "tool") return { content: [{ type: "text", text: "cancelled" }], isError: true };
  const { output, isError } = answer;
  const text = typeof output === "string" ? output : JSON.stringify(output);
  return { content: [{ type: "text", text }], isError };
}

function parse<T>(schema: z.ZodType<T>, params: unknown): T {
  const parsed = schema.safeParse(params);
  if (parsed.success) return parsed.data;
  throw new JsonRpcFault(-32602, "invalid params");
}
