/** Agents that speak ACP as they are, against a model on loopback: the adapter's conformance, and a tree with each at its root. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAcpProvider } from "../../src/providers/acp/acp-provider.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import { createGates } from "../../src/providers/scripted/gates.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { RuntimeOptions } from "../../src/runtime/options.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../src/testing/provider-conformance-native.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { claudeHome } from "./support/claude.ts";
import { codexHome } from "./support/codex.ts";
import type { Home } from "./support/home.ts";
import { openCodeHome } from "./support/opencode.ts";
import { findReal, type ProgramName } from "./support/programs.ts";

interface Agent {
  readonly name: ProgramName;
  readonly home: (server: ModelServer) => Home;
  readonly args?: readonly string[];
  readonly mode?: string;
  /** What the checks want of a model that this program does not make of it. */
  readonly leftOut: readonly string[];
  /** What a model does at which a turn fails that was accepted; an answer with 500 unless given. */
  readonly failure?: string;
  /** It never hangs up on the model. */
  readonly stays?: boolean;
  /** What stands before a tool of ours, where the program has others of the same name. */
  readonly before?: string;
  /** It does not say what it has used. */
  readonly silent?: boolean;
}

/** Nobody has a stable way to ask a question. */
const QUESTION = "asks the user a question, and answers to nothing twice";
/** It says something of its own around every answer, so that none is empty, and none is refused before its first word. */
const EMPTY = "takes an empty answer for one";
const REFUSAL = "P4 refuses before acceptance, with an error of its kinds and no event";

const agents: readonly Agent[] = [
  {
    name: "claude-acp",
    // Without it its model would have to search for our tools first.
    home: (server) => claudeHome(server, { ENABLE_TOOL_SEARCH: "false" }),
    mode: "default",
    leftOut: [QUESTION, EMPTY, REFUSAL],
  },
  { name: "codex-acp", home: codexHome, mode: "agent-full-access", leftOut: [QUESTION, EMPTY, REFUSAL] },
  {
    name: "zed-codex-acp",
    home: (server) => codexHome(server, { tables: [] }),
    leftOut: [QUESTION, EMPTY, REFUSAL],
    stays: true,
    before: "mcp__coppice.",
    silent: true,
  },
  {
    name: "opencode",
    home: openCodeHome,
    args: ["acp"],
    leftOut: [QUESTION],
    // It tries what fails with 500 again, for longer than a test waits, and says nothing before it has failed.
    failure: `${ask.call("glob", { pattern: "*" })} ${ask.error(400)}`,
  },
];

/** For an answer, on a machine that may be busy. */
const BUSY_MS = 240_000;

function adapterAt({ name, args = [], mode }: Agent, home: Home): NativeAdapter {
  const found = findReal(name);
  if ("missing" in found) throw new Error(found.missing);
  const adapter = createAcpProvider({
    command: found.command,
    args: [...found.args, ...args],
    env: home.env,
    deadlineMs: BUSY_MS,
    ...(mode === undefined ? {} : { mode }),
  });
  return {
    ...adapter,
    openSession: (input) => adapter.openSession({ ...input, workspace: home.workspace }),
  };
}

const scripts = ({ failure = ask.error(500) }: Agent): Readonly<Record<NativeBehaviour, string>> => ({
  text: ask.text("one"),
  empty: ask.empty(),
  calls: `${ask.call("look", { at: "a" })} ${ask.text("seen")}`,
  question: ask.text("one"),
  silence: `${ask.text("one")} ${ask.hold()}`,
  refusal: ask.error(400),
  failure,
});

describe.for(agents.map((agent) => [agent.name, agent] as const))("%s", ([name, agent]) => {
  const found = findReal(name);
  const why = "missing" in found ? ` (${found.missing})` : "";

  describe.skipIf(why !== "")(`the provider of ACP with it${why}`, () => {
    const checks = nativeProviderConformance(async (behaviour) => {
      const server = await startModelServer({ unscripted: scripts(agent)[behaviour] });
      const home = agent.home(server);
      return {
        adapter: adapterAt(agent, home),
        reopen: () => adapterAt(agent, home),
        kill: () => home.kill(),
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      };
    });
    test.for(
      checks
        .filter(({ title }) => !agent.leftOut.includes(title))
        .map(({ title, run }) => [title, run] as const),
    )("%s", async ([, run]) => run());
  });

  describe.skipIf(why !== "")(`a tree with it at its root${why}`, () => {
    const CHILD = { fork_turns: "none", provider: "scripted" };
    const gates = createGates();
    let server: ModelServer;
    beforeAll(async () => {
      server = await startModelServer();
    });
    afterAll(() => server[Symbol.asyncDispose]());

    const open = (home: Home, more: Partial<RuntimeOptions> = {}) =>
      createRuntime({
        store: createMemoryStore(),
        providers: {
          acp: adapterAt(agent, home),
          scripted: scripted({ "/root/one": [gate("g"), repeat(say("ONE"))] }, { gates }),
        },
        ...more,
      });

    test("RUN-5 it spawns a child on another provider over the bridge, waits for it, and gets its result", async () => {
      await using runtime = await open(agent.home(server));
      const tree = await runtime.openTree({ provider: "acp" });
      const { before = "" } = agent;
      const work = await tree.root.send(
        [
          ask.call(`${before}spawn_agent`, { task_name: "one", message: "go", ...CHILD }),
          ask.call(`${before}wait_agent`, { targets: ["one"] }),
          ask.text("it is done"),
        ].join(" "),
      );
      for await (const event of tree.events({ after: 0 }))
        if (["wait.started", "work.ended"].includes(event.type) && event.path === "/root") break;
      gates.open("g");
      const outcome = await work.outcome();
      expect(outcome).toMatchObject({
        ending: "completed",
        text: expect.stringContaining("it is done"),
      });
      expect(JSON.stringify(server.requests.at(-1)!.body)).toContain("ONE");
      const { usage } = await tree.root.record();
      expect(usage.complete).toBe(agent.silent !== true);
    });

    test("C4.15 S1-61 a killed program is resumed by the next message, in the same conversation", async () => {
      const home = agent.home(server);
      await using runtime = await open(home);
      const tree = await runtime.openTree({ provider: "acp" });
      await (await tree.root.send(ask.text("first words"))).outcome();
      home.kill();
      const work = await tree.root.send(ask.text("second words"));
      expect(await work.outcome()).toMatchObject({
        ending: "completed",
        text: expect.stringContaining("second words"),
      });
      expect(JSON.stringify(server.requests.at(-1)!.body)).toContain("first words");
    });

    test("INT-3 an interrupt reaches the model, and the next run goes on", async () => {
      await using runtime = await open(agent.home(server));
      const tree = await runtime.openTree({ provider: "acp" });
      const work = await tree.root.send(`${ask.text("wait")} ${ask.hold()}`);
      const request = await server.next(({ prompt }) => prompt.includes("HOLD"));
      await request.sent;
      await tree.root.interrupt();
      expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
      if (agent.stays !== true) expect(await request.closed).toBe("gone");
      const next = await tree.root.send(ask.text("on we go"));
      expect(await next.outcome()).toMatchObject({
        ending: "completed",
        text: expect.stringContaining("on we go"),
      });
    });

    test("REC-4 nothing is left when the runtime is closed", async () => {
      const home = agent.home(server);
      const runtime = await open(home);
      const tree = await runtime.openTree({ provider: "acp" });
      await (await tree.root.send(ask.text("hello"))).outcome();
      expect(home.processes()).not.toEqual([]);
      await runtime.close();
      await waitUntil("its processes are gone", () => home.processes().length === 0, { steps: 200_000 });
    });

    test("RUN-4 a model that fails fails the run, with its words", async () => {
      await using runtime = await open(agent.home(server));
      const tree = await runtime.openTree({ provider: "acp" });
      const work = await tree.root.send(agent.failure ?? ask.error(400));
      expect(await work.outcome()).toMatchObject({
        ending: "provider_error",
        error: { message: expect.stringContaining("scripted failure 400") },
      });
    });
  });
});

describe.skipIf("missing" in findReal("claude-acp"))("approvals of claude-acp", () => {
  test("WAI-2 a command waits in the inbox, with its arguments, and is run when it was approved", async () => {
    await using server = await startModelServer();
    const [agent] = agents;
    const home = agent!.home(server);
    await using runtime = await createRuntime({
      store: createMemoryStore(),
      providers: { acp: adapterAt(agent!, home) },
    });
    const tree = await runtime.openTree({ provider: "acp" });
    const command = { command: "touch made-by-it", description: "makes a file" };
    const work = await tree.root.send(`${ask.call("Bash", command)} ${ask.text("made")}`);
    for await (const event of tree.events({ after: 0 }))
      if (["request.opened", "work.ended"].includes(event.type)) break;
    const [request] = await tree.requests();
    expect(request).toMatchObject({ kind: "approval", about: { tool: "Bash" } });
    expect(JSON.parse(request!.about!.input)).toMatchObject({ command: "touch made-by-it" });
    await tree.answer(request!.id, { verdict: "approved", note: null });
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(JSON.stringify(await tree.root.transcript())).toContain("touch made-by-it");
  });
});
