/** A tree as clients of the Model Context Protocol see it: the tools of a host-driven root over the wire, in both revisions. */
import { describe, expect, onTestFinished, test } from "vitest";
import { HostTree, hostToolFaces } from "../../src/mcp/host-tree.ts";
import { progressOf } from "../../src/mcp/progress.ts";
import { PROGRESS_MS } from "../../src/mcp/server.ts";
import { silentLogger } from "../../src/platform/logger.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, say } from "../../src/providers/scripted/script.ts";
import { createGates } from "../../src/providers/scripted/gates.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { RuntimeOptions } from "../../src/runtime/options.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import type { Store } from "../../src/store/port.ts";
import { type VirtualClock, virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Revision, serveHere } from "../support/mcp-client.ts";

const THREAD_TOOLS = { allow: "all", approval: "agents" } as const;
const until = (what: string, there: () => boolean | Promise<boolean>) =>
  waitUntil(what, there, { steps: 20_000 });

/** A client's server, as `coppice mcp` makes it. */
async function serving(
  given: {
    readonly store?: Store;
    readonly id?: string;
    readonly fails?: number;
    readonly isRoot?: boolean;
  } = {},
) {
  const clock = virtualClock();
  const gates = createGates();
  const store = given.store ?? createMemoryStore({ clock });
  const options: RuntimeOptions = {
    store,
    clock,
    threadTools: THREAD_TOOLS,
    providers: {
      scripted: scripted({ "*": [say("done")], "/root/held": [gate("go"), say("at last")] }, { gates }),
    },
  };
  const runtime = await createRuntime(options);
  onTestFinished(() => runtime.close());
  let fails = given.fails ?? 0;
  const host = new HostTree({
    faces: hostToolFaces(options, {}),
    logger: silentLogger,
    open: async (had) => {
      if ((fails -= 1) >= 0) await runtime.openTree({ provider: "nobody's" });
      const id = had ?? given.id;
      const tree = await runtime.openTree(id === undefined ? { hostDriven: true } : { id });
      return { tree, tools: tree.root.tools({ shortTransport: true }) };
    },
  });
  const tree = () => host.tree;
  const served = serveHere({
    tools: host.tools,
    tree,
    isRoot: given.isRoot ?? true,
    clock,
    version: "1",
    progress: () => progressOf(tree()),
  });
  onTestFinished(() => served[Symbol.asyncDispose]());
  return { clock, gates, store, runtime, host, served };
}

/** A timer of so many milliseconds is set. */
const timed = ({ clock }: { readonly clock: VirtualClock }, ms: number): boolean =>
  clock.pending().some(({ at }) => at === clock.now() + ms);

const call = (name: string, args: object = {}, id?: string) => ({
  name,
  arguments: { ...args },
  ...(id === undefined ? {} : { _meta: { callId: id } }),
});

describe.each<Revision>(["2025", "2026"])("the server, revision of %s", (revision) => {
  test("HDR-1 the tree is made by the first call; who only looks leaves nothing", async () => {
    const { served, store, runtime } = await serving();
    const client = await served.connect(revision);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "spawn_agent",
      "send_message",
      "followup_task",
      "wait_agent",
      "interrupt_agent",
      "list_agents",
      "create_thread",
      "send_message_to_thread",
      "read_thread",
      "wait_threads",
      "fork_thread",
      "merge_back",
      "read_artifact",
    ]);
    for (const { description, inputSchema, annotations } of tools) {
      expect(description).toBeTruthy();
      expect(inputSchema.type).toBe("object");
      expect(annotations?.readOnlyHint).toBeTypeOf("boolean");
    }
    expect(client.getInstructions()).toContain("spawn_agent");
    const { contents } = await client.readResource({ uri: "coppice://tree" });
    expect(JSON.parse((contents[0] as { readonly text: string }).text)).toEqual({
      tree: null,
      rows: [],
      next: null,
    });
    expect((await runtime.trees()).rows).toEqual([]);

    const first = await client.callTool(call("list_agents"));
    expect(first).toMatchObject({ structuredContent: { agents: [{ agent: "/root" }] }, isError: false });
    const { rows } = await runtime.trees();
    expect(rows).toHaveLength(1);
    expect(await store.read((view) => view.agent(rows[0]!.id)!.hostDriven)).toBe(true);
  });

  test("HDR-2 HDR-3 a wait brings mail, other results tell of it, and a cursor says that it was taken", async () => {
    const { served, host } = await serving();
    const client = await served.connect(revision);
    await client.callTool(call("spawn_agent", { task_name: "one", message: "do it" }));
    await host.tree!.idle();
    const listed = await client.callTool(call("list_agents"));
    expect(listed.structuredContent).toMatchObject({
      unread: expect.stringContaining("1 unread message from /root/one"),
    });
    expect((listed.content as readonly { readonly text: string }[])[0]!.text).toContain("1 unread message");
    const waited = await client.callTool(call("wait_agent"));
    const { cursor, messages } = waited.structuredContent as {
      readonly cursor: string;
      readonly messages: object[];
    };
    expect(messages).toMatchObject([{ from: "/root/one", text: "done" }]);
    await client.callTool(call("spawn_agent", { task_name: "two", message: "do it" }));
    await host.tree!.idle();
    const next = await client.callTool(call("wait_agent", { cursor }));
    expect(next.structuredContent).toMatchObject({ messages: [{ from: "/root/two" }] });
  });

  test("WAI-7 a wait lasts 45 s at most, tells how it goes meanwhile, and is taken up again", async () => {
    const { served, clock, gates, host } = await serving();
    const client = await served.connect(revision);
    await client.callTool(call("spawn_agent", { task_name: "held", message: "do it" }));
    await until("it runs", async () => (await host.tree!.counts()).running === 1);
    const told: (string | undefined)[] = [];
    const waiting = client.callTool(call("wait_agent", { timeout_ms: 600_000 }), {
      onprogress: ({ message }) => told.push(message),
    });
    await until("it waits", () => timed({ clock }, 45_000));
    for (let seconds = PROGRESS_MS; seconds <= 45_000; seconds += PROGRESS_MS) {
      await clock.advance(PROGRESS_MS);
      await until("it is told", () => told.length >= Math.min(seconds, 40_000) / PROGRESS_MS);
    }
    expect((await waiting).structuredContent).toMatchObject({ ended_by: "cut_short", timed_out: false });
    expect(told[0]).toBe("1 agent running");
    gates.open("go");
    await host.tree!.idle();
    const again = await client.callTool(call("wait_agent", { timeout_ms: 600_000 }));
    expect(again.structuredContent).toMatchObject({ messages: [{ text: "at last" }] });
    const many = told.length;
    await clock.advance(10 * PROGRESS_MS);
    expect(told).toHaveLength(many);
  });

  test("WAI-6 HDR-4 who cancels a call or goes ends that call alone", async () => {
    const { served, gates, host, clock } = await serving();
    const client = await served.connect(revision);
    await client.callTool(call("spawn_agent", { task_name: "held", message: "do it" }));
    const leave = new AbortController();
    const waiting = client.callTool(call("wait_agent"), { signal: leave.signal });
    await until("it waits", () => timed({ clock }, 30_000));
    leave.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow(/enough|cancel|abort/i);
    await until("the wait is over", () => !timed({ clock }, 30_000));
    expect(await client.callTool(call("list_agents"))).toMatchObject({ isError: false });
    await client.close();
    await served.ended;
    gates.open("go");
    await host.tree!.idle();
    const works = await host.tree!.works();
    expect(works.rows).toMatchObject([{ outcome: { ending: "completed", text: "at last" } }]);
  });

  test("SPN-6 a call that is made again under its id has one effect, after a restart, too", async () => {
    const before = await serving();
    const spawn = call("spawn_agent", { task_name: "one", message: "do it" }, "call_1");
    const client = await before.served.connect(revision);
    const first = await client.callTool(spawn);
    const { work_id } = first.structuredContent as { readonly work_id: string };
    expect((await client.callTool(spawn)).structuredContent).toMatchObject({ work_id });
    await before.host.tree!.idle();
    const { id } = before.host.tree!;
    await client.close();
    await before.served.ended;
    await before.runtime.close();

    const after = await serving({ store: before.store, id });
    const again = await (await after.served.connect(revision)).callTool(spawn);
    expect(again).toMatchObject({
      structuredContent: { work_id: work_id },
      isError: false,
    });
    expect((await after.host.tree!.works()).rows).toHaveLength(1);
  });

  test("BUD-3 what is refused is a result; a tree that cannot be opened is one, too, and the next call tries again", async () => {
    const { served, runtime } = await serving({ fails: 1 });
    const client = await served.connect(revision);
    const spawn = call("spawn_agent", { task_name: "one", message: "do it" });
    expect(await client.callTool(spawn)).toMatchObject({
      isError: true,
      structuredContent: { error: expect.stringContaining("nobody's") },
    });
    expect((await runtime.trees()).rows).toEqual([]);
    expect(await client.callTool(spawn)).toMatchObject({ isError: false });
    for (const [name, args, why] of [
      ["spawn_agent", { task_name: "No Name", message: "do it" }, "task_name"],
      ["spawn_agent", { task_name: "two", message: "do it", nonsense: 1 }, "nonsense"],
      ["send_message", { target: "nobody", message: "hello" }, "nobody"],
      ["no_such_tool", {}, "no_such_tool"],
    ] as const)
      expect(await client.callTool(call(name, args))).toMatchObject({
        isError: true,
        structuredContent: { error: expect.stringContaining(why) },
      });
  });

  test("REC-6 a tree that was lost, as by a machine that has slept, is opened again by the next call", async () => {
    const { served, host, runtime } = await serving();
    const client = await served.connect(revision);
    await client.callTool(call("spawn_agent", { task_name: "one", message: "do it" }));
    await host.tree!.idle();
    const { id } = host.tree!;
    await host.tree!.close();
    const [waited, listed] = await Promise.all([
      client.callTool(call("wait_agent")),
      client.callTool(call("list_agents")),
    ]);
    expect(waited.structuredContent).toMatchObject({ messages: [{ from: "/root/one", text: "done" }] });
    expect(listed).toMatchObject({ isError: false });
    expect(host.tree).toMatchObject({ id, owned: true });
    expect((await runtime.trees()).rows).toHaveLength(1);
  });

  test("XTR-4 threads are made without asking: the client has asked its user", async () => {
    const { served } = await serving();
    const client = await served.connect(revision);
    const made = await client.callTool(
      call("create_thread", { threads: [{ message: "begin", title: "beside" }] }),
    );
    expect(made).toMatchObject({ isError: false });
  });

  test("SEC-1 one that is a single agent sees no more than its tools show", async () => {
    const { served } = await serving({ isRoot: false });
    const client = await served.connect(revision);
    expect(client.getServerCapabilities()?.resources).toBeUndefined();
    expect(client.getInstructions()).not.toContain("root");
    expect((await client.listTools()).tools).toHaveLength(13);
    await expect(
      client.request({ method: "resources/read", params: { uri: "coppice://mailbox" } }),
    ).rejects.toThrow(/not found|does not support/i);
  });

  test("the tree, the mailbox and the transfers are resources, in pages, and reading takes nothing", async () => {
    const { served, host } = await serving();
    const client = await served.connect(revision);
    await client.callTool(call("spawn_agent", { task_name: "one", message: "do it" }));
    await host.tree!.idle();
    const read = async (uri: string) => {
      const { contents } = await client.readResource({ uri });
      return JSON.parse((contents[0] as { readonly text: string }).text) as {
        readonly rows: readonly Record<string, unknown>[];
        readonly next: string | null;
      };
    };
    const uris = (await client.listResources()).resources.map(({ uri }) => uri);
    expect(uris).toEqual(["coppice://tree", "coppice://mailbox", "coppice://transfers"]);
    expect(
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    ).toEqual(uris.map((uri) => `${uri}{?after}`));
    expect((await read(uris[0]!)).rows).toMatchObject([{ path: "/root", unread: 1 }, { path: "/root/one" }]);
    expect((await read(uris[1]!)).rows).toMatchObject([{ text: "done", seq: 1 }]);
    expect((await read(uris[1]!)).rows).toHaveLength(1);
    expect((await read(`${uris[1]}?after=1`)).rows).toEqual([]);
    expect((await read(uris[2]!)).rows.map(({ type }) => type)).toEqual([
      "subagent_spawn",
      "subagent_result",
    ]);
    for (const uri of [
      "coppice://nothing",
      "file:///etc/passwd",
      "coppice://tree/../x",
      "no address",
      `${uris[1]}?after=x`,
    ])
      await expect(client.readResource({ uri })).rejects.toThrow(/resource|cursor/);
  });
});

test("what is no message is passed over, and the next one is answered", async () => {
  const { served } = await serving();
  const ask = (line: string): void => void served.input.write(`${line}\n`);
  ask("nonsense");
  ask('{"jsonrpc":"2.0","id":1,"method"');
  ask("[]");
  ask(
    '{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}',
  );
  ask('{"jsonrpc":"2.0","id":8,"method":"no/such/method"}');
  ask('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}}');
  await until("it has answered", () => served.said.length === 3);
  const answers = served.said as readonly { readonly id: number }[];
  expect(answers.toSorted((a, b) => a.id - b.id)).toMatchObject([
    { id: 7, result: { protocolVersion: "2025-06-18" } },
    { id: 8, error: { code: -32_601 } },
    { id: 9, error: { code: -32_602 } },
  ]);
  expect(served.faults).toHaveLength(1);
});

test("a line without an end is not kept for ever: the server ends", async () => {
  const { served } = await serving();
  const part = "x".repeat(8 * 1024 * 1024);
  for (let sent = 0; sent <= 4; sent += 1) served.input.write(part);
  await served.ended;
  expect(served.faults.map(String).join()).toMatch(/size|large|exceed/i);
});
