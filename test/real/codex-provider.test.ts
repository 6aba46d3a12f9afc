/** Codex as it is, against a model on loopback: the adapter's conformance, and a tree with Codex at its root. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CodexOptions, createCodexProvider } from "../../src/providers/codex/codex-provider.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { createGates } from "../../src/providers/scripted/gates.ts";
import { gate, repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { RuntimeOptions } from "../../src/runtime/options.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { Driver, terminalOf } from "../../src/testing/native-driver.ts";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../src/testing/provider-conformance-native.ts";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { codexHome } from "./support/codex.ts";
import type { Home } from "./support/home.ts";
import { findReal } from "./support/programs.ts";

const codex = findReal("codex");

function adapterAt({ env }: Home, more: CodexOptions = {}): NativeAdapter {
  if ("missing" in codex) throw new Error(codex.missing);
  return createCodexProvider({ command: codex.command, args: codex.args, env, isolated: true, ...more });
}

const SCRIPTS: Readonly<Record<NativeBehaviour, string>> = {
  text: "@@TEXT one@@",
  empty: "@@EMPTY@@",
  calls: '@@CALL coppice.look {"at":"a"}@@ @@TEXT seen@@',
  question: "@@TEXT one@@",
  silence: "@@TEXT one@@ @@HOLD@@",
  refusal: "@@ERROR 400@@",
  failure: "@@ERROR 500@@",
};

/** What Codex has no way to do. */
const LEFT_OUT: readonly string[] = [
  // Its tool for it is offered in one mode alone.
  "asks the user a question, and answers to nothing twice",
  // It takes every turn, and tells a refusal as its end.
  "P4 refuses before acceptance, with an error of its kinds and no event",
];

describe.skipIf("missing" in codex)("the provider of Codex", () => {
  const checks = nativeProviderConformance(async (behaviour) => {
    const server = await startModelServer({ unscripted: SCRIPTS[behaviour] });
    const home = codexHome(server);
    const adapter = adapterAt(home);
    return {
      adapter,
      reopen: () => adapterAt(home),
      kill: () => home.kill(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });
  test.for(
    checks.filter(({ title }) => !LEFT_OUT.includes(title)).map(({ title, run }) => [title, run] as const),
  )("%s", async ([, run]) => run());
});

describe.skipIf("missing" in codex)("a tree with Codex at its root", () => {
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
        codex: adapterAt(home),
        scripted: scripted(
          { "/root/one": [gate("g"), repeat(say("ONE"))], "/root/two": [gate("g"), repeat(say("TWO"))] },
          { gates },
        ),
      },
      ...more,
    });

  test("RUN-5 it spawns two children on another provider, waits for both, and answers", async () => {
    await using runtime = await open(codexHome(server));
    const tree = await runtime.openTree({ provider: "codex" });
    const script = [
      `@@CALL coppice.spawn_agent ${JSON.stringify({ task_name: "one", message: "go", ...CHILD })}@@`,
      `@@AND coppice.spawn_agent ${JSON.stringify({ task_name: "two", message: "go", ...CHILD })}@@`,
      '@@CALL coppice.wait_agent {"targets":["one","two"]}@@',
      "@@TEXT both are done@@",
    ];
    const work = await tree.root.send(script.join(" "));
    // Opened when they are waited for: a result that comes before that is put into the turn as a message.
    for await (const event of tree.events())
      if (event.type === "wait.started" && event.path === "/root") break;
    gates.open("g");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "both are done" });
    const told = JSON.stringify(server.requests.at(-1)!.body.input);
    expect(told).toContain("ONE");
    expect(told).toContain("TWO");
    const { usage } = await tree.root.record();
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(usage.complete).toBe(true);
  });

  test("POL-2 an agent without `execute` has no commands, and one without `read` is refused", async () => {
    await using runtime = await open(codexHome(server));
    const tree = await runtime.openTree({ provider: "codex", effects: ["read"] });
    const work = await tree.root.send("@@TEXT nothing to do@@");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const offered = server.requests.at(-1)!.tools.map(({ name }) => name);
    expect(offered.filter((name) => /shell|exec|patch|search/.test(name))).toEqual([]);
    expect(offered.some((name) => name.includes("spawn_agent"))).toBe(true);
    await expect(runtime.openTree({ provider: "codex", effects: [] })).rejects.toMatchObject({
      code: "POLICY_UNMET",
    });
  });

  test("S1-61 C4.15 a killed server is resumed by the next message, in the same conversation", async () => {
    const home = codexHome(server);
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "codex" });
    await (await tree.root.send("@@TEXT first words@@")).outcome();
    home.kill();
    const work = await tree.root.send("@@TEXT second words@@");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "second words" });
    const told = JSON.stringify(server.requests.at(-1)!.body.input);
    expect(told).toContain("first words");
  });

  test("INT-3 an interrupt reaches the model, and the next run goes on", async () => {
    await using runtime = await open(codexHome(server));
    const tree = await runtime.openTree({ provider: "codex" });
    const work = await tree.root.send("@@TEXT wait@@ @@HOLD@@");
    const request = await server.next(({ prompt }) => prompt.includes("HOLD"));
    await request.sent;
    await tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect(await request.closed).toBe("gone");
    const next = await tree.root.send("@@TEXT on we go@@");
    expect(await next.outcome()).toMatchObject({ ending: "completed", text: "on we go" });
  });

  test("INT-7 a closed agent's turn is stopped on the server that others go on to use", async () => {
    const home = codexHome(server);
    await using runtime = await open(home);
    const tree = await runtime.openTree({ provider: "codex" });
    await (await tree.root.send("@@TEXT hello@@")).outcome();
    const { work } = await tree.root.spawn("n", "@@TEXT wait for the end@@ @@HOLD@@");
    const request = await server.next(({ prompt }) => prompt.includes("wait for the end"));
    await request.sent;
    await (await tree.agent("n")).close();
    expect(await work.outcome()).toMatchObject({ ending: "cancelled" });
    expect(await request.closed).toBe("gone");
    const next = await tree.root.send("@@TEXT on we go@@");
    expect(await next.outcome()).toMatchObject({ ending: "completed", text: "on we go" });
  });

  test.for(["interrupted", "closed"] as const)(
    "INT-3 INT-7 a turn that is %s before it has begun makes no request that stays open",
    async (how) => {
      const adapter = adapterAt(codexHome(server));
      const other = await Driver.open(adapter);
      const driver = await Driver.open(adapter);
      const { session, thread } = driver;
      const prompt = `@@TEXT ${how} too early@@ @@HOLD@@`;
      if (how === "closed") {
        const starting = driver.start(prompt).catch(() => undefined);
        await session.close();
        await starting;
      } else {
        const events = driver.turn(prompt);
        await session.interruptTurn(thread.ref, "turn-1");
        expect(terminalOf(await events).outcome).toBe("interrupted");
      }
      // Whatever was asked before it was stopped is hung up.
      await other.turn("@@TEXT on we go@@");
      const asked = server.requests.filter(({ prompt }) => prompt.includes(`${how} too early`));
      for (const { closed } of asked) expect(await closed).toBe("gone");
      await Promise.all([session.close(), other.session.close()]);
    },
  );

  const openWithAgents = (home: Home) =>
    createRuntime({
      store: createMemoryStore(),
      providers: { codex: adapterAt(home, { nativeAgents: true }) },
    });
  const toldOf = async (tree: TreeHandle) =>
    (await tree.log()).flatMap(({ type, data }) =>
      type.startsWith("child.") ? [[type, data["prompt"] ?? data["outcome"], data["text"] ?? ""]] : [],
    );

  test("C8.1 POL-2 its own agents are shown with what they said, are none of the tree's, and take all effects", async () => {
    await using runtime = await openWithAgents(codexHome(server));
    const tree = await runtime.openTree({ provider: "codex" });
    const script = [
      ask.call("collaboration.spawn_agent", {
        task_name: "alpha",
        message: ask.text("found by alpha"),
        fork_turns: "none",
      }),
      ask.call("collaboration.wait_agent", { timeout_ms: 60_000 }),
      ask.text("all done"),
    ];
    const work = await tree.root.send(script.join(" "));
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(await toldOf(tree)).toEqual([
      ["child.started", "/root/alpha", ""],
      ["child.ended", "completed", "found by alpha"],
    ]);
    const said = (await tree.root.transcript()).filter(({ kind }) => kind === "assistant");
    expect(
      JSON.stringify(
        said.flatMap((item) => ("parts" in item ? item.parts.filter(({ type }) => type === "text") : [])),
      ),
    ).not.toContain("found by alpha");
    expect((await tree.records()).map(({ path }) => path)).toEqual(["/root"]);
    await expect(runtime.openTree({ provider: "codex", effects: ["read"] })).rejects.toMatchObject({
      code: "POLICY_UNMET",
    });
  });

  test("C8.1 INT-3 with an interrupt its own agents are stopped, and the next run goes on", async () => {
    await using runtime = await openWithAgents(codexHome(server));
    const tree = await runtime.openTree({ provider: "codex" });
    const script = [
      ask.call("collaboration.spawn_agent", {
        task_name: "alpha",
        message: `${ask.text("alpha begins")} ${ask.hold()}`,
        fork_turns: "none",
      }),
      ask.call("collaboration.wait_agent", { timeout_ms: 60_000 }),
    ];
    const work = await tree.root.send(script.join(" "));
    const held = await server.next(
      ({ prompt }) => prompt.includes("alpha begins") && !prompt.includes("spawn_agent"),
    );
    await held.sent;
    await tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect(await held.closed).toBe("gone");
    expect((await toldOf(tree)).map(([, what]) => what)).toEqual(["/root/alpha", "interrupted"]);
    const next = await tree.root.send(ask.text("on we go"));
    expect(await next.outcome()).toMatchObject({ ending: "completed", text: "on we go" });
  });

  test("REC-4 nothing is left when the runtime is closed", async () => {
    const home = codexHome(server);
    const runtime = await open(home);
    const tree = await runtime.openTree({ provider: "codex" });
    await (await tree.root.send("@@TEXT hello@@")).outcome();
    expect(home.processes()).not.toEqual([]);
    await runtime.close();
    await waitUntil("its processes are gone", () => home.processes().length === 0);
  });
});
