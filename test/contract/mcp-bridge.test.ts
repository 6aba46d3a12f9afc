/** The bridge by which programs with a loop of their own call our tools, as a client of the Model Context Protocol sees it. */
import { request as httpRequest } from "node:http";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, describe, expect, test } from "vitest";
import { seededRandom } from "../../src/platform/ids.ts";
import type { ToolSpec } from "../../src/protocol/tool.ts";
import { McpBridge, type SeatedAgent, stdioServer } from "../../src/providers/mcp-bridge/endpoint.ts";
import { PROGRESS_MS } from "../../src/providers/mcp-bridge/mcp-server.ts";
import type { ToolRequest } from "../../src/providers/mcp-bridge/seat.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";

const LOOK: ToolSpec = {
  name: "look",
  title: "Look",
  description: "Looks at one thing.",
  parameters: { type: "object", properties: { at: { type: "string" } }, additionalProperties: false },
  effects: [],
  hints: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
};
const HOLD_MS = 45_000;
const NOBODY = /no living agent|401|Unauthorized/i;

type Wire = "2025" | "2026" | "stdio";

/** What comes over sockets and out of processes, on a machine that may be busy. */
const until = (what: string, there: () => boolean) => waitUntil(what, there, { steps: 200_000 });

describe("the bridge", { timeout: 60_000 }, () => {
  const clock = virtualClock();
  const bridge = new McpBridge({ clock, random: seededRandom(7), driver: "acp" });
  const open: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of open.splice(0).toReversed()) await close();
  });

  /** An agent at the bridge in a turn, and what was asked of it. */
  async function agent() {
    const seated = await bridge.sit([LOOK], HOLD_MS);
    open.push(() => seated.leave());
    const asked: ToolRequest[] = [];
    seated.seat.beginTurn((request) => asked.push(request));
    const answer = (at: number, output: string) =>
      seated.seat.respond(asked[at]!.ref, { kind: "tool", output, isError: false });
    const untilAsked = (many: number) => until("it is asked", () => asked.length === many);
    return { seated, asked, answer, untilAsked };
  }

  async function client({ url, token }: Pick<SeatedAgent, "url" | "token">, wire: Wire = "2026") {
    const made = new Client(
      { name: "test", version: "1" },
      wire === "2026" ? { versionNegotiation: { mode: "auto" } } : {},
    );
    open.push(() => made.close());
    await made.connect(
      wire === "stdio"
        ? new StdioClientTransport(stdioServer({ url, token }))
        : new StreamableHTTPClientTransport(new URL(url), {
            requestInit: { headers: { authorization: `Bearer ${token}` } },
          }),
    );
    return made;
  }

  const look = (at: string, id?: string) => ({
    name: "look",
    arguments: { at },
    ...(id === undefined ? {} : { _meta: { callId: id } }),
  });
  const seen = (text: string) =>
    expect.objectContaining({ content: [{ type: "text", text }], isError: false });

  test.for<Wire>(["2025", "2026", "stdio"])(
    "SEC-1 a program lists and calls the tools of the agent whose token it shows (%s)",
    async (wire) => {
      const one = await agent();
      const other = await agent();
      const caller = await client(one.seated, wire);
      expect(await caller.listTools()).toMatchObject({
        tools: [
          {
            name: "look",
            title: "Look",
            description: LOOK.description,
            inputSchema: LOOK.parameters,
            annotations: { readOnlyHint: true, destructiveHint: false },
          },
        ],
      });
      const called = caller.callTool(look("a"));
      await one.untilAsked(1);
      expect(one.asked).toMatchObject([{ kind: "tool", name: "look", input: '{"at":"a"}' }]);
      await one.answer(0, "seen");
      expect(await called).toEqual(seen("seen"));
      expect(other.asked).toEqual([]);
      expect(await caller.callTool({ name: "nothing" })).toMatchObject({ isError: true });
      const refused = caller.callTool(look("b"));
      await one.untilAsked(2);
      const error = { error: "it is gone" };
      await one.seated.seat.respond(one.asked[1]!.ref, { kind: "tool", output: error, isError: true });
      expect(await refused).toMatchObject({ structuredContent: error, isError: true });
    },
  );

  test("SEC-1 a token ends with its agent's session, and one that is none gets nothing", async () => {
    const one = await agent();
    const stays = await agent();
    const caller = await client(one.seated);
    await one.seated.leave();
    await expect(caller.callTool(look("a"))).rejects.toThrow(NOBODY);
    await expect(client({ ...stays.seated, token: "guessed" })).rejects.toThrow(NOBODY);
    await expect(client(one.seated)).rejects.toThrow(NOBODY);
    await client(stays.seated);
    expect(one.seated.token).not.toBe(stays.seated.token);
  });

  /** What no client of the protocol would send. */
  function raw(
    { url, token }: SeatedAgent,
    headers: Readonly<Record<string, string>>,
    body: string = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  ): Promise<number> {
    return new Promise((resolve, reject) => {
      const sent = httpRequest(
        url,
        {
          method: "POST",
          headers: {
            authorization: `Bearer ${token}`,
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            ...headers,
          },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode!);
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  }

  test("SEC-2 it listens on loopback alone, and serves no other host, no page of elsewhere, and no body without end", async () => {
    const { seated } = await agent();
    const { hostname, host, port } = new URL(seated.url);
    expect(hostname).toBe("127.0.0.1");
    expect(await raw(seated, {})).toBe(200);
    expect(await raw(seated, { origin: `http://${host}` })).toBe(200);
    expect(await raw(seated, { host: `localhost:${port}` })).toBe(200);
    expect(await raw(seated, { host: `evil.example:${port}` })).toBe(403);
    expect(await raw(seated, { origin: "http://evil.example" })).toBe(403);
    expect(await raw(seated, { origin: "null" })).toBe(403);
    expect(await raw(seated, { authorization: "" })).toBe(401);
    expect(await raw(seated, {}, `"${"a".repeat(33 * 1024 * 1024)}"`)).toBe(413);
  });

  test("SEC-2 with the last agent it does not listen any more, and the next one finds it again", async () => {
    const one = await agent();
    await one.seated.leave();
    await expect(raw(one.seated, {})).rejects.toThrow("ECONNREFUSED");
    const next = await agent();
    expect(await raw(next.seated, {})).toBe(200);
  });

  test("SPN-6 a call that is made again under its id has one effect and one answer", async () => {
    const one = await agent();
    const caller = await client(one.seated);
    const both = [caller.callTool(look("a", "c1")), caller.callTool(look("a", "c1"))];
    await one.untilAsked(1);
    await one.answer(0, "once");
    expect(await Promise.all(both)).toEqual([seen("once"), seen("once")]);
    expect(await caller.callTool(look("a", "c1"))).toEqual(seen("once"));
    expect(one.asked).toHaveLength(1);
    // The same name for something else is another call, and so is the same without a name.
    const more = [caller.callTool(look("b", "c1")), caller.callTool(look("a")), caller.callTool(look("a"))];
    await one.untilAsked(4);
    for (const at of [1, 2, 3]) await one.answer(at, "more");
    expect(await Promise.all(more)).toEqual([seen("more"), seen("more"), seen("more")]);
  });

  test.for<Wire>(["2025", "2026", "stdio"])(
    "WAI-7 no call is held longer than its transport bears; made again, it goes on and brings its result (%s)",
    async (wire) => {
      const one = await agent();
      const caller = await client(one.seated, wire);
      const first = caller.callTool(look("a"));
      await one.untilAsked(1);
      await until("it is held", () => clock.pending().length === 1);
      await clock.advance(HOLD_MS - 1);
      expect(clock.pending()).toHaveLength(1);
      await clock.advance(1);
      expect(await first).toMatchObject({
        structuredContent: { still_running: true, message: expect.stringContaining("Call look again") },
        isError: false,
      });
      const answered = one.answer(0, "seen at last");
      expect(await caller.callTool(look("a"))).toEqual(seen("seen at last"));
      await answered;
      expect(one.asked).toHaveLength(1);
    },
  );

  test.for<Wire>(["2025", "2026", "stdio"])(
    "WAI-7 a program that asks for progress is told that its call goes on, as long as it does (%s)",
    async (wire) => {
      const one = await agent();
      const caller = await client(one.seated, wire);
      const told: (string | undefined)[] = [];
      const called = caller.callTool(look("a"), { onprogress: ({ message }) => told.push(message) });
      await one.untilAsked(1);
      await until("it is held", () => clock.pending().length === 2);
      for (const many of [1, 2]) {
        await clock.advance(PROGRESS_MS);
        await until("it is told", () => told.length === many);
      }
      const answered = one.answer(0, "seen");
      expect(await called).toEqual(seen("seen"));
      await answered;
      expect(told).toEqual(["look goes on", "look goes on"]);
      await until("nothing is told any more", () => clock.pending().length === 0);
    },
  );

  test("INT-4 with the turn its calls are over, and nothing is called outside of one", async () => {
    const one = await agent();
    const caller = await client(one.seated);
    const called = caller.callTool(look("a"));
    await one.untilAsked(1);
    one.seated.seat.endTurn();
    expect(await called).toMatchObject({ isError: true, content: [{ text: "cancelled: the turn is over" }] });
    await expect(one.answer(0, "late")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    expect(await caller.callTool(look("a"))).toMatchObject({ isError: true });
    expect(one.asked).toHaveLength(1);
  });

  // A client of 2025 does not hang up over HTTP, and only says so to nobody.
  test.for<Wire>(["2026", "stdio"])(
    "WAI-3 an answer counts as given when the program has taken it, and not to one that has hung up (%s)",
    async (wire) => {
      const one = await agent();
      const caller = await client(one.seated, wire);
      const leaving = new AbortController();
      const called = caller.callTool(look("a", "c1"), { signal: leaving.signal });
      await until("it is held", () => clock.pending().length === 1);
      leaving.abort(new Error("it hangs up"));
      await expect(called).rejects.toThrow("it hangs up");
      await until("nobody waits any more", () => clock.pending().length === 0);
      const given = one.answer(0, "seen");
      const state = await Promise.race([given.then(() => "given"), Promise.resolve("open")]);
      expect(state).toBe("open");
      one.seated.seat.endTurn();
      await expect(given).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    },
  );
});
