/** SPN-5, SPN-7: what a child inherits of its parent's history, and the configuration that it keeps. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  followUp,
  gate,
  say,
  spawn,
  think,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { handoffOf } from "../../src/lineage/transfer.ts";
import { loadRoles } from "../../src/policy/roles.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

/** The child's first request, as roles and texts. */
function firstRequest(h: Harness, path: string): readonly string[] {
  const texts = h.provider.requests(path)[0]!.messages.map((message) => {
    if (message.role === "assistant")
      return `assistant: ${message.parts.map((part) => ("text" in part ? part.text : part.type)).join("|")}`;
    return `${message.role}: ${"text" in message ? message.text : "result"}`;
  });
  return texts.filter((text) => !text.startsWith("user: [runtime: mode_hint]"));
}

const ROLE = "---\nname: auditor\ndescription: reads only\n---\nRead, and say what you find.\n";

const NOTICE = expect.stringMatching(
  /^user: \[runtime: inherited_history\]\n.*history of \/root.*no permission.*still open in it belongs to \/root/s,
) as string;
const TASK = expect.stringContaining("Message Type: NEW_TASK") as string;

describe.each(STORES)("what a child inherits on %s", (store) => {
  test("SPN-5 `all`, omitted too: earlier runs and this run's input, cleaned, labelled, without the step that asks", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(
            think("secret thought"),
            say("interim words"),
            spawn("scout", "look", { fork_turns: "none" }),
          ),
          wait({ targets: ["scout"] }),
          say("first answer"),
          together(
            say("I ask two"),
            spawn("omitted", "task one"),
            spawn("all", "task two", { fork_turns: " ALL " }),
            spawn("none", "task three", { fork_turns: "none" }),
          ),
          say("second answer"),
          say("woken"),
          say("woken"),
          say("woken"),
        ],
        "/root/scout": [say("scouted")],
        "*": [gate("in"), say("ok")],
      },
    });
    await h.ask("first input");
    const second = await h.tree.root.send("second input");
    await h.provider.gates.arrived("in", 3);
    // Said after the calls: it is in no child's history.
    await h.tree.root.tell("too late");
    h.provider.gates.openAll();
    await second.outcome();
    const inherited = [
      "user: [inherited]\nfirst input",
      "assistant: first answer",
      "user: [inherited]\nsecond input",
      NOTICE,
      TASK,
    ];
    for (const name of ["omitted", "all"]) expect(firstRequest(h, `/root/${name}`)).toEqual(inherited);
    expect(firstRequest(h, "/root/none")).toEqual([TASK]);
    expect(firstRequest(h, "/root/omitted").at(-1)).toContain("task one");
    expect(firstRequest(h, "/root/omitted").join()).not.toMatch(
      /task two|task three|secret|interim|scouted|too late|I ask/,
    );
    const transfers = await look(h).transfers("subagent_spawn");
    expect(transfers.map(({ note, requestedStrategy, status }) => [note, requestedStrategy, status])).toEqual(
      [
        ["none", "none", "consumed"],
        ["all", "portable_context", "consumed"],
        ["all", "portable_context", "consumed"],
        ["none", "none", "consumed"],
      ],
    );
    for (const transfer of transfers) {
      expect(transfer).toMatchObject({
        consumedAt: expect.any(Number) as number,
        targetRunId: expect.stringMatching(/^run_/) as string,
      });
      const id = handoffOf(transfer);
      const handoff = id === null ? null : await look(h).view((view) => view.handoff(id));
      if (transfer.note === "none") expect(handoff).toBeNull();
      else expect(handoff).toMatchObject({ status: "ready", targetRunId: transfer.targetRunId });
    }
  });

  test("SPN-5 `N` counts runs started by a user or trigger-turn mail; wake runs go with the one before", async () => {
    const forks = ["1", "2", "3", "99"];
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          say("answer one"),
          // A child that is detached wakes the idle root by itself: that run counts with the second.
          spawn("waker", "go", { fork_turns: "none", detached: true }),
          say("answer two"),
          say("answer woken"),
          together(
            ...forks.map((turns) =>
              spawn(`n${turns}`, "task", { fork_turns: turns, detached: true, wake: "never" }),
            ),
          ),
          say("answer three"),
        ],
        "/root/waker": [gate("waker"), say("up")],
        "*": [say("ok")],
      },
    });
    await h.ask("input one");
    await h.ask("input two");
    h.provider.gates.open("waker");
    await look(h).until("the root was woken", async () => (await look(h).runs("/root")).length === 3);
    await h.tree.idle();
    await h.ask("input three");
    await h.tree.idle();
    const two = ["user: [inherited]\ninput two", "assistant: answer two", "assistant: answer woken"];
    const three = ["user: [inherited]\ninput three", NOTICE, TASK];
    const one = ["user: [inherited]\ninput one", "assistant: answer one"];
    expect(firstRequest(h, "/root/n1")).toEqual(three);
    expect(firstRequest(h, "/root/n2")).toEqual([...two, ...three]);
    expect(firstRequest(h, "/root/n3")).toEqual([...one, ...two, ...three]);
    expect(firstRequest(h, "/root/n99")).toEqual([...one, ...two, ...three]);
  });

  test("SPN-5 what is not understood is refused, never changed", async () => {
    const words = ["0", "-1", "banana", "1.5", "all 3"];
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(...words.map((word, at) => spawn(`w${at}`, "go", { fork_turns: word }))),
          say("done"),
        ],
      },
    });
    await h.ask("go");
    const outputs = await look(h).outputs("/root", "spawn_agent");
    expect(outputs.map(({ output }) => output["details"])).toEqual(
      words.map((value) => ({ argument: "fork_turns", value })),
    );
    expect((await h.tree.counts()).registered).toBe(1);
  });

  test("SPN-5 usage is not inherited, and a fork of a fork keeps the labels of both", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("a", "first task"), say("started"), say("woken")],
        "/root/a": [spawn("b", "second task"), say("waiting"), say("woken")],
        "/root/a/b": [gate("in"), say("ok")],
      },
    });
    const asked = await h.tree.root.send("input");
    await h.provider.gates.arrived("in");
    const child = await (await h.tree.agent("/root/a/b")).record();
    expect(child.usage).toMatchObject({ inputTokens: 0, outputTokens: 0 });
    expect((await (await h.tree.agent("/root/a")).record()).usage.inputTokens).toBeGreaterThan(0);
    const request = firstRequest(h, "/root/a/b");
    expect(request[0]).toBe("user: [inherited]\ninput");
    expect(request.at(-2)).toMatch(/history of \/root\/a,/);
    // The task of the parent is mail to it, and mail is not inherited.
    expect(request.join()).not.toContain("first task");
    h.provider.gates.openAll();
    await asked.outcome();
    const { usage } = await (await h.tree.agent("/root/a/b")).record();
    const own = (await look(h).runs("/root/a/b"))[0]!.usage;
    expect(usage).toEqual(own);
  });
});

describe.each(STORES)("the configuration of a child on %s", (store) => {
  test("SPN-7 resolved once, stored, reported, and the same after unload, restart and close of its parent's run", async () => {
    const tools = [
      defineTool({ name: "peek", input: z.object({}), effects: ["read"], run: () => "seen" }),
      defineTool({ name: "poke", input: z.object({}), effects: ["write"], run: () => "done" }),
    ];
    const roles = loadRoles([{ file: "auditor.md", bytes: new TextEncoder().encode(ROLE) }], tools);
    await using h = await harness({
      store,
      scripted: {
        models: {
          big: { efforts: ["low", "high"], defaultEffort: "low" },
          small: {
            efforts: ["low", "high"],
            defaultEffort: "high",
            contextWindow: 50_000,
            maxOutputTokens: 900,
          },
        },
      },
      runtime: { tools, roles, limits: { residents: 1 } },
      tree: { workspace: "/tmp", effects: ["read", "write"] },
      scripts: {
        "/root": [
          spawn("w", "go", {
            model: "small",
            agent_type: "auditor",
            effects: ["read"],
            budgets: { tokens: 100_000 },
          }),
          followUp("w", "again", { model: "big", reasoning_effort: "low" }),
          say("started"),
          say("woken"),
          say("woken"),
        ],
        "*": [call("peek"), say("ok"), say("ok"), say("ok"), say("ok")],
      },
    });
    await h.ask("go");
    await h.tree.idle();
    const w = await h.tree.agent("/root/w");
    const { config } = await w.record();
    expect(config).toMatchObject({
      provider: "scripted",
      model: "small",
      effort: "high",
      role: "auditor",
      instructions: expect.stringContaining("say what you find") as string,
      tools: ["peek"],
      effects: ["read"],
      workspace: "/tmp",
      budgets: { tokens: 100_000 },
      contextWindow: 50_000,
      maxOutputTokens: 900,
      policyHash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
    const [spawned] = await look(h).events("agent.spawned", "/root/w");
    expect(spawned!.data).toMatchObject({ provider: "scripted", model: "small", role: "auditor" });
    expect(await w.summary()).toMatchObject({ provider: "scripted", model: "small", role: "auditor" });
    // Another takes the only slot; then the process dies; then the parent is closed over its head.
    await (await h.tree.root.spawn("other", "go")).work.outcome();
    expect((await w.summary()).resident).toBe(false);
    for (const restart of [false, true]) {
      if (restart) await h.crash();
      const again = await h.tree.agent("/root/w");
      await (await again.send("once more")).outcome();
      expect((await again.record()).config).toEqual(config);
      const request = h.provider.requests("/root/w").at(-1)!;
      expect(request).toMatchObject({ model: "small", effort: "high", maxOutputTokens: 900 });
      expect(request.messages[0]).toEqual({ role: "system", text: config.instructions });
      expect(request.tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["peek"]));
      expect(request.tools.map(({ name }) => name)).not.toContain("poke");
    }
  });
});
