/** A peer that speaks JSON-RPC in lines. Its methods say what it does; the first argument, what it does unasked. */
import { createInterface } from "node:readline";

const write = (/** @type {string} */ text) => process.stdout.write(text);
const say = (/** @type {object} */ message) => write(`${JSON.stringify(message)}\n`);
setInterval(() => undefined, 1_000_000);

/** @type {Record<string, (id: number, params: any) => void>} */
const methods = {
  /** What came, member for member. */
  mirror: (id, params) => say({ id, result: params }),
  refuse: (id) =>
    say({
      id,
      error: { code: -32600, message: "not now, token=sk-dummy-0123456789abcdef", data: { why: 1 } },
    }),
  /** Never answers. */
  ignore: () => undefined,
  /** Answers to numbers that nobody has given out, and to nobody, before it answers. */
  confuse(id) {
    say({ id: 99_999, result: 1 });
    say({ id: "text", result: 1 });
    say({ id: null, error: { code: -32700, message: "what?" } });
    write("\n");
    say({ id, result: "sorted" });
    say({ id, result: "again" });
  },
  /** An answer and what follows it, in one piece. */
  start(id) {
    write(
      `${JSON.stringify({ id, result: "t1" })}\n${JSON.stringify({ method: "started", params: "t1" })}\n`,
    );
  },
  /** Asks back, and answers with what it was told. */
  ask(id, params) {
    waiting.set(String(params.id), (message) => say({ id, result: message }));
    say({ id: params.id, method: params.method, params: { of: id } });
  },
  say(_, { line, leave = false }) {
    process.stdout.write(line, () => leave && process.exit(7));
  },
  leave() {
    process.exit(7);
  },
};
/** @type {Map<string, (message: object) => void>} */
const waiting = new Map();

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params, jsonrpc, ...rest } = JSON.parse(line);
    if (method === undefined) waiting.get(String(id))?.(rest);
    else if (method === "versions") say({ id, result: jsonrpc ?? null });
    else if (id === undefined) say({ method: `heard ${method}`, params });
    else methods[method]?.(id, params);
  })
  .on("close", () => process.exit(0));
