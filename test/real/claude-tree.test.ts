/** A tree with Claude at its root, against a model on loopback: children, questions, approvals, policy, forks, crashes. */
import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { delay, systemClock } from "../../src/platform/clock.ts";
import { createGates } from "../../src/providers/scripted/gates.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { ClaudeOptions } from "../../src/providers/claude/claude-provider.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { claudeAdapter, claudeHome } from "./support/claude.ts";
import type { Home } from "./support/home.ts";
import { findReal } from "./support/programs.ts";

const claude = findReal("claude");

describe.skipIf("missing" in claude)("a tree with Claude at its root", () => {
  const CHILD = { fork_turns: "none", provider: "scripted" };
  const gates = createGates();
  let server: ModelServer;
  beforeAll(async () => {
    server = await startModelServer();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function open(home: Home, more: ClaudeOptions = {}) {
    if ("missing" in claude) throw new Error(claude.missing);
    return createRuntime({
      store: createMemoryStore(),
      providers: {
        claude: await claudeAdapter(claude, home, more),
        scripted: scripted(
          { "/root/one": [gate("g"), repeat(say("ONE"))], "/root/two": [gate("g"), repeat(say("TWO"))] },
          { gates },
        ),
      },
    });
  }

  test("C8.1 SEC-1 POL-2 its own agents are shown with what they said, have no say in the tree, and take all effects", async () => {
    const before = server.requests.length;
    await using runtime = await open(claudeHome(server), { nativeAgents: true });
    const tree = await runtime.openTree({ provider: "claude" });
    const prompt = `${ask.call("spawn_agent", { task_name: "one", message: "go", ...CHILD })} ${ask.text("found by its own")}`;
    const call = { description: "look", prompt, subagent_type: "general-purpose", run_in_background: true };
    const work = await tree.root.send(`${ask.call("Agent", call)} ${ask.text("all done")}`);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "all done" });
    const told = (await tree.log()).filter(({ type }) => type.startsWith("child."));
    expect(told.map(({ type, data }) => [type, data["prompt"] ?? data["text"]])).toEqual([
      ["child.started", prompt],
      ["child.ended", "found by its own"],
    ]);
    expect((await tree.records()).map(({ path }) => path)).toEqual(["/root"]);
    const used = (await tree.root.record()).usage.inputTokens;
    expect(used).toBeGreaterThanOrEqual(10 * (server.requests.length - before));
    await expect(runtime.openTree({ provider: "claude", effects: ["read"] })).rejects.toMatchObject({
      code: "POLICY_UNMET",
    });
  });

  async function asked(tree: TreeHandle) {
    let found: Awaited<ReturnType<TreeHandle["requests"]>> = [];
    await waitUntil(
      "it has asked",
      async () => {
        found = await tree.requests();
        return found.length > 0;
      },
      { step: () => delay(systemClock, 20) },
    );
    return found[0]!;
  }

  /** Watched for from the call on. */
  async function firstProgress(tree: TreeHandle): Promise<void> {
    for await (const event of tree.events({ progress: true })) if (event.type === "progress") return;
  }

  test("RUN-5 it spawns two children on another provider, waits for both, and answers", async () => {
    const home = claudeHome(server);
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "claude", instructions: "Speak in verse." });
    const script = [
      ask.call("spawn_agent", { task_name: "one", message: "go", ...CHILD }),
      ask.and("spawn_agent", { task_name: "two", message: "go", ...CHILD }),
      ask.call("wait_agent", { targets: ["one", "two"] }),
      ask.text("both are done"),
    ];
    const work = await tree.root.send(script.join(" "));
    // Opened when they are waited for: a result that comes before that is put into the turn as a message.
    for await (const event of tree.events())
      if (event.type === "wait.started" && event.path === "/root") break;
    gates.open("g");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "both are done" });
    const { said, tools } = server.requests.at(-1)!;
    const told = JSON.stringify(said);
    expect(told).toContain("ONE");
    expect(told).toContain("TWO");
    expect(told).toContain("Speak in verse.");
    // None of its own agents.
    expect(tools.map(({ name }) => name).filter((name) => /^(Agent|Task|Workflow)/.test(name))).toEqual([]);
    const { usage } = await tree.root.record();
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(usage.complete).toBe(true);
  });

  test("WAI-2 INT-3 it asks the user, who answers; an interrupt reaches the model, and the next run goes on", async () => {
    await using runtime = await open(claudeHome(server));
    const tree = await runtime.openTree({ provider: "claude" });
    const options = ["red", "blue"].map((label) => ({ label, description: "" }));
    const input = { questions: [{ question: "Which?", header: "W", options, multiSelect: false }] };
    const work = await tree.root.send(`${ask.call("AskUserQuestion", input)} ${ask.text("thanks")}`);
    const question = await asked(tree);
    expect(question).toMatchObject({ kind: "question", text: "Which?\n- red\n- blue" });
    await tree.answer(question.id, "blue");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "thanks" });
    expect(JSON.stringify(server.requests.at(-1)!.said)).toContain("blue");

    // Long enough for a part of it to be shown.
    const partial = "so far ".repeat(100);
    const shown = firstProgress(tree);
    const held = await tree.root.send(`${ask.text(partial)} ${ask.hold()}`);
    const request = await server.next(({ prompt }) => prompt.includes("so far"));
    await shown;
    await tree.root.interrupt();
    expect(await held.outcome()).toMatchObject({ ending: "interrupted" });
    expect(await request.closed).toBe("gone");
    expect(await tree.root.transcript()).toContainEqual(
      expect.objectContaining({ kind: "assistant", phase: "partial" }),
    );
    const next = await tree.root.send(ask.text("on we go"));
    expect(await next.outcome()).toMatchObject({ ending: "completed", text: "on we go" });
  });

  test("INT-6 what it would ask its user about waits for an approval, and an interrupt cancels that", async () => {
    const home = claudeHome(server);
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "claude", workspace: home.workspace });
    const write = (name: string) =>
      ask.call("Write", { file_path: `${home.workspace}/${name}`, content: "hello" });
    const work = await tree.root.send(`${write("no")} ${ask.text("denied")}`);
    const request = await asked(tree);
    expect(request).toMatchObject({ kind: "approval", about: { tool: "Write" } });
    await tree.answer(request.id, { verdict: "denied", note: "not there" });
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "denied" });
    expect(JSON.stringify(server.requests.at(-1)!.said)).toContain("not there");
    const again = await tree.root.send(`${write("yes")} ${ask.text("written")}`);
    await tree.answer((await asked(tree)).id, { verdict: "approved", note: null });
    expect(await again.outcome()).toMatchObject({ ending: "completed", text: "written" });
    const stopped = await tree.root.send(`${write("never")} ${ask.text("never said")}`);
    await asked(tree);
    await tree.root.interrupt();
    expect(await stopped.outcome()).toMatchObject({ ending: "interrupted" });
    expect(await tree.requests()).toEqual([]);
  });

  test("POL-2 an agent has the tools that its effects allow, and `execute` alone is refused", async () => {
    await using runtime = await open(claudeHome(server));
    const tree = await runtime.openTree({ provider: "claude", effects: ["read"] });
    const work = await tree.root.send(ask.text("nothing to do"));
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const offered = server.requests.at(-1)!.tools.map(({ name }) => name);
    expect(offered.filter((name) => !name.startsWith("mcp__coppice__"))).toEqual([
      "AskUserQuestion",
      "Glob",
      "Grep",
      "Read",
    ]);
    expect(offered).toContain("mcp__coppice__spawn_agent");
    await expect(runtime.openTree({ provider: "claude", effects: ["execute"] })).rejects.toMatchObject({
      code: "POLICY_UNMET",
    });
  });

  test("POL-2 nothing of the user's settings is there, and words are no commands and name no files", async () => {
    const home = claudeHome(server);
    const hook = { type: "command", command: `touch ${home.path}/hooked` };
    const hooks = { UserPromptSubmit: [{ hooks: [hook] }], SessionStart: [{ hooks: [hook] }] };
    home.write(".claude/settings.json", JSON.stringify({ hooks, env: { LEAKED: "yes" } }));
    home.write(".claude/CLAUDE.md", "the user's memory");
    home.write("workspace/CLAUDE.md", "the project's memory");
    home.write("workspace/secret.txt", "the secret");
    const look = { command: "node", args: ["-e", `require("fs").writeFileSync("${home.path}/hooked", "")`] };
    home.write("workspace/.mcp.json", JSON.stringify({ mcpServers: { look } }));
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "claude", workspace: home.workspace, effects: [] });
    const work = await tree.root.send(`/clear @secret.txt @${home.workspace}/secret.txt ${ask.text("no")}`);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "no" });
    const { body, prompt } = server.requests.at(-1)!;
    expect(prompt).toContain("/clear @secret.txt");
    expect(JSON.stringify(body)).not.toMatch(/the secret|'s memory/);
    expect(existsSync(`${home.path}/hooked`)).toBe(false);
  });

  test("SPN-1 a child on Claude calls in its own name", async () => {
    await using runtime = await open(claudeHome(server));
    const tree = await runtime.openTree({ provider: "claude" });
    const task = `${ask.call("send_message", { target: "/root", message: "here I am" })} ${ask.text("sent")}`;
    const spawn = { task_name: "w", message: task, fork_turns: "none", provider: "claude" };
    const wait = ask.call("wait_agent", { targets: ["w"] });
    const script = [ask.call("spawn_agent", spawn), wait, ask.text("it is done")];
    const work = await tree.root.send(script.join(" "));
    // What comes meanwhile is put into the turn, and is the last that the model is told then.
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const sent = (await tree.root.transcript()).filter(
      ({ kind }) => kind === "mail" || kind === "tool_result",
    );
    expect(JSON.stringify(sent)).toMatch(/\/root\/w[^]*here I am/);
  });

  test("S1-61 C4.15 a killed program is started anew by the next message, in the same conversation", async () => {
    const home = claudeHome(server);
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "claude" });
    await (await tree.root.send(ask.text("first words"))).outcome();
    home.kill();
    const work = await tree.root.send(ask.text("second words"));
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "second words" });
    expect(JSON.stringify(server.requests.at(-1)!.said)).toContain("first words");

    const { thread } = await runtime.threads.fork(tree.id, { policy: { strategy: "native" } });
    const fork = await runtime.openTree({ id: thread.id });
    const forked = await fork.root.send(ask.text("of the fork"));
    expect(await forked.outcome()).toMatchObject({ ending: "completed", text: "of the fork" });
    expect(JSON.stringify(server.requests.at(-1)!.said)).toContain("second words");
    const { rows } = await runtime.threads.transfers(thread.id, { limit: 10 });
    expect(rows.find(({ type }) => type === "fork")).toMatchObject({
      resolution: { strategy: "native_fork" },
    });
  });

  test("REC-4 nothing is left when the runtime is closed", async () => {
    const home = claudeHome(server);
    const runtime = await open(home);
    const tree = await runtime.openTree({ provider: "claude" });
    await (await tree.root.send(ask.text("hello"))).outcome();
    expect(home.processes()).not.toEqual([]);
    await runtime.close();
    await waitUntil("its processes are gone", () => home.processes().length === 0);
  });
});
