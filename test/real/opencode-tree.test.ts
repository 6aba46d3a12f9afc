/** A tree with OpenCode at its root, against a model on loopback: children, questions, approvals, policy, forks, crashes. */
import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGates } from "../../src/providers/scripted/gates.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import type { OpenCodeOptions } from "../../src/providers/opencode/opencode-provider.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import type { Home } from "./support/home.ts";
import { openCodeAdapter, openCodeHome } from "./support/opencode.ts";
import { findReal } from "./support/programs.ts";

const openCode = findReal("opencode");

describe.skipIf("missing" in openCode)("a tree with OpenCode at its root", () => {
  const CHILD = { fork_turns: "none", provider: "scripted" };
  const gates = createGates();
  let server: ModelServer;
  beforeAll(async () => {
    server = await startModelServer();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  function open(home: Home, more: OpenCodeOptions = {}) {
    if ("missing" in openCode) throw new Error(openCode.missing);
    return createRuntime({
      store: createMemoryStore(),
      providers: {
        opencode: openCodeAdapter(openCode, home, more),
        scripted: scripted(
          { "/root/one": [gate("g"), repeat(say("ONE"))], "/root/two": [gate("g"), repeat(say("TWO"))] },
          { gates },
        ),
      },
    });
  }

  /** What it asks for, from the call on. */
  async function asked(tree: TreeHandle, work: { readonly outcome: () => Promise<unknown> }) {
    const over = work
      .outcome()
      .then((outcome) => expect.unreachable(`it has ended: ${JSON.stringify(outcome)}`));
    const opened = (async () => {
      for await (const event of tree.events({ after: 0 })) {
        if (event.type !== "request.opened") continue;
        const [request] = await tree.requests();
        if (request !== undefined) return request;
      }
      return expect.unreachable("its events have ended");
    })();
    return Promise.race([opened, over]);
  }

  test("RUN-5 REC-4 it spawns two children on another provider, waits for both, and answers; nothing is left", async () => {
    const home = openCodeHome(server);
    const runtime = await open(home);
    const tree = await runtime.openTree({ provider: "opencode", instructions: "Speak in verse." });
    const script = [
      ask.call("spawn_agent", { task_name: "one", message: "go", ...CHILD }),
      ask.and("spawn_agent", { task_name: "two", message: "go", ...CHILD }),
      ask.call("wait_agent", { targets: ["one", "two"] }),
      ask.text("both are done"),
    ];
    const work = await tree.root.send(script.join(" "));
    for await (const event of tree.events({ after: 0 }))
      if (["wait.started", "work.ended"].includes(event.type) && event.path === "/root") break;
    gates.open("g");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "both are done" });
    const { said, tools } = server.requests.at(-1)!;
    const told = JSON.stringify(said);
    expect(told).toContain("ONE");
    expect(told).toContain("TWO");
    expect(told).toContain("Speak in verse.");
    // None of its own agents.
    expect(tools.map(({ name }) => name)).not.toContain("task");
    const { usage } = await tree.root.record();
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(usage.complete).toBe(true);
    expect(home.processes()).not.toEqual([]);
    await runtime.close();
    await waitUntil("its processes are gone", () => home.processes().length === 0, { steps: 200_000 });
  });

  test("C8.1 SEC-1 POL-2 its own agents are shown with what they said, have no tools of the tree, and take all effects", async () => {
    const home = openCodeHome(server);
    const before = server.requests.length;
    await using runtime = await open(home, { nativeAgents: true, isolated: true });
    const tree = await runtime.openTree({ provider: "opencode" });
    const prompt = `${ask.call("bash", { command: "echo hi", description: "say hi" })} ${ask.text("found by its own")}`;
    const task = { description: "look", prompt, subagent_type: "general" };
    const work = await tree.root.send(`${ask.call("task", task)} ${ask.text("all done")}`);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "all done" });
    const told = (await tree.log()).filter(({ type }) => type.startsWith("child."));
    expect(told.map(({ type, data }) => [type, data["prompt"] ?? data["text"]])).toEqual([
      ["child.started", prompt],
      ["child.ended", "found by its own"],
    ]);
    const below = server.requests.filter((one) => one.prompt === prompt);
    expect(
      below
        .flatMap(({ tools }) => tools.map(({ name }) => name))
        .filter((name) => name.startsWith("coppice")),
    ).toEqual([]);
    const { usage } = await tree.root.record();
    expect(usage.inputTokens).toBe(10 * (server.requests.length - before));
    await expect(runtime.openTree({ provider: "opencode", effects: ["read"] })).rejects.toMatchObject({
      code: "POLICY_UNMET",
    });
  });

  test("SPN-1 SEC-1 a child on OpenCode calls in its own name, in the same server, and sees no tools but its own", async () => {
    const home = openCodeHome(server);
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "opencode" });
    const task = `${ask.call("send_message", { target: "/root", message: "here I am" })} ${ask.text("sent")}`;
    const spawn = { task_name: "w", message: task, fork_turns: "none", provider: "opencode" };
    const script = [
      ask.call("spawn_agent", spawn),
      ask.call("wait_agent", { targets: ["w"] }),
      ask.text("it is done"),
    ];
    const work = await tree.root.send(script.join(" "));
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const sent = (await tree.root.transcript()).filter(
      ({ kind }) => kind === "mail" || kind === "tool_result",
    );
    expect(JSON.stringify(sent)).toMatch(/\/root\/w[^]*here I am/);
    for (const { tools } of server.requests.slice(-2))
      expect(tools.filter(({ name }) => name.endsWith("_spawn_agent"))).toHaveLength(1);
    // Not the shell that waits in the group for the end of whoever has started it.
    const servers = home.processes().filter((command) => /^[^ ]*opencode serve /.test(command));
    expect(servers).toHaveLength(1);
  });

  test("WAI-2 INT-3 INT-6 it asks its user, and for approvals; an interrupt cancels that, reaches the model, and the next run goes on", async () => {
    const home = openCodeHome(server);
    await using runtime = await open(home, { approvals: "untrusted" });
    const tree = await runtime.openTree({ provider: "opencode", workspace: home.workspace });
    const options = ["red", "blue"].map((label) => ({ label, description: "" }));
    const input = { questions: [{ question: "Which?", header: "W", options }] };
    const first = await tree.root.send(`${ask.call("question", input)} ${ask.text("thanks")}`);
    const question = await asked(tree, first);
    expect(question).toMatchObject({ kind: "question", text: "Which?\n- red\n- blue" });
    await tree.answer(question.id, "blue");
    expect(await first.outcome()).toMatchObject({ ending: "completed", text: "thanks" });
    expect(JSON.stringify(server.requests.at(-1)!.said)).toContain("blue");

    const write = (name: string) =>
      ask.call("write", { filePath: `${home.workspace}/${name}`, content: "hello" });
    const denied = await tree.root.send(`${write("no")} ${ask.text("denied")}`);
    const request = await asked(tree, denied);
    expect(request).toMatchObject({ kind: "approval", about: { tool: "write" } });
    await tree.answer(request.id, { verdict: "denied", note: "not there" });
    expect(await denied.outcome()).toMatchObject({ ending: "completed", text: "denied" });
    expect(JSON.stringify(server.requests.at(-1)!.said)).toContain("not there");
    expect(existsSync(`${home.workspace}/no`)).toBe(false);

    const again = await tree.root.send(`${write("yes")} ${ask.text("written")}`);
    await tree.answer((await asked(tree, again)).id, { verdict: "approved", note: null });
    expect(await again.outcome()).toMatchObject({ ending: "completed", text: "written" });
    expect(existsSync(`${home.workspace}/yes`)).toBe(true);

    const stopped = await tree.root.send(`${write("never")} ${ask.text("never said")}`);
    await asked(tree, stopped);
    await tree.root.interrupt();
    expect(await stopped.outcome()).toMatchObject({ ending: "interrupted" });
    expect(await tree.requests()).toEqual([]);

    const held = await tree.root.send(`${ask.text("so far")} ${ask.hold()}`);
    const holding = await server.next(({ prompt }) => prompt.includes("so far"));
    await holding.sent;
    await tree.root.interrupt();
    expect(await held.outcome()).toMatchObject({ ending: "interrupted" });
    expect(await holding.closed).toBe("gone");
    const next = await tree.root.send(ask.text("on we go"));
    expect(await next.outcome()).toMatchObject({ ending: "completed", text: "on we go" });
  });

  test("POL-2 an isolated agent has the tools that its effects allow, in its workspace; `execute` alone is refused", async () => {
    const home = openCodeHome(server);
    home.write("outside.txt", "the secret");
    await using runtime = await open(home, { isolated: true });
    const tree = await runtime.openTree({
      provider: "opencode",
      workspace: home.workspace,
      effects: ["read"],
    });
    const look = ask.call("read", { filePath: `${home.path}/outside.txt` });
    const work = await tree.root.send(`${look} ${ask.text("nothing to do")}`);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const { said, tools } = server.requests.at(-1)!;
    const offered = tools.map(({ name }) => name);
    expect(offered.filter((name) => !name.startsWith("coppice_")).toSorted()).toEqual([
      "glob",
      "grep",
      "question",
      "read",
      "todowrite",
    ]);
    expect(offered.some((name) => name.endsWith("_spawn_agent"))).toBe(true);
    expect(JSON.stringify(said)).not.toContain("the secret");
    await expect(runtime.openTree({ provider: "opencode", effects: ["execute"] })).rejects.toMatchObject({
      code: "POLICY_UNMET",
    });
  });

  test("S1-61 C4.15 a killed server is started anew by the next message, in the same conversation, which is forked", async () => {
    const home = openCodeHome(server);
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "opencode" });
    await (await tree.root.send(ask.text("first words"))).outcome();
    const cut = await tree.root.send(`${ask.text("never whole")} ${ask.hold()}`);
    await (
      await server.next(({ prompt }) => prompt.includes("never whole"))
    ).sent;
    home.kill();
    expect(await cut.outcome()).toMatchObject({ ending: expect.not.stringMatching("completed") });
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
});
