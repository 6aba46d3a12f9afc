/** JSON-RPC in lines, with a real program on the other side and a clock that only a test moves. */
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { type LineProcess, startLineProcess } from "../../../src/platform/line-process.ts";
import type { Json } from "../../../src/protocol/json.ts";
import { JsonRpcFault, JsonRpcRefusal } from "../../../src/providers/json-rpc-message.ts";
import { JsonRpcPeer } from "../../../src/providers/json-rpc.ts";
import { type VirtualClock, virtualClock } from "../../../src/testing/virtual-clock.ts";

/** Real processes, on a machine that may be busy. */
const processes = { timeout: 120_000 };
const PROGRAM = fileURLToPath(new URL("../../support/json-rpc-program.mjs", import.meta.url));
const forEver = { deadlineMs: null };

interface Subject {
  readonly peer: JsonRpcPeer;
  readonly program: LineProcess;
  readonly clock: VirtualClock;
  /** Notifications, as `method params`. */
  readonly told: string[];
}

async function open(
  options: {
    readonly versioned?: boolean;
    readonly onNotification?: (method: string, params: Json) => void;
    readonly onRequest?: (method: string, params: Json) => Promise<Json>;
  } = {},
): Promise<Subject> {
  const clock = virtualClock();
  const program = await startLineProcess({ command: process.execPath, args: [PROGRAM] }, { clock });
  onTestFinished(async () => void (await program.end({ graceMs: 0 })));
  const told: string[] = [];
  const peer = new JsonRpcPeer({
    program,
    clock,
    name: "the program",
    versioned: false,
    onNotification: (method, params) => void told.push(`${method} ${JSON.stringify(params)}`),
    onRequest: (method) => Promise.reject(JsonRpcFault.unknownMethod(method)),
    ...options,
  });
  return { peer, program, clock, told };
}

const failure = (pending: Promise<unknown>): Promise<unknown> =>
  pending.then(
    (value) => expect.unreachable(`it answered ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );

describe("requests and notifications", processes, () => {
  test("an answer belongs to its request", async () => {
    const { peer } = await open();
    const params = { text: "zwölf\n", list: [1, null, { deep: true }] };
    expect(
      await Promise.all([peer.request("mirror", { n: 1 }, forEver), peer.request("mirror", params, forEver)]),
    ).toEqual([{ n: 1 }, params]);
  });

  test.for([
    [true, "2.0"],
    [false, null],
  ] as const)("the version is named where it is wanted: %s", async ([versioned, seen]) => {
    const { peer } = await open({ versioned });
    expect(await peer.request("versions", {}, forEver)).toBe(seen);
  });

  test("a refusal keeps its code and what came with it, and no secret", async () => {
    const { peer } = await open();
    const error = await failure(peer.request("refuse", {}, forEver));
    expect(error).toBeInstanceOf(JsonRpcRefusal);
    expect(error).toMatchObject({
      code: "PROVIDER_REFUSED",
      rpcCode: -32600,
      data: { why: 1 },
      details: { method: "refuse", rpcCode: -32600 },
    });
    expect(String(error)).toMatch(/the program refused refuse: not now/);
    expect(String(error)).not.toContain("0123456789abcdef");
    expect(await peer.request("mirror", { n: 1 }, forEver)).toEqual({ n: 1 });
  });

  test("answers that nobody waits for are passed over", async () => {
    const { peer } = await open();
    expect(await peer.request("confuse", {}, forEver)).toBe("sorted");
    expect(await peer.request("mirror", { n: 1 }, forEver)).toEqual({ n: 1 });
  });

  test("notifications go both ways", async () => {
    const { peer, told } = await open();
    await peer.notify("initialized");
    await peer.notify("changed", { to: 1 });
    await peer.request("mirror", {}, forEver);
    expect(told).toEqual(["heard initialized null", 'heard changed {"to":1}']);
  });

  test("J3 who awaits an answer knows it before what follows is told", async () => {
    const order: string[] = [];
    const { peer } = await open({ onNotification: (method) => void order.push(method) });
    const wrapped = async (): Promise<Json> => await peer.request("start", {}, forEver);
    order.push(`turn ${JSON.stringify(await wrapped())}`);
    await peer.request("mirror", {}, forEver);
    expect(order).toEqual(['turn "t1"', "started"]);
  });

  test("what is asked back is answered, whatever its id", async () => {
    const { peer } = await open({ onRequest: async (method, params) => ({ method, params }) });
    for (const id of [7, "a text", 0])
      expect(await peer.request("ask", { id, method: "approve" }, forEver)).toEqual({
        result: { method: "approve", params: { of: expect.any(Number) } },
      });
  });

  test("what is asked back and not known is refused, as is what fails", async () => {
    const { peer } = await open({
      onRequest: (method) => {
        if (method === "breaks") throw new Error("no luck");
        throw JsonRpcFault.unknownMethod(method);
      },
    });
    expect(await peer.request("ask", { id: 1, method: "nonsense" }, forEver)).toEqual({
      error: { code: -32601, message: "Method not found: nonsense" },
    });
    expect(await peer.request("ask", { id: 1, method: "breaks" }, forEver)).toEqual({
      error: { code: -32603, message: "no luck" },
    });
  });
});

describe("a request that is not answered", processes, () => {
  test("ends at its deadline, and no other one with it", async () => {
    const { peer, clock } = await open();
    const short = failure(peer.request("ignore", {}, { deadlineMs: 1000 }));
    const long = peer.request("ask", { id: 1, method: "x" }, { deadlineMs: 2000 });
    await clock.advance(1000);
    expect(await short).toMatchObject({
      code: "PROVIDER_STALLED",
      message: "the program did not answer ignore in 1000 ms.",
      details: { method: "ignore", deadlineMs: 1000 },
    });
    await long;
    expect(clock.pending()).toEqual([]);
  });

  test("ends with its signal", async () => {
    const { peer, clock } = await open();
    const controller = new AbortController();
    const reason = new Error("enough");
    const pending = failure(peer.request("ignore", {}, { deadlineMs: 1000, signal: controller.signal }));
    controller.abort(reason);
    expect(await pending).toBe(reason);
    expect(clock.pending()).toEqual([]);
    const late = peer.request("ignore", {}, { deadlineMs: null, signal: controller.signal });
    expect(await failure(late)).toBe(reason);
  });

  test("ends with the program, and so does all that comes later", async () => {
    const { peer, program } = await open();
    const pending = failure(peer.request("ignore", {}, forEver));
    await peer.request("mirror", {}, forEver);
    void failure(peer.request("leave", {}, forEver));
    expect(await pending).toMatchObject({ code: "PROVIDER_UNREACHABLE", details: { code: 7 } });
    expect(await peer.over).toBe(await pending);
    expect(await failure(peer.request("mirror", {}, forEver))).toBe(await pending);
    expect(await failure(peer.notify("mirror"))).toBe(await pending);
    expect(await program.ended).toEqual({ code: 7, signal: null });
  });

  test("ends when the peer is", async () => {
    const { peer, program } = await open();
    const pending = failure(peer.request("ignore", {}, forEver));
    await peer.request("mirror", {}, forEver);
    await peer.end({ graceMs: 10_000 });
    expect(await pending).toMatchObject({
      code: "PROVIDER_UNREACHABLE",
      message: "the program was ended.",
    });
    expect(await peer.over).toBeNull();
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });
});

describe("a program that says what is no message", processes, () => {
  test.for([
    "warning: something is odd",
    '{"id":1,"result":',
    "7",
    "null",
    "[]",
    '[{"method":"x"}]',
    "{}",
    '{"id":1}',
    '{"method":7}',
    '{"id":null,"method":"x"}',
    '{"id":{},"result":1}',
    '{"id":1,"error":"text"}',
    `${"x".repeat(100_000)} token=sk-dummy-0123456789abcdef`,
  ])("%s", async (line) => {
    const { peer, program } = await open();
    const pending = failure(peer.request("ignore", {}, forEver));
    await peer.request("mirror", {}, forEver);
    void failure(peer.request("say", { line: `${line}\n` }, forEver));
    expect(await pending).toMatchObject({
      code: "PROVIDER_PROTOCOL",
      message: expect.stringMatching(/^the program said what is no message: .{1,121}$/),
    });
    expect(await peer.over).toBe(await pending);
    expect(await program.ended).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("half a message, and is gone", async () => {
    const { peer } = await open();
    const pending = failure(peer.request("ignore", {}, forEver));
    await peer.request("mirror", {}, forEver);
    void failure(peer.request("say", { line: '{"id":1,"res', leave: true }, forEver));
    expect(await pending).toMatchObject({
      code: "PROVIDER_UNREACHABLE",
      details: { code: 7 },
      cause: { message: "the output ended in the middle of a line." },
    });
  });

  test("a notification that makes no sense to the adapter", async () => {
    const { peer, program } = await open({
      onNotification: (method) => {
        throw new Error(`what is ${method}?`);
      },
    });
    await peer.notify("x");
    expect(await peer.over).toMatchObject({
      code: "PROVIDER_PROTOCOL",
      message: "the program said what could not be understood: what is heard x?",
    });
    expect(await program.ended).toEqual({ code: null, signal: "SIGKILL" });
  });
});
