/**
 * A model on loopback for real programs: it plays OpenAI's Responses, chat completions and Anthropic's Messages, told apart by
 * the path, and does what the script in the last prompt says (script.ts). It keeps nothing between two requests, so any
 * number of agents may use one server; what came, and what became of it, is recorded for the test to hold against what
 * should be.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { chatFormat } from "../model-wire/chat-format.ts";
import { Arrivals, closing, listen } from "../model-wire/loopback.ts";
import { messagesFormat } from "../model-wire/messages-format.ts";
import { play } from "../model-wire/play.ts";
import { type Reply, type ReplyPart, text as words, type WireFormat } from "../model-wire/reply.ts";
import { responsesFormat } from "../model-wire/responses-format.ts";
import {
  asksForTitle,
  callId,
  type Conversation,
  type Offered,
  readChat,
  readMessages,
  readResponses,
  type Said,
  whereItStands,
} from "./conversation.ts";
import { parseScript, type Step, stepAt, type StepPart } from "./script.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- the bodies are the vendors'
type Reader = (body: any) => Conversation;

const INTERFACES: Readonly<Record<string, { readonly format: WireFormat; readonly read: Reader }>> = {
  "/v1/responses": { format: responsesFormat, read: readResponses },
  "/v1/chat/completions": { format: chatFormat, read: readChat },
  "/v1/messages": { format: messagesFormat, read: readMessages },
};

/** A request for an answer of the model. */
export interface ModelRequest extends Conversation {
  readonly path: string;
  /** The key that the client has shown: give each its own to tell them apart. */
  readonly key: string;
  readonly headers: Readonly<Record<string, unknown>>;
  // oxlint-disable-next-line typescript/no-explicit-any -- the body is the vendor's
  readonly body: any;
  /** What the user said last. */
  readonly prompt: string;
  /** The step of the script that is played. */
  readonly step: number;
  /** Resolves when all that is to be said is with the client's socket, or the connection is gone. */
  readonly sent: Promise<void>;
  /** Resolves when the answer is over: `done`, or `gone` because the client closed the connection. */
  readonly closed: Promise<"done" | "gone">;
}

export interface ModelServerOptions {
  /** The script of a prompt without one; it says `ok` unless given. */
  readonly unscripted?: string;
}

export interface ModelServer extends AsyncDisposable {
  /** What Anthropic's clients take as their address. */
  readonly url: string;
  /** What OpenAI's clients take as theirs. */
  readonly openAiUrl: string;
  /** Every request for an answer so far. */
  readonly requests: readonly ModelRequest[];
  /** What else was asked for, as `GET /path`: titles of conversations were answered, all else is not found. */
  readonly others: readonly string[];
  /** The first request that matches and that no earlier call was given. */
  next(matches?: (request: ModelRequest) => boolean): Promise<ModelRequest>;
}

export async function startModelServer({
  unscripted = "@@TEXT ok@@",
}: ModelServerOptions = {}): Promise<ModelServer> {
  const arrivals = new Arrivals<ModelRequest>();
  const others: string[] = [];
  const loopback = await listen((incoming, outgoing) => {
    const path = new URL(incoming.url ?? "/", "http://loopback").pathname;
    if (incoming.method === "POST" && Object.hasOwn(INTERFACES, path)) {
      void serve({ path, incoming, outgoing, arrivals, others, unscripted });
      return;
    }
    others.push(`${incoming.method} ${path}`);
    outgoing.writeHead(404, { "content-type": "application/json" }).end("{}");
  });
  return {
    url: loopback.url,
    openAiUrl: `${loopback.url}/v1`,
    requests: arrivals.all,
    others,
    next: (matches) => arrivals.next(matches),
    [Symbol.asyncDispose]: () => loopback[Symbol.asyncDispose](),
  };
}

interface Call {
  readonly path: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly arrivals: Arrivals<ModelRequest>;
  readonly others: string[];
  readonly unscripted: string;
}

async function serve({ path, incoming, outgoing, arrivals, others, unscripted }: Call): Promise<void> {
  const { format, read } = INTERFACES[path]!;
  const closed = closing(outgoing);
  const sent = Promise.withResolvers<void>();
  void closed.then(() => sent.resolve());
  const body: unknown = JSON.parse(await text(incoming));
  const { said, tools } = read(body);
  if (asksForTitle(said)) {
    others.push(`POST ${path} for a title`);
    await play(outgoing, format, { parts: [words("A title")] });
    return;
  }
  const { prompt, step } = whereItStands(said);
  arrivals.add({
    path,
    key: keyOf(incoming),
    headers: incoming.headers,
    body,
    said,
    tools,
    prompt,
    step,
    sent: sent.promise,
    closed,
  });
  const number = arrivals.all.length;
  await play(outgoing, format, replyOf(prompt, unscripted, step, number, tools));
  sent.resolve();
}

/** The number names the answer: clients take two of one name for one. */
function replyOf(
  prompt: string,
  unscripted: string,
  step: number,
  number: number,
  tools: readonly Offered[],
): Reply {
  let playing: Step;
  try {
    playing = stepAt(parseScript(prompt) ?? parseScript(unscripted) ?? [], step);
  } catch (error) {
    return { status: 418, message: `the script makes no sense: ${String(error)}` };
  }
  if ("status" in playing) {
    const { status } = playing;
    return { status, message: `scripted failure ${status}`, errorType: ERROR_TYPES[status] ?? "api_error" };
  }
  const parts = playing.parts.map((part, at) => partOf(part, callId(step, number, at), tools));
  return { id: String(number), parts, ending: playing.ending };
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
  529: "overloaded_error",
};

/** A tool is called by the name under which it is offered here, whatever a provider puts before its own. */
function partOf(part: StepPart, id: string, tools: readonly Offered[]): ReplyPart {
  if (part.type !== "call") return part;
  const tool =
    tools.find((one) => fullName(one) === part.name) ??
    tools.find(({ name }) => name === part.name) ??
    tools.find(({ name }) => name.endsWith(`_${part.name}`)) ??
    // Some may be called without being offered.
    named(part.name);
  return { ...part, ...tool, id };
}

function named(full: string): Offered {
  const [, namespace, name] = /^([^.]+)\.(.+)$/.exec(full) ?? [];
  return namespace === undefined || name === undefined ? { name: full } : { name, namespace };
}

/** A tool by its namespace, where it has one, and its name. */
export function fullName({ name, namespace }: Offered): string {
  return namespace === undefined ? name : `${namespace}.${name}`;
}

function keyOf({ headers }: IncomingMessage): string {
  return String(headers["x-api-key"] ?? headers.authorization ?? "").replace(/^Bearer /, "");
}

/** Texts that the model was told in one role. */
export function toldBy(by: Said["by"], { said }: Conversation): string[] {
  return said.filter((one) => one.by === by).map(({ text }) => text);
}
