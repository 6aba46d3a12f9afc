/** Messages of JSON-RPC as they come in a line, with or without the member that names the version, and its errors. */
import { z } from "zod";
import { clip } from "../platform/check.ts";
import { redact } from "../platform/redact.ts";
import { headBytes } from "../platform/text.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";

export type Message =
  | { readonly kind: "notification"; readonly method: string; readonly params: Json }
  | { readonly kind: "request"; readonly id: string | number; readonly method: string; readonly params: Json }
  | { readonly kind: "result"; readonly id: string | number | null; readonly result: Json }
  | ErrorMessage;

interface ErrorMessage {
  readonly kind: "error";
  readonly id: string | number | null;
  readonly code: number;
  readonly message: string;
  readonly data: Json;
}

const id = z.union([z.string(), z.number()]);
/** What was parsed from JSON is JSON: nothing is looked at but whether it is there. */
const json = z.custom<Json>((value) => value !== undefined);
const call = { method: z.string(), params: json.default(null) };
const messageSchema = z.union([
  z
    .object({ id: z.undefined().optional(), ...call })
    .transform(({ method, params }) => ({ kind: "notification", method, params }) as const),
  z.object({ id, ...call }).transform((one) => ({ kind: "request", ...one }) as const),
  z
    .object({
      id: id.nullable(),
      error: z.object({ code: z.number(), message: z.string(), data: json.default(null) }),
    })
    .transform((one) => ({ kind: "error", id: one.id, ...one.error }) as const),
  z
    .object({ id: id.nullable(), error: z.null().optional(), result: json })
    .transform((one) => ({ kind: "result", id: one.id, result: one.result }) as const),
]);

/** @throws RejectedError `PROVIDER_PROTOCOL` for a line that is no message. */
export function parseMessage(name: string, line: string): Message {
  const parsed = messageSchema.safeParse(parseJson(line));
  if (parsed.success) return parsed.data;
  const came = clip(redact(headBytes(line, SHOWN_BYTES)));
  throw new RejectedError("PROVIDER_PROTOCOL", `${name} said what is no message: ${came}`, { came });
}

/** So much is looked at to show what came, however long it is. */
const SHOWN_BYTES = 1000;
const LONGEST_TEXT = 500;

/** Undefined is no message either. */
function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** A program that does not know a method is of another version than its adapter. */
const UNKNOWN_METHOD = -32601;

/** The other side's answer was an error. An adapter that knows what it means throws something better. */
export class JsonRpcRefusal extends RejectedError {
  readonly rpcCode: number;
  /** What came with it, as it came. */
  readonly data: Json;

  constructor(name: string, method: string, { code, message, data }: Omit<ErrorMessage, "kind" | "id">) {
    const said = headBytes(redact(message), LONGEST_TEXT);
    super("PROVIDER_REFUSED", `${name} refused ${method}: ${said}`, {
      method,
      rpcCode: code,
      ...(code === UNKNOWN_METHOD && { reason: "version_unsupported" }),
    });
    this.rpcCode = code;
    this.data = data;
  }
}

/** An error that is the answer to a request of the other side's. */
export class JsonRpcFault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "JsonRpcFault";
    this.code = code;
  }

  static unknownMethod(method: string): JsonRpcFault {
    return new JsonRpcFault(UNKNOWN_METHOD, `Method not found: ${method}`);
  }
}
