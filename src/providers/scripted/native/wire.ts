/**
 * What the six providers understand in their own words: calls with native ids, each inclusive or exclusive as that provider
 * means it. Translators make them; a test reads what was sent.
 */
import { RejectedError } from "../../../protocol/errors.ts";
import type { JsonObject } from "../../../protocol/json.ts";
import type { Conversation, ConversationItem, NativeConversations } from "./conversations.ts";

/** A native call that a fork or a rollback became. */
export interface WireCall {
  readonly method: WireMethod;
  readonly params: JsonObject;
}

type Handler = (server: Server, params: JsonObject) => Conversation;

interface Server {
  readonly driver: string;
  readonly conversations: NativeConversations;
  readonly history: Conversation["history"];
}

const METHODS = {
  "thread/start": start,
  "thread/read": (server, { threadId }) => conversationOf(server, threadId),
  "thread/fork": (server, { threadId, lastTurnId, beforeTurnId }) => {
    const source = conversationOf(server, threadId);
    if (lastTurnId !== undefined) return fork(server, source, itemsUpToTurn(source, lastTurnId), false);
    if (beforeTurnId !== undefined) return fork(server, source, itemsBeforeTurn(source, beforeTurnId), false);
    return fork(server, source, source.items.length, false);
  },
  "thread/rollback": (server, { threadId, numTurns }) => {
    const thread = conversationOf(server, threadId);
    if (thread.history !== "legacy") throw refused("thread/rollback wants a thread of legacy history");
    const first = thread.turns[thread.turns.length - Number(numTurns)];
    return first === undefined ? cut(thread, 0) : cut(thread, itemsBeforeTurn(thread, first.id));
  },
  "thread/revert": (server, { threadId, beforeTurnId }) => {
    const thread = conversationOf(server, threadId);
    if (thread.history !== "paginated") throw refused("thread/revert wants a thread of paginated history");
    return cut(thread, itemsBeforeTurn(thread, beforeTurnId));
  },
  query: (server, { resume, resumeSessionAt }) => {
    if (resume === undefined) return start(server);
    const thread = conversationOf(server, resume);
    return resumeSessionAt === undefined ? thread : cut(thread, itemAt(thread, resumeSessionAt) + 1);
  },
  getSessionMessages: (server, { sessionId }) => conversationOf(server, sessionId),
  forkSession: (server, { sessionId, upToMessageId }) => {
    const source = conversationOf(server, sessionId);
    const kept = upToMessageId === undefined ? source.items.length : itemAt(source, upToMessageId) + 1;
    return fork(server, source, kept, true);
  },
  "POST /session": start,
  "GET /session/message": (server, { id }) => conversationOf(server, id),
  "POST /session/fork": (server, { id, messageID }) => {
    const source = conversationOf(server, id);
    const kept = messageID === undefined ? source.items.length : itemAt(source, messageID);
    return fork(server, source, kept, true);
  },
  "POST /session/revert": (server, { id, messageID }) => {
    const thread = conversationOf(server, id);
    return cut(thread, itemAt(thread, messageID));
  },
  "session/new": start,
  "session/fork": (server, { sessionId }) => {
    const source = conversationOf(server, sessionId);
    return fork(server, source, source.items.length, true);
  },
} as const satisfies Record<string, Handler>;

export type WireMethod = keyof typeof METHODS;

export class Wire {
  readonly sent: WireCall[] = [];
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  call(method: WireMethod, params: JsonObject = {}): Conversation {
    this.sent.push({ method, params });
    return (METHODS[method] as Handler)(this.#server, params);
  }
}

function start({ conversations, driver, history }: Server): Conversation {
  return conversations.create(driver, history, null);
}

function conversationOf({ conversations, driver }: Server, id: unknown): Conversation {
  const found = conversations.find(driver, String(id));
  if (found === undefined || found.lost) throw refused(`there is no conversation ${String(id)}`);
  return found;
}

function itemAt(conversation: Conversation, id: unknown): number {
  const at = conversation.items.findIndex((item) => item.id === id);
  if (at < 0) throw refused(`${conversation.id} has no message ${String(id)}`);
  return at;
}

function itemsUpToTurn(conversation: Conversation, id: unknown): number {
  itemsBeforeTurn(conversation, id);
  return conversation.items.findLastIndex((item) => item.turn === id) + 1;
}

function itemsBeforeTurn(conversation: Conversation, id: unknown): number {
  const at = conversation.items.findIndex((item) => item.turn === id);
  if (at < 0) throw refused(`${conversation.id} has no turn ${String(id)}`);
  return at;
}

function cut(conversation: Conversation, kept: number): Conversation {
  conversation.items = conversation.items.slice(0, kept);
  const left = new Set(conversation.items.map((item) => item.turn));
  conversation.turns = conversation.turns.filter((turn) => left.has(turn.id));
  return conversation;
}

/** The source stays as it is; a turn under way is there as one that was interrupted. */
function fork(server: Server, source: Conversation, kept: number, freshIds: boolean): Conversation {
  const { conversations } = server;
  const made = conversations.create(source.driver, source.history, source.id);
  made.items = source.items
    .slice(0, kept)
    .map((item): ConversationItem => ({ ...item, ...(freshIds && { id: conversations.mint("message") }) }));
  const left = new Set(made.items.map((item) => item.turn));
  made.turns = source.turns
    .filter((turn) => left.has(turn.id))
    .map((turn) => ({ ...turn, status: turn.status === "running" ? "interrupted" : turn.status }));
  return made;
}

function refused(why: string): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", `The scripted provider refused the call: ${why}.`, {});
}
