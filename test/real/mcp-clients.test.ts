/**
 * Real agents as clients of `coppice mcp`, set up by `coppice setup` in a home of their own: each gives an agent of its tree a
 * task, waits for it and gets its result.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "vitest";
import { delay, systemClock } from "../../src/platform/clock.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { BIN, NODE } from "../support/cli.ts";
import { claudeHome, type ClaudeModule, claudeOptions } from "./support/claude.ts";
import { codexHome, speakCodex } from "./support/codex.ts";
import type { Home } from "./support/home.ts";
import { openCodeHome, serveOpenCode } from "./support/opencode.ts";
import { testReal } from "./support/test-real.ts";

const PROMPT = [
  ask.call("spawn_agent", { task_name: "one", message: "hello" }),
  ask.call("wait_agent", {}),
  ask.text("finished"),
].join(" ");

function setUp(client: string, home: Home): void {
  execFileSync(NODE, [BIN, "setup", client, "--provider", "echo", "--store", join(home.path, "store.db")], {
    cwd: home.workspace,
    env: home.env,
  });
}

/** The client was told what its agent has answered, and the tree says who has asked for it. */
async function expectAsked(server: ModelServer, home: Home): Promise<void> {
  const told = JSON.stringify(server.requests.at(-1)!.body);
  expect(told.includes("echo heard")).toBe(true);
  const store = await openSqliteStore({ path: join(home.path, "store.db") });
  await using _closed = { [Symbol.asyncDispose]: () => store.close() };
  const { trees, works } = await store.read((view) => {
    const { rows } = view.treeIds({ limit: 10 });
    return { trees: rows.map((id) => view.agent(id)!), works: view.works(rows[0]!, { limit: 10 }).rows };
  });
  expect(trees).toMatchObject([{ hostDriven: true, config: { workspace: home.workspace } }]);
  expect(works).toMatchObject([{ executorPath: "/root/one", outcome: { ending: "completed" } }]);
}

testReal("codex", "is a client of `coppice mcp`, as `coppice setup codex` makes it", async (codex) => {
  await using server = await startModelServer();
  const home = codexHome(server);
  setUp("codex", home);
  const { request, told, peer, program } = await speakCodex(codex, home, {
    onRequest: async () => ({}),
  });
  const { thread } = await request("thread/start", { cwd: home.workspace });
  // Its first turn would go without the tools of servers that are yet starting.
  await told.next(
    ({ method, params }) => method === "mcpServer/startupStatus/updated" && params.status === "ready",
  );
  await request("turn/start", { threadId: thread.id, input: [{ type: "text", text: PROMPT }] });
  const ended = await told.next(({ method }) => method === "turn/completed");
  expect(ended.params.turn.status).toBe("completed");
  await peer.end({ graceMs: 30_000 });
  await program.ended;
  await expectAsked(server, home);
});

testReal(
  "claude",
  "is a client of `coppice mcp`, as `coppice setup claude-code` makes it",
  async (claude) => {
    await using server = await startModelServer();
    const home = claudeHome(server);
    setUp("claude-code", home);
    const { query } = (await import(claude.module!)) as ClaudeModule;
    const connected = Promise.withResolvers<void>();
    const prompts = (async function* () {
      await connected.promise;
      yield { type: "user", message: { role: "user", content: PROMPT }, parent_tool_use_id: null };
    })();
    const options = {
      ...claudeOptions(claude, home),
      settingSources: ["user"],
      strictMcpConfig: false,
      allowedTools: ["mcp__coppice"],
    };
    const session = query({ prompt: prompts, options });
    await waitUntil(
      "its servers are there",
      async () => (await session.mcpServerStatus()).some(({ status }) => status === "connected"),
      { step: () => delay(systemClock, 50) },
    );
    connected.resolve();
    for await (const message of session)
      if (message.type === "result")
        expect(message).toMatchObject({ subtype: "success", result: "finished" });
    await expectAsked(server, home);
  },
);

testReal(
  "opencode",
  "is a client of `coppice mcp`, as `coppice setup opencode` makes it",
  async (openCode) => {
    await using server = await startModelServer();
    const home = openCodeHome(server);
    setUp("opencode", home);
    const { request, program } = await serveOpenCode(openCode, home);
    const { id } = await request("POST", "/session", {});
    const answer = await request("POST", `/session/${id}/message`, {
      parts: [{ type: "text", text: PROMPT }],
    });
    expect(answer.parts).toContainEqual(expect.objectContaining({ type: "text", text: "finished" }));
    await program.end({ graceMs: 100 });
    await expectAsked(server, home);
  },
);
