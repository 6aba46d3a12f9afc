/**
 * An agent that speaks ACP, as a program of its own: `node acp-agent.mjs [OPTIONS as JSON]`. A turn does what its prompt says
 * between `<<` and `>>`, as JSON, or else what its options say. It keeps its conversations in the folder ACP_STORE, and tells
 * what it was asked in the file ACP_LOG.
 */
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const options = JSON.parse(process.argv[2] ?? "{}");
const { ACP_STORE: folder = "", ACP_LOG: log = "" } = process.env;
const say = (/** @type {object} */ message) => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
};
const tell = (/** @type {string} */ sessionId, /** @type {object} */ update) =>
  say({ method: "session/update", params: { sessionId, update } });
const chunk = (
  /** @type {string} */ kind,
  /** @type {string} */ text,
  /** @type {string | undefined} */ id,
) => ({
  sessionUpdate: kind,
  content: { type: "text", text },
  ...(id === undefined ? {} : { messageId: id }),
});

/** Servers of tools, by session. @type {Map<string, any>} */
const servers = new Map();
/** Those who wait for an answer of the client. @type {Map<number, (answer: any) => void>} */
const asked = new Map();
/** Who cuts the turn off, by session. @type {Map<string, () => void>} */
const turns = new Map();
let number = 0;

const file = (/** @type {string} */ id) => `${folder}/${id}.json`;
const open = (/** @type {string} */ id, /** @type {any} */ params) => {
  servers.set(id, params.mcpServers[0]);
  return options.session ?? {};
};
const known = (/** @type {any} */ params) => {
  if (!existsSync(file(params.sessionId))) throw { code: -32002, message: "Resource not found" };
  return open(params.sessionId, params);
};

/** @type {Record<string, (params: any) => any>} */
const methods = {
  initialize: () => ({
    protocolVersion: options.version ?? 1,
    agentCapabilities: options.can ?? {
      loadSession: true,
      mcpCapabilities: { http: true },
      sessionCapabilities: { resume: {} },
    },
  }),
  "session/new"(params) {
    if (options.signedOut) throw { code: -32000, message: "Authentication required" };
    const sessionId = `session-${process.pid}-${(number += 1)}`;
    writeFileSync(file(sessionId), "[]");
    return { sessionId, ...open(sessionId, params) };
  },
  "session/resume": known,
  "session/load"(params) {
    const opened = known(params);
    for (const text of JSON.parse(readFileSync(file(params.sessionId), "utf8")))
      tell(params.sessionId, chunk("agent_message_chunk", text, undefined));
    return opened;
  },
  "session/set_mode"({ modeId }) {
    if (options.modes?.includes(modeId) === false) throw { code: -32602, message: `no mode ${modeId}` };
    return {};
  },
  "session/set_config_option": () => ({}),
  "session/prompt": prompt,
};

async function prompt(/** @type {any} */ { sessionId, prompt: blocks }) {
  const text = blocks.map((/** @type {any} */ block) => block.text).join("\n");
  const [, script] = /<<([\s\S]*)>>/.exec(text) ?? [];
  const steps = script === undefined ? (options.turn ?? [{ say: "ok" }]) : JSON.parse(script);
  const cancelled = new Promise((resolve) => turns.set(sessionId, () => resolve("cancelled")));
  let result = "";
  for (const step of steps) {
    if (step.say !== undefined) tell(sessionId, chunk("agent_message_chunk", step.say, step.id));
    if (step.think !== undefined) tell(sessionId, chunk("agent_thought_chunk", step.think, undefined));
    if (step.update !== undefined) tell(sessionId, step.update);
    if (step.call !== undefined) {
      const answer = await Promise.race([call(servers.get(sessionId), step), cancelled]);
      if (answer === "cancelled") break;
      result = answer;
    }
    if (step.tell) tell(sessionId, chunk("agent_message_chunk", result, "told"));
    if (step.ask !== undefined) {
      const { outcome } = await ask("session/request_permission", { sessionId, ...step.ask });
      result = outcome.optionId ?? outcome.outcome;
    }
    if (step.files)
      result = JSON.stringify(await ask("fs/read_text_file", { sessionId, path: "/etc/hosts" }));
    if (step.raw !== undefined) process.stdout.write(step.raw);
    if (step.long) process.stdout.write("a".repeat(step.long));
    if (step.exit !== undefined) process.exit(step.exit);
    if (step.fail !== undefined) throw step.fail;
    if (step.hold && (await cancelled)) break;
    if (step.never) await new Promise(() => undefined);
    if (step.end !== undefined) return step.end;
  }
  const over = await Promise.race([cancelled, Promise.resolve("end_turn")]);
  const before = JSON.parse(readFileSync(file(sessionId), "utf8"));
  writeFileSync(file(sessionId), JSON.stringify([...before, text]));
  return { stopReason: over };
}

function ask(/** @type {string} */ method, /** @type {object} */ params) {
  const id = (number += 1);
  const answered = new Promise((resolve) => asked.set(id, resolve));
  say({ id, method, params });
  return /** @type {Promise<any>} */ (answered);
}

/** Calls a tool of the server that it was given; resolves with the text of its result. */
async function call(/** @type {any} */ server, /** @type {any} */ { call: name, input = {}, key }) {
  const message = JSON.stringify({
    jsonrpc: "2.0",
    id: (number += 1),
    method: "tools/call",
    params: { name, arguments: input, ...(key === undefined ? {} : { _meta: { callId: key } }) },
  });
  const answer = server.type === "http" ? await post(server, message) : await started(server, message);
  return answer.error?.message ?? answer.result.content[0].text;
}

async function post(/** @type {any} */ { url, headers }, /** @type {string} */ body) {
  const response = await fetch(url, {
    method: "POST",
    body,
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...Object.fromEntries(headers.map((/** @type {any} */ one) => [one.name, one.value])),
    },
  });
  const text = await response.text();
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
}

/** Over a server that it starts itself. */
function started(/** @type {any} */ { command, args, env }, /** @type {string} */ message) {
  const variables = env.map((/** @type {any} */ one) => [one.name, one.value]);
  const child = spawn(command, args, {
    env: { ...process.env, ...Object.fromEntries(variables) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.write(`${message}\n`);
  return new Promise((resolve) =>
    createInterface({ input: child.stdout }).once("line", (line) => {
      child.stdin.end();
      resolve(JSON.parse(line));
    }),
  );
}

const { start } = options;
if (start?.raw !== undefined)
  process.stdout.write(start.raw, () => start.exit !== undefined && process.exit(start.exit));
else if (start?.exit !== undefined) process.exit(start.exit);
if (start?.long) process.stdout.write("a".repeat(start.long));
if (options.stays) setInterval(() => undefined, 1_000_000);
createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (log !== "") appendFileSync(log, `${line}\n`);
  if (method === undefined) return asked.get(id)?.(result ?? error);
  if (method === "session/cancel") {
    if (!options.deaf) turns.get(params.sessionId)?.();
    return;
  }
  if (options.silent?.includes(method)) return;
  try {
    say({ id, result: await methods[method]?.(params) });
  } catch (fault) {
    say({ id, error: fault });
  }
});
