/**
 * A server like OpenCode's, as a program of its own: `node opencode-server.mjs OPTIONS serve …`, with options as JSON. A turn does what
 * its prompt says between `<<` and `>>`, as JSON. It keeps its conversations in the folder OPENCODE_STORE, and tells what it was
 * asked in the file OPENCODE_LOG.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const options = JSON.parse(process.argv[2] ?? "{}");
const {
  OPENCODE_STORE: folder = "",
  OPENCODE_LOG: log = "",
  OPENCODE_SERVER_PASSWORD: password,
} = process.env;
const key = `Basic ${Buffer.from(`opencode:${password}`).toString("base64")}`;

/** Who hears of what happens. @type {Set<import("node:http").ServerResponse>} */
const streams = new Set();
const emit = (/** @type {string} */ type, /** @type {object} */ properties) => {
  for (const stream of streams)
    stream.write(`data: ${JSON.stringify({ payload: { type, properties } })}\n\n`);
};

const note = (/** @type {object} */ asked) => {
  if (log !== "") appendFileSync(log, `${JSON.stringify(asked)}\n`);
};

/** Servers of tools, by name. @type {Map<string, any>} */
const servers = new Map();
/** Who stops the turn, by conversation. @type {Map<string, () => void>} */
const turns = new Map();
/** Who waits for an answer, by request. @type {Map<string, { sessionID: string, resolve: (answer: any) => void }>} */
const asked = new Map();
let number = 0;
const NO = { name: "UnknownError", data: { message: "no" } };

const file = (/** @type {string} */ id) => `${folder}/${id}.json`;
const read = (/** @type {string} */ id) => {
  if (!existsSync(file(id)))
    throw { status: 404, body: { name: "NotFoundError", data: { message: "no session" } } };
  return JSON.parse(readFileSync(file(id), "utf8"));
};
const write = (/** @type {any} */ session) => {
  writeFileSync(file(session.id), JSON.stringify(session));
  return session;
};
const created = (/** @type {object} */ more) =>
  write({ id: `ses_${process.pid}_${(number += 1)}`, messages: [], permission: [], ...more });
/** Names sort by their age, as those that it is given do. */
const messageId = () =>
  `msg_${((BigInt(Date.now()) << 12n) + BigInt((number += 1))).toString(16).slice(-12)}x`;

/** Says a message, and keeps it. */
const put = (/** @type {string} */ sessionID, /** @type {any} */ info, /** @type {any[]} */ parts = []) => {
  const session = read(sessionID);
  const known = session.messages.find((/** @type {any} */ one) => one.info.id === info.id);
  if (known === undefined) session.messages.push({ info, parts });
  else Object.assign(known, { info, parts: [...known.parts, ...parts] });
  write(session);
  emit("message.updated", { sessionID, info });
  for (const part of parts) emit("message.part.updated", { sessionID, part });
};

/** @type {Record<string, (id: string, body: any, extra: string) => any>} */
const routes = {
  "GET /global/health": () => ({ version: "1" }),
  "GET /config": () => ({ model: "mock/default" }),
  "POST /global/dispose": () => true,
  "GET /session/status": () => Object.fromEntries([...turns.keys()].map((id) => [id, { type: "busy" }])),
  "POST /mcp": (_id, { name, config }) => {
    servers.set(name, config);
    return { [name]: options.mcp ?? { status: "connected" } };
  },
  "POST /mcp/:id/disconnect": (name) => servers.delete(name),
  "POST /session": (_id, { permission }) => created({ permission }),
  "GET /session/:id": (id) => read(id),
  "PATCH /session/:id": (id, { permission }) => {
    const session = read(id);
    return write({ ...session, permission: [...session.permission, ...permission] });
  },
  "GET /session/:id/message": (id) =>
    read(id).messages.toSorted((/** @type {any} */ one, /** @type {any} */ other) =>
      one.info.id < other.info.id ? -1 : 1,
    ),
  "DELETE /session/:id/message/:extra": (id, _body, extra) => {
    const session = read(id);
    write({
      ...session,
      messages: session.messages.filter((/** @type {any} */ one) => one.info.id !== extra),
    });
    return true;
  },
  "POST /session/:id/fork": (id, { messageID }) => {
    const { messages } = read(id);
    const at = messages.findIndex((/** @type {any} */ one) => one.info.id === messageID);
    const names = new Map(messages.map((/** @type {any} */ one) => [one.info.id, messageId()]));
    const copied = (at < 0 ? messages : messages.slice(0, at)).map((/** @type {any} */ { info, parts }) => ({
      info: { ...info, id: names.get(info.id) },
      parts,
    }));
    return created({ messages: copied });
  },
  "POST /session/:id/abort": (id) => {
    turns.get(id)?.();
    return true;
  },
  "POST /session/:id/prompt_async": async (id, body) => {
    read(id);
    if (options.ignores) return null;
    if (options.refuses === "early") {
      emit("session.error", { sessionID: id, error: NO });
      // Answered when that is known to have been heard.
      const answer = new Promise((resolve) => asked.set("early", { sessionID: id, resolve }));
      emit("question.asked", { sessionID: id, id: "early", questions: [{ question: "Heard?" }] });
      await answer;
      return null;
    }
    void prompt(id, body);
    return null;
  },
  "POST /permission/:id/reply": (id, body) => answered(id, body, "permission.replied"),
  "POST /question/:id/reply": (id, body) => answered(id, body, "question.replied"),
  "POST /question/:id/reject": (id, body) => answered(id, body, "question.rejected"),
};

function answered(/** @type {string} */ id, /** @type {any} */ body, /** @type {string} */ event) {
  const [status = 200] = options.replies?.splice(0, 1) ?? [];
  if (status !== 200) throw { status, body: {} };
  const waiting = asked.get(id);
  if (waiting === undefined) throw { status: 404, body: { _tag: "NotFound" } };
  asked.delete(id);
  emit(event, { sessionID: waiting.sessionID, requestID: id });
  waiting.resolve(body);
  return true;
}

/** For one that begins with a turn only when it is told. @type {Promise<void>} */
const toldToBegin = new Promise((resolve) => process.on("SIGUSR2", () => resolve()));

async function prompt(/** @type {string} */ sessionID, /** @type {any} */ { messageID, parts }) {
  if (options.refuses) return emit("session.error", { sessionID, error: NO });
  const text = parts.map((/** @type {any} */ part) => part.text).join("\n");
  const [, script] = /<<([\s\S]*)>>/.exec(text) ?? [];
  const steps = script === undefined ? (options.turn ?? [{ say: "ok" }]) : JSON.parse(script);
  const mine = parts.map((/** @type {any} */ part) => ({ id: `prt_${(number += 1)}`, messageID, ...part }));
  put(sessionID, { id: messageID, role: "user", time: {} }, mine);
  if (options.waits) await toldToBegin;
  note({ request: "beginning of a turn", id: sessionID });
  /** @type {Promise<string>} */
  const stopped = new Promise((resolve) => turns.set(sessionID, () => resolve("stopped")));
  emit("session.status", { sessionID, status: { type: "busy" } });
  const info = { id: messageId(), role: "assistant", time: {}, parentID: messageID };
  let ending = { finish: "stop" };
  const open = steps[0]?.nothing !== true;
  if (open) put(sessionID, info);
  let result = "";
  for (const step of steps) {
    const part = { id: `prt_${(number += 1)}`, messageID: info.id };
    if (step.say !== undefined) say(sessionID, part, "text", step);
    if (step.think !== undefined) say(sessionID, part, "reasoning", step);
    if (step.part !== undefined) put(sessionID, info, [{ ...part, ...step.part }]);
    if (step.event !== undefined) emit(step.event.type, { sessionID, ...step.event.of });
    if (step.ask !== undefined) {
      const id = `req_${(number += 1)}`;
      const answer = new Promise((resolve) => asked.set(id, { sessionID, resolve }));
      emit(step.ask, {
        sessionID,
        id,
        permission: "bash",
        patterns: ["ls"],
        metadata: { command: "ls" },
        ...step.of,
      });
      result = JSON.stringify(await Promise.race([answer, stopped]));
      asked.delete(id);
    }
    if (step.call !== undefined) result = await call([...servers.values()].at(-1), step);
    if (step.tell) say(sessionID, part, "text", { say: result });
    if (step.raw !== undefined) for (const stream of streams) stream.write(step.raw);
    if (step.exit !== undefined) process.exit(step.exit);
    if (step.usage !== undefined)
      put(sessionID, info, [{ ...part, type: "step-finish", tokens: step.usage }]);
    if (step.hold) {
      await stopped;
      // Told twice, before it has stopped and after.
      emit("session.status", { sessionID, status: { type: "idle" } });
      ending = /** @type {any} */ (step.bare ? {} : { error: { name: "MessageAbortedError", data: {} } });
      break;
    }
    if (step.fail !== undefined) ending = /** @type {any} */ ({ error: step.fail });
  }
  if (open) put(sessionID, { ...info, ...ending, time: { completed: 1 } });
  else emit("session.error", { sessionID, error: steps[0].fail });
  turns.delete(sessionID);
  emit("session.status", { sessionID, status: { type: "idle" } });
}

function say(
  /** @type {string} */ sessionID,
  /** @type {object} */ part,
  /** @type {string} */ type,
  /** @type {any} */ { say: text, think, open },
) {
  const whole = { ...part, type, text: text ?? think };
  const messageID = /** @type {any} */ (part).messageID;
  const partID = /** @type {any} */ (part).id;
  emit("message.part.updated", { sessionID, part: { ...whole, text: "", time: {} } });
  emit("message.part.delta", { sessionID, messageID, partID, field: "text", delta: text ?? think });
  if (open) return;
  const session = read(sessionID);
  session.messages.at(-1).parts.push({ ...whole, time: { end: 1 } });
  write(session);
  emit("message.part.updated", { sessionID, part: { ...whole, time: { end: 1 } } });
}

/** Calls a tool of the server that it was given; resolves with the text of its result. */
async function call(/** @type {any} */ { url, headers }, /** @type {any} */ { call: name, input = {} }) {
  const params = { name, arguments: input };
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: (number += 1), method: "tools/call", params }),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
  });
  const text = await response.text();
  const answer = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  return answer.error?.message ?? answer.result.content[0].text;
}

const server = createServer(async (incoming, outgoing) => {
  const { pathname } = new URL(incoming.url ?? "/", "http://fake");
  if (password !== undefined && incoming.headers.authorization !== key) return outgoing.writeHead(401).end();
  if (pathname === "/global/event") {
    note({ request: "GET /global/event" });
    if (options.answers?.["GET /global/event"]?.silent) return;
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    outgoing.write('data: {"payload":{"type":"server.connected","properties":{}}}\n\n');
    streams.add(outgoing);
    return outgoing.on("close", () => {
      streams.delete(outgoing);
      note({ request: "end of events" });
    });
  }
  let said = "";
  for await (const chunk of incoming) said += chunk;
  const body = said === "" ? {} : JSON.parse(said);
  const [, head = "", id = "", tail = "", extra = ""] =
    /^\/(\w+)\/?([^/]*)\/?([^/]*)\/?(.*)$/.exec(pathname) ?? [];
  const exact = `${incoming.method} ${pathname}`;
  const named = `${incoming.method} /${head}/:id${tail && `/${tail}`}${extra && "/:extra"}`;
  note({ request: Object.hasOwn(routes, exact) ? exact : named, id, body });
  const route = routes[exact] ?? routes[named];
  const way = options.answers?.[exact] ?? options.answers?.[named];
  if (way?.silent) return;
  try {
    if (way !== undefined) throw way;
    if (route === undefined) throw { status: 404, body: { name: "no such path" } };
    const answer = await route(id, body, extra);
    outgoing.writeHead(answer === null ? 204 : 200).end(answer === null ? "" : JSON.stringify(answer));
  } catch (/** @type {any} */ fault) {
    if (fault.status === undefined) throw fault;
    outgoing.writeHead(fault.status).end(fault.raw ?? JSON.stringify(fault.body));
  }
});

if (options.exit !== undefined) {
  if (options.says !== undefined) process.stdout.write(`${options.says}\n`);
  process.stderr.write("it cannot begin\n");
  process.exit(options.exit);
}
server.listen(options.port ?? 0, "127.0.0.1", () => {
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  if (!options.mute) process.stdout.write(`opencode server listening on http://127.0.0.1:${address.port}\n`);
});
