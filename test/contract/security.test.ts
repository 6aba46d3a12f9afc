/** Who a caller is (SEC-1), and where secrets do not get to (SEC-3). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { handoffOf } from "../../src/lineage/transfer.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import type { Logger } from "../../src/platform/logger.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import type { ScriptContext } from "../../src/providers/scripted/context.ts";
import {
  call,
  fail,
  gate,
  list,
  repeat,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { callByName, type HostTool } from "../../src/tools/host-tools.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { z } from "zod";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";
import { makeFolder } from "../support/stores.ts";

async function use(tools: readonly HostTool[], name: string, input: JsonObject = {}): Promise<JsonObject> {
  return (await callByName(tools, name, input)).output as JsonObject;
}

const invalid = { code: "TOKEN_INVALID", retryable: false };

describe.each(STORES)("tokens on %s", (store) => {
  const scripts = {
    "/root": [spawn("worker", "count"), repeat(say("ok"))],
    "/root/worker": [together(gate("busy"), say("seven"))],
    "*": [say("done")],
  };

  test("SEC-1 a caller is the agent whose token it has: author, requester, parent work and run are that agent's", async () => {
    await using h = await harness({ store, scripts });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    const worker = await h.tree.agent("worker");
    using caller = await h.runtime.actAs(await worker.token());
    expect([caller.path, caller.threadId]).toEqual(["/root/worker", worker.threadId]);
    const tools = caller.tools();
    await use(tools, "send_message", { target: "/root", message: "from whom?" });
    await use(tools, "spawn_agent", { task_name: "below", message: "part" });
    const run = (await worker.record()).currentRun;
    expect((await look(h).mail("/root")).at(-1)).toMatchObject({
      kind: "message",
      authority: "agent",
      author: { kind: "agent", path: "/root/worker" },
    });
    const [below] = await look(h).works("/root/worker/below");
    expect(below).toMatchObject({
      requester: { kind: "agent", path: "/root/worker" },
      originRunId: run,
      parents: [(await look(h).work("/root/worker")).id],
    });
  });

  test("SEC-1 no parameter says who calls", async () => {
    await using h = await harness({ store, scripts });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    using caller = await h.runtime.actAs(await (await h.tree.agent("worker")).token());
    for (const field of ["sender", "author", "from", "agent", "caller", "token"]) {
      const refused = await use(caller.tools(), "send_message", {
        target: "/root",
        message: "x",
        [field]: "/root",
      });
      expect(refused).toMatchObject({ code: "INVALID_ARGUMENT" });
    }
    expect((await look(h).mail("/root")).filter(({ kind }) => kind === "message")).toEqual([]);
  });

  test("SEC-1 an unknown, replaced or cut token is refused, and so is one of a closed agent, at every call", async () => {
    await using h = await harness({ store, scripts });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    const worker = await h.tree.agent("worker");
    const old = await worker.token();
    using caller = await h.runtime.actAs(old);
    const tools = caller.tools();
    expect(await use(tools, "list_agents")).not.toHaveProperty("code");
    const fresh = await worker.token();
    expect(fresh).not.toBe(old);
    expect(await use(tools, "list_agents")).toMatchObject({ code: "TOKEN_INVALID" });
    for (const token of [
      old,
      "",
      "tok_",
      fresh.slice(0, -1),
      `${fresh} `,
      "tok_0123456789ABCDEFGHIJK",
      worker.threadId,
    ]) {
      await expect(h.runtime.actAs(token)).rejects.toMatchObject(invalid);
    }
    using again = await h.runtime.actAs(fresh);
    await worker.close();
    expect(await use(again.tools(), "send_message", { target: "/root", message: "late" })).toMatchObject({
      code: "TOKEN_INVALID",
    });
    await expect(h.runtime.actAs(fresh)).rejects.toMatchObject(invalid);
    await expect(worker.token()).rejects.toMatchObject({ code: "AGENT_CLOSED" });
    expect((await look(h).mail("/root")).filter(({ kind }) => kind === "message")).toEqual([]);
  });

  test("SEC-1 a token survives a restart, and reaches its own tree alone", async () => {
    await using h = await harness({ store, scripts, tree: { hostDriven: true } });
    const token = await h.tree.root.token();
    const other = await h.runtime.openTree({ hostDriven: true });
    const { agent: foreign } = await other.root.spawn("foreign", "work");
    await h.crash();
    using caller = await h.runtime.actAs(token);
    expect(await use(caller.tools(), "list_agents")).toMatchObject({ agents: [{ agent: "/root" }] });
    for (const target of [foreign.threadId, other.id, "/root/foreign"]) {
      expect(await use(caller.tools(), "send_message", { target, message: "hello" })).toMatchObject({
        code: "AGENT_NOT_FOUND",
      });
    }
  });

  test("SEC-1 an agent that does not run asks for nothing", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("ok"))] } });
    const { agent, work } = await h.tree.root.spawn("idle", "work");
    await work.outcome();
    using caller = await h.runtime.actAs(await agent.token());
    expect(await use(caller.tools(), "spawn_agent", { task_name: "x", message: "y" })).toMatchObject({
      code: "SUBAGENT_PARENT_NOT_ACTIVE",
    });
    expect(await use(caller.tools(), "wait_agent")).toMatchObject({ code: "SUBAGENT_PARENT_NOT_ACTIVE" });
  });

  test("SEC-1 only the token's digest is stored", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("ok"))] } });
    const token = await h.tree.root.token();
    const records = await h.store.read((view) => view.agents(h.tree.id, "/root", { limit: 9 }).rows);
    expect(records[0]!.tokenDigest).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify([records, await h.tree.log(0)])).not.toContain(token);
  });
});

describe("files", () => {
  test("SEC-1 SEC-3 no token is in the store's files", async () => {
    using folder = makeFolder();
    const store = await openSqliteStore({ path: join(folder.path, "store.db") });
    const runtime = await createRuntime({ store, providers: { scripted: scripted({ "*": [say("ok")] }) } });
    const tree = await runtime.openTree({ hostDriven: true });
    const token = await tree.root.token();
    await runtime.close();
    await store.close();
    for (const name of readdirSync(folder.path)) {
      expect(readFileSync(join(folder.path, name)).includes(token)).toBe(false);
    }
  });
});

describe.each(STORES)("secrets on %s", (store) => {
  const KEY = "sk-live0123456789abcdefghij";
  const WORD = "open sesame";
  const secret = `my key is ${KEY} and the word is ${WORD}`;

  /** Everything that is logged, as text. */
  function recordingLogger(): { readonly logger: Logger; readonly lines: string[] } {
    const lines: string[] = [];
    const write = (object: object, message?: string): void => {
      const shown = Object.entries(object).map(([key, value]) =>
        value instanceof Error
          ? `${key}: ${value.stack} ${JSON.stringify(value)} ${String(value.cause)}`
          : JSON.stringify(value),
      );
      lines.push(`${message} ${shown.join(" ")}`);
    };
    const logger: Logger = { debug: write, info: write, warn: write, error: write };
    return { logger, lines };
  }

  const leaks = (value: unknown): boolean => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return text.includes(KEY) || text.includes(WORD);
  };

  test("SEC-3 transcripts and mail are kept word for word; logs, events, salvage and handoffs hold none", async () => {
    const { logger, lines } = recordingLogger();
    const shout = defineTool({
      name: "shout",
      description: "Fails with a secret.",
      input: z.strictObject({ text: z.string() }),
      effects: ["read"],
      run: async ({ text }) => {
        throw new Error(`cannot shout ${text}`);
      },
    });
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          call("shout", { text: secret }),
          spawn("worker", secret, { fork_turns: "all" }),
          wait({ targets: ["worker"] }),
          say(secret),
          repeat(say("ok")),
        ],
        "/root/worker": [
          call("shout", { text: secret }),
          fail({ code: "PROVIDER_REFUSED", message: `refused: ${secret}` }),
        ],
      },
      runtime: { secrets: [WORD], logger, tools: [shout] },
    });
    const outcome = await h.ask(secret);
    expect(outcome).toMatchObject({ ending: "completed", text: secret });
    // Word for word where the conversation is kept.
    expect(leaks(await h.tree.root.transcript())).toBe(true);
    expect((await look(h).mail("/root/worker"))[0]!.content.text).toBe(secret);
    expect((await look(h).mail("/root"))[0]!.content.text).toBe(secret);
    // Nowhere else.
    expect(await h.tree.log(0, 1000)).toSatisfy((events) => !leaks(events));
    const worker = await look(h).work("/root/worker");
    expect(worker.outcome).toMatchObject({
      ending: "provider_error",
      salvage: { lastSteps: expect.any(Array) },
    });
    expect(worker.outcome!.salvage!.lastSteps.length).toBeGreaterThan(0);
    expect(leaks(worker.outcome)).toBe(false);
    const handoffs = await h.store.read((view) =>
      view
        .transfers(h.tree.id, { limit: 100 })
        .rows.flatMap((transfer) => view.handoff(handoffOf(transfer) ?? "hnd_none") ?? []),
    );
    expect(handoffs.length).toBeGreaterThan(0);
    expect(leaks(handoffs)).toBe(false);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter(leaks)).toEqual([]);
  });

  test("SEC-3 another provider is told no secret: by a fork, by mail, by a wait's result", async () => {
    const other = scripted({
      "/root/worker": [say(`I was told: ${secret}`), repeat(say("again"))],
    });
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", secret, { fork_turns: "all" }),
          wait({ targets: ["worker"] }),
          repeat(say("ok")),
        ],
      },
      runtime: {
        secrets: [WORD],
        subagents: { provider: "other" },
      },
      others: { other },
    });
    await h.ask(`remember: ${secret}`);
    await h.tree.idle();
    const [asked] = other.requests("/root/worker");
    expect(asked!.messages.length).toBeGreaterThan(1);
    expect(leaks(asked!.messages)).toBe(false);
    // And back: what it answered is its own to say, and reaches this provider clean.
    const told = h.provider.requests("/root").at(-1)!.messages;
    expect(JSON.stringify(told)).toContain("I was told");
    const answers = told.filter((message) => JSON.stringify(message).includes("I was told"));
    expect(leaks(answers)).toBe(false);
    // In the store it stands as it was said.
    expect((await look(h).work("/root/worker")).outcome!.text).toBe(`I was told: ${secret}`);
  });

  test("SEC-3 another provider is told no secret by what its agent looks up: a list of agents, a long text", async () => {
    const long = `${"x".repeat(9000)} ${secret} ${"y".repeat(20_000)}`;
    const reference = (context: ScriptContext): JsonObject => ({
      id: /art_\w+/.exec(JSON.stringify(context.lastToolResult))![0],
    });
    const readers = [
      list(),
      wait({ targets: ["/root/short", "/root/long"] }),
      call("read_artifact", reference),
    ];
    await using h = await harness({
      store,
      scripts: {
        "/root/short": [say(secret)],
        "/root/long": [say(long)],
        "/root/same": [...readers, repeat(say("read"))],
      },
      runtime: { secrets: [WORD] },
      others: { other: scripted({ "/root/other": [...readers, repeat(say("read"))] }) },
    });
    for (const name of ["short", "long"]) await (await h.tree.root.spawn(name, "go")).work.outcome();
    const outputs = async (name: string, provider: string): Promise<readonly unknown[]> => {
      const { agent, work } = await h.tree.root.spawn(name, "look", { provider });
      expect(await work.outcome()).toMatchObject({ ending: "completed", text: "read" });
      const items = await agent.transcript();
      return items.filter((item) => item.kind === "tool_result").map((item) => item.output);
    };
    const told = await outputs("other", "other");
    expect(told).toHaveLength(3);
    expect(told.map(leaks)).toEqual([false, false, false]);
    expect(JSON.stringify(told[2])).toContain("xxx");
    // An agent of the same provider reads it as it was said.
    expect((await outputs("same", "scripted")).map(leaks)).toEqual([true, true, true]);
  });
});
