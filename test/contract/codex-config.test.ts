/** What a child is made of under the `codex` profile: how much history, which model and effort, and what a role may say. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { loadRoles } from "../../src/policy/roles.ts";
import { followUp, list, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { codex, listed, requestOf, turn } from "../support/codex.ts";
import { type Harness, STORES } from "../support/harness.ts";

const MODELS = {
  small: { efforts: ["low", "high"], defaultEffort: "low" },
  large: { efforts: ["low", "high", "highest"], defaultEffort: "high" },
  leaf: { efforts: ["low"], defaultEffort: "low", collaborates: false },
};
const SIX = ["spawn_agent", "send_message", "followup_task", "wait_agent", "interrupt_agent", "list_agents"];

const shell = defineTool({
  name: "shell",
  input: z.strictObject({}),
  effects: ["execute"],
  run: () => "ran",
});
const look = defineTool({ name: "look", input: z.strictObject({}), effects: ["read"], run: () => "seen" });
const tools = [shell, look];

const roleFile = (name: string, lines: readonly string[], body: string) => ({
  file: `${name}.md`,
  bytes: new TextEncoder().encode(["---", ...lines, "---", body].join("\n")),
});

const roles = loadRoles(
  [
    roleFile(
      "critic",
      [
        "description: Finds fault.",
        "model: large",
        "effort: highest",
        "sandbox_mode: danger-full-access",
        "approval_policy: never",
        "model_provider: other",
        "mcp_servers: { files: { command: files } }",
        "tools: { shell: false }",
      ],
      "You find fault.",
    ),
    roleFile("plain", ["description: Is plain.", "nickname: Atlas"], "You are plain."),
    roleFile(
      "stray",
      ["description: Would go elsewhere.", "model: other/giant", "effects: [read, write, execute]"],
      "",
    ),
  ],
  tools,
);

async function configOf(h: Harness, path: string) {
  return (await (await h.tree.agent(path)).record()).config;
}

/** The model, effort and tools of an agent's first request. */
function askedOf(h: Harness, path: string) {
  const request = h.provider.requests(path)[0]!;
  return { model: request.model, effort: request.effort, tools: request.tools.map(({ name }) => name) };
}

function withModels(
  store: "memory" | "sqlite",
  runtime: NonNullable<Parameters<typeof codex>[1]>["runtime"] = {},
) {
  return codex(store, {
    scripts: { "*": [say("done"), say("done"), say("done")] },
    scripted: { models: MODELS },
    runtime: { tools, roles, ...runtime },
  });
}

describe.each(STORES)("configuration on %s", (store) => {
  test("B9 a fork count takes that many of the latest turns", async () => {
    await using h = await withModels(store);
    for (const text of ["first", "second"]) {
      h.provider.append("/root", say(`answer to ${text}`));
      await h.ask(text);
    }
    await turn(
      h,
      together(spawn("one", "look", { fork_turns: "1" }), spawn("two", "look", { fork_turns: "2" })),
    );
    await h.tree.idle();
    const inherited = (name: string) =>
      requestOf(h, `/root/${name}`, 0).filter((words) => !words.startsWith("[runtime:"));
    expect(inherited("one")).toEqual(["[inherited]\ngo on", "NEW_TASK from /root: look"]);
    expect(inherited("two")).toEqual([
      "[inherited]\nsecond",
      "said answer to second",
      "[inherited]\ngo on",
      "NEW_TASK from /root: look",
    ]);
    const notices = requestOf(h, "/root/one", 0).filter((words) =>
      words.startsWith("[runtime: inherited_history]"),
    );
    expect(notices).toHaveLength(1);
  });

  test("B11 a full fork takes another model or effort, and a model without the tools makes a leaf", async () => {
    await using h = await withModels(store, { limits: { running: 5 } });
    const made = await turn(
      h,
      together(
        spawn("same", "look"),
        spawn("other", "look", { model: "large" }),
        spawn("harder", "look", { reasoning_effort: "high" }),
        spawn("both", "look", { model: "large", reasoning_effort: "highest", fork_turns: "all" }),
        spawn("leaf", "look", { model: "leaf" }),
      ),
    );
    expect(made.map(({ isError }) => isError)).toEqual(Array(5).fill(false));
    await h.tree.idle();
    const all = [...SIX, "shell", "look"];
    expect(askedOf(h, "/root/same")).toEqual({ model: "small", effort: "low", tools: all });
    expect(askedOf(h, "/root/other")).toEqual({ model: "large", effort: "high", tools: all });
    expect(askedOf(h, "/root/harder")).toEqual({ model: "small", effort: "high", tools: all });
    expect(askedOf(h, "/root/both")).toEqual({ model: "large", effort: "highest", tools: all });
    expect(askedOf(h, "/root/leaf")).toEqual({ model: "leaf", effort: "low", tools: ["shell", "look"] });
    for (const name of ["same", "other", "harder", "both", "leaf"]) {
      expect(requestOf(h, `/root/${name}`, 0)[0]).toBe("[inherited]\ngo on");
    }
    expect((await configOf(h, "/root/leaf")).leaf).toBe(true);
  });

  test("U-66 a fork count above what there is leaves out what the parent has itself inherited", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [say("one"), spawn("b", "look", { fork_turns: "9" }), say("two")],
        "/root/a/b": [say("three")],
      },
    });
    await turn(h, spawn("a", "count"));
    await h.tree.idle();
    expect(requestOf(h, "/root/a", 0)[0]).toBe("[inherited]\ngo on");
    await turn(h, followUp("a", "have it looked at"));
    await h.tree.idle();
    const seen = requestOf(h, "/root/a/b", 0).filter((words) => !words.startsWith("[runtime:"));
    expect(seen).toEqual(["said one", "NEW_TASK from /root/a: look"]);
  });

  test("U-67 a fork leaves the parent's hints behind and takes unrelated text along", async () => {
    await using h = await codex(store, {
      scripts: { "*": [say("done")] },
      tree: { modeHint: "Delegate little." },
    });
    await turn(h);
    await turn(h, together(spawn("one", "look", { fork_turns: "2" }), spawn("all", "look")));
    await h.tree.idle();
    for (const name of ["one", "all"]) {
      const { messages } = h.provider.requests(`/root/${name}`)[0]!;
      const texts = messages.flatMap((message) => ("text" in message ? [message.text] : []));
      // Its own, behind what it has inherited.
      const hints = texts.map((text) => text.includes("Delegate little."));
      expect(hints.filter(Boolean)).toHaveLength(1);
      expect(hints.indexOf(true)).toBeGreaterThan(texts.lastIndexOf("[inherited]\ngo on"));
      expect(texts.filter((text) => text === "[inherited]\ngo on")).toHaveLength(2);
    }
  });

  test("U-148 a child has the model and effort of the turn that spawns it", async () => {
    await using h = await withModels(store);
    h.provider.append("/root", spawn("a", "look"), say("done"));
    const work = await h.tree.root.send("go on", { model: "large", effort: "highest" });
    await work.outcome();
    await h.tree.idle();
    expect(askedOf(h, "/root/a")).toMatchObject({ model: "large", effort: "highest" });
    expect(await configOf(h, "/root")).toMatchObject({ model: "small", effort: "low" });
  });

  test("B46 U-98 a role sets model, effort and instructions and takes tools away, and touches nothing else", async () => {
    await using h = await withModels(store);
    const [made] = await turn(
      h,
      spawn("critic", "look", {
        agent_type: "critic",
        model: "small",
        reasoning_effort: "low",
        fork_turns: "1",
      }),
    );
    expect(made!.output).toEqual({ task_name: "/root/critic" });
    await h.tree.idle();
    expect(askedOf(h, "/root/critic")).toEqual({
      model: "large",
      effort: "highest",
      tools: [...SIX, "look"],
    });
    expect(requestOf(h, "/root/critic", 0).slice(0, 2)).toEqual([
      "system: You find fault.",
      "[inherited]\ngo on",
    ]);
    const [own, parent] = [await configOf(h, "/root/critic"), await configOf(h, "/root")];
    expect([own.effects, own.provider, own.workspace]).toEqual([
      parent.effects,
      parent.provider,
      parent.workspace,
    ]);
    const ignored = own.adjustments.filter(({ effect }) => effect === "ignored").map(({ field }) => field);
    expect(ignored.toSorted()).toEqual(["approval_policy", "mcp_servers", "model_provider", "sandbox_mode"]);
  });

  test("B46 a role cannot widen what its parent may do, nor move the provider", async () => {
    const other = scripted({}, { models: { giant: {} } });
    await using h = await withModels(store);
    const runtime = await h.newRuntime({ providers: { scripted: h.provider, other } });
    await using tree = await runtime.openTree({ provider: "scripted", effects: ["read"] });
    const { agent, work } = await tree.root.spawn("stray", "look", { role: "stray" });
    await work.outcome();
    const { config } = await agent.record();
    expect(config).toMatchObject({
      provider: "scripted",
      model: "small",
      effects: ["read"],
      tools: ["look"],
    });
    expect(config.adjustments.map(({ field, effect }) => [field, effect])).toEqual([
      ["effects", "ignored"],
      ["model", "ignored"],
    ]);
    expect(other.requests("/root/stray")).toEqual([]);
    await runtime.close();
  });

  test("U-161 U-165 U-166 U-182 a role that says nothing of it leaves model, effort, tools and defaults as they are", async () => {
    await using h = await withModels(store, { subagents: { model: "large", effort: "highest" } });
    await turn(
      h,
      together(
        spawn("none", "look"),
        spawn("default", "look", { agent_type: "default" }),
        spawn("plain", "look", { agent_type: "plain" }),
      ),
    );
    await h.tree.idle();
    const { role: _role, policyHash: _hash, instructions: none, ...bare } = await configOf(h, "/root/none");
    expect(none).toBeNull();
    expect(bare).toMatchObject({
      model: "large",
      effort: "highest",
      tools: ["shell", "look"],
      adjustments: [],
    });
    expect(await configOf(h, "/root/default")).toMatchObject({
      ...bare,
      role: "default",
      instructions: null,
    });
    expect(await configOf(h, "/root/plain")).toMatchObject({
      ...bare,
      role: "plain",
      instructions: "You are plain.",
    });
  });

  test("U-126 neither depth nor the number of children is limited", async () => {
    const deep = Array.from({ length: 7 }, (_, level) => `/root${"/a".repeat(level + 1)}`);
    await using h = await codex(store, {
      scripts: Object.fromEntries(deep.map((path) => [path, [spawn("a", "go deeper"), say("done")]])),
      scripted: { otherwise: say("deepest") },
      runtime: { limits: { running: 20, depth: 2, directChildren: 2 } },
    });
    const wide = ["b", "c", "d", "e"].map((name) => spawn(name, "look"));
    const made = await turn(h, together(spawn("a", "go deeper"), ...wide));
    expect(made.every(({ isError }) => !isError)).toBe(true);
    await h.tree.idle();
    expect((await h.tree.list()).agents.map(({ path }) => path)).toContain(`/root${"/a".repeat(8)}`);
    const [agents] = await turn(h, list({ path_prefix: "a/a/a/a/a/a/a" }));
    expect(listed(agents)).toEqual([
      [`/root${"/a".repeat(7)}`, { completed: "done" }],
      [`/root${"/a".repeat(8)}`, { completed: "deepest" }],
    ]);
  });
});
