/** Permits and slots under the `codex` profile: who is refused, who is unloaded, and that nothing queues. */
import { describe, expect, test } from "vitest";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import {
  followUp,
  gate,
  interrupt,
  list,
  say,
  send,
  spawn,
  together,
} from "../../src/providers/scripted/script.ts";
import {
  callsOf,
  codeOf,
  codex,
  listed,
  refusal,
  requestOf,
  requestsOf,
  turn,
  untilIdle,
} from "../support/codex.ts";
import { type Harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

/** Agents that wait at a gate of their own name and answer with it, again and again. */
function busy(...names: readonly string[]) {
  const script = (name: string) => [1, 2, 3].flatMap(() => [gate(name), say(name)]);
  return Object.fromEntries(names.map((name) => [`/root/${name}`, script(name)]));
}

const limits = (running: number) => ({ limits: { running } });

async function resident(h: Harness): Promise<readonly string[]> {
  const { agents } = await h.tree.list();
  return agents.filter((agent) => agent.resident && agent.path !== "/root").map((agent) => agent.path);
}

/** An agent at a gate: it runs, and its slot and permit are taken. */
async function begin(h: Harness, name: string): Promise<void> {
  await turn(h, spawn(name, "count"));
  await h.provider.gates.arrived(name);
}

async function finish(h: Harness, name: string): Promise<void> {
  h.provider.gates.letThrough(name);
  await untilIdle(h, `/root/${name}`);
}

describe.each(STORES)("capacity on %s", (store) => {
  test("B28 the spawn over the limit is refused, and takes the place of a finished child later", async () => {
    await using h = await codex(store, { scripts: busy("a", "b", "c"), runtime: limits(2) });
    await begin(h, "a");
    await begin(h, "b");
    const [refused] = await turn(h, spawn("c", "count"));
    expect(codeOf(refused)).toBe("AGENT_LIMIT_REACHED");
    expect(refused!.output).toMatchObject({ details: { value: 2, use: 2 } });
    expect((await h.tree.counts()).registered).toBe(3);
    await finish(h, "a");
    const [taken] = await turn(h, spawn("c", "count"));
    expect(taken!.output).toEqual({ task_name: "/root/c" });
    await h.provider.gates.arrived("c");
    expect(await resident(h)).toEqual(["/root/b", "/root/c"]);
    // Nothing was queued: the refused spawn has not come back.
    expect(await new Look(h).works("/root/c")).toHaveLength(1);
    h.provider.gates.openAll();
  });

  test("B28 the least recently used idle child goes first", async () => {
    await using h = await codex(store, { scripts: busy("a", "b", "c"), runtime: limits(2) });
    await begin(h, "a");
    await begin(h, "b");
    await finish(h, "b");
    await finish(h, "a");
    await turn(h, followUp("a", "count again"));
    await h.provider.gates.arrived("a", 2);
    await finish(h, "a");
    await begin(h, "c");
    expect(await resident(h)).toEqual(["/root/a", "/root/c"]);
    h.provider.gates.openAll();
  });

  test("B28 spawns of one moment take the places of as many idle children", async () => {
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    await using h = await codex(store, { scripts: busy(...names) });
    const [old, fresh] = [names.slice(0, 3), names.slice(3)];
    await turn(h, together(...old.map((name) => spawn(name, "count"))));
    for (const name of old) await h.provider.gates.arrived(name);
    for (const name of old) await finish(h, name);
    const made = await turn(h, together(...fresh.map((name) => spawn(name, "count"))));
    expect(made.map(({ isError }) => isError)).toEqual([false, false, false, true]);
    for (const name of fresh.slice(0, 3)) await h.provider.gates.arrived(name);
    expect(await resident(h)).toEqual(["/root/d", "/root/e", "/root/f"]);
    expect((await h.tree.counts()).registered).toBe(7);
    h.provider.gates.openAll();
  });

  test("B29 U-16 a follow-up that finds no room is refused, its text is dropped, and a later one works", async () => {
    await using h = await codex(store, { scripts: busy("a", "b", "c"), runtime: limits(2) });
    await begin(h, "a");
    await finish(h, "a");
    await begin(h, "b");
    await begin(h, "c");
    expect(await resident(h)).toEqual(["/root/b", "/root/c"]);
    const [refused] = await turn(h, followUp("a", "dropped words"));
    expect(codeOf(refused)).toBe("AGENT_LIMIT_REACHED");
    expect(refusal(refused)).toContain("2");
    await finish(h, "b");
    const [taken] = await turn(h, followUp("a", "count again"));
    expect(taken).toMatchObject({ output: "", isError: false });
    await h.provider.gates.arrived("a", 2);
    expect(requestOf(h, "/root/a", -1).at(-1)).toBe("NEW_TASK from /root: count again");
    expect(requestOf(h, "/root/a", -1).join("\n")).not.toContain("dropped words");
    expect((await new Look(h).mail("/root/a")).map(({ content }) => content.text)).toEqual([
      "count",
      "count again",
    ]);
    h.provider.gates.openAll();
  });

  test("B30 a message to an unloaded agent is kept while all slots are busy, and delivered in order", async () => {
    await using h = await codex(store, { scripts: busy("a", "b", "c"), runtime: limits(2) });
    await begin(h, "a");
    await finish(h, "a");
    await begin(h, "b");
    await begin(h, "c");
    const sent = await turn(h, send("a", "first"), send("a", "second"));
    expect(sent.map(({ output, isError }) => [output, isError])).toEqual([
      ["", false],
      ["", false],
    ]);
    // Nobody was unloaded for it, and it was not loaded.
    expect(await resident(h)).toEqual(["/root/b", "/root/c"]);
    await finish(h, "b");
    expect(requestsOf(h, "/root/a")).toBe(1);
    await turn(h, followUp("a", "count again"));
    await h.provider.gates.arrived("a", 2);
    expect(requestOf(h, "/root/a", -1).slice(-3)).toEqual([
      "MESSAGE from /root: first",
      "MESSAGE from /root: second",
      "NEW_TASK from /root: count again",
    ]);
    h.provider.gates.openAll();
  });

  test("B31 an idle child with queued mail gives up its slot to a new one, and keeps the mail", async () => {
    await using h = await codex(store, { scripts: busy("a", "b"), runtime: limits(1) });
    await begin(h, "a");
    await finish(h, "a");
    await turn(h, send("a", "remember"));
    const [taken] = await turn(h, spawn("b", "count"));
    expect(taken!.output).toEqual({ task_name: "/root/b" });
    await h.provider.gates.arrived("b");
    expect(await resident(h)).toEqual(["/root/b"]);
    expect((await (await h.tree.agent("/root/a")).summary()).unread).toBe(1);
    await finish(h, "b");
    await turn(h, followUp("a", "count again"));
    await h.provider.gates.arrived("a", 2);
    expect(requestOf(h, "/root/a", -1).slice(-2)).toEqual([
      "MESSAGE from /root: remember",
      "NEW_TASK from /root: count again",
    ]);
    h.provider.gates.openAll();
  });

  test("B33 by default three of five parallel spawns succeed, in their order, and the others fail alone", async () => {
    const names = ["a", "b", "c", "d", "e"];
    await using h = await codex(store, { scripts: busy(...names) });
    const made = await turn(h, together(...names.map((name) => spawn(name, "count"))));
    expect(made.map(({ isError }) => isError)).toEqual([false, false, false, true, true]);
    expect(made.slice(3).map(codeOf)).toEqual(["AGENT_LIMIT_REACHED", "AGENT_LIMIT_REACHED"]);
    const [agents] = await turn(h, list());
    expect(listed(agents)).toEqual([
      ["/root", "running"],
      ["/root/a", "running"],
      ["/root/b", "running"],
      ["/root/c", "running"],
    ]);
    h.provider.gates.openAll();
  });

  test.each([
    [1, 1],
    [2, 2],
    [0, 0],
  ])("B34 with `running` %d the tree runs %d children", async (running, children) => {
    const names = ["a", "b", "c"];
    await using h = await codex(store, { scripts: busy(...names), runtime: limits(running) });
    const made = await turn(h, together(...names.map((name) => spawn(name, "count"))));
    expect(made.filter(({ isError }) => !isError)).toHaveLength(children);
    expect((await h.tree.counts()).registered).toBe(1 + children);
    h.provider.gates.openAll();
  });

  test("B19 a follow-up to an agent that is about to begin joins its first run, and takes no second permit", async () => {
    await using h = await codex(store, { scripts: { "*": [say("seven")] }, runtime: limits(1) });
    const { gates } = h.provider;
    const slow: OwnLoopAdapter = {
      ...h.provider,
      openSession: async (open) => {
        if (open.path !== "/root") await gates.pass("load");
        return h.provider.openSession(open);
      },
    };
    const runtime = await h.newRuntime({ providers: { scripted: slow } });
    await using tree = await runtime.openTree();
    h.provider.append(
      "/root",
      spawn("a", "count"),
      followUp("a", "and weigh"),
      list(),
      interrupt("a"),
      list(),
      say("done"),
    );
    await (await tree.root.send("go on")).outcome();
    const made = requestOf(h, "/root", -1).filter((words) => words.includes("→"));
    expect(made.slice(1)).toEqual([
      "followup_task → ",
      `list_agents → ${JSON.stringify({
        agents: [
          { agent_name: "/root", agent_status: "running" },
          { agent_name: "/root/a", agent_status: "running" },
        ],
      })}`,
      `interrupt_agent → ${JSON.stringify({ previous_status: "running" })}`,
      `list_agents → ${JSON.stringify({
        agents: [
          { agent_name: "/root", agent_status: "running" },
          { agent_name: "/root/a", agent_status: "pending_init" },
        ],
      })}`,
    ]);
    gates.open("load");
    await tree.idle();
    // Interrupted before it began: it has asked nothing, and its next run is told of both.
    expect(requestsOf(h, "/root/a")).toBe(0);
    const child = await tree.agent("/root/a");
    await waitUntil("the permit is back", async () => (await child.summary()).resident);
    h.provider.append("/root", followUp("a", "count again"), say("done"));
    await (await tree.root.send("go on")).outcome();
    await tree.idle();
    expect(requestOf(h, "/root/a", 0).slice(-4)).toEqual([
      "NEW_TASK from /root: count",
      "NEW_TASK from /root: and weigh",
      expect.stringContaining("[runtime: interrupted]"),
      "NEW_TASK from /root: count again",
    ]);
    await runtime.close();
  });

  test("U-19 two trees do not share their slots", async () => {
    await using h = await codex(store, { scripts: { ...busy("a") }, runtime: limits(1) });
    await begin(h, "a");
    await finish(h, "a");
    const other = await h.runtime.openTree({ provider: "scripted" });
    const lone = await other.root.spawn("a", "count");
    await h.provider.gates.arrived("a", 2);
    expect((await lone.agent.summary()).resident).toBe(true);
    expect(await resident(h)).toEqual(["/root/a"]);
    h.provider.gates.openAll();
  });

  test("U-70 one limit serves the whole tree, whoever spawns", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [spawn("b", "count"), spawn("c", "count"), gate("a"), say("done")],
        "/root/a/b": [gate("b"), say("seven")],
      },
      runtime: limits(2),
    });
    await begin(h, "a");
    const [, below] = await callsOf(h, "/root/a");
    const [here] = await turn(h, spawn("d", "count"));
    expect([below, here].map(codeOf)).toEqual(["AGENT_LIMIT_REACHED", "AGENT_LIMIT_REACHED"]);
    h.provider.gates.openAll();
  });

  test("U-70 a budget on running children below an agent refuses as well, and only there", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [gate("a"), spawn("b", "count"), spawn("c", "count"), say("done")],
        "/root/a/b": [gate("b"), say("seven")],
      },
      scripted: { otherwise: say("done") },
      runtime: limits(5),
    });
    const { work } = await h.tree.root.spawn("a", "have it counted", { budgets: { running: 1 } });
    h.provider.gates.open("a");
    await work.outcome();
    const [first, second] = await callsOf(h, "/root/a");
    expect(first!.isError).toBe(false);
    expect(second!.output).toMatchObject({ code: "AGENT_LIMIT_REACHED", details: { value: 1, use: 1 } });
    const [beside] = await turn(h, spawn("d", "count"));
    expect(beside!.isError).toBe(false);
    h.provider.gates.openAll();
  });

  test("U-17 a closed agent holds no slot and no permit", async () => {
    await using h = await codex(store, { scripts: busy("a", "b"), runtime: limits(1) });
    await begin(h, "a");
    await (await h.tree.agent("/root/a")).close();
    const [taken, agents] = await turn(h, spawn("b", "count"), list());
    expect(taken!.output).toEqual({ task_name: "/root/b" });
    expect(listed(agents).map(([path]) => path)).toEqual(["/root", "/root/b"]);
    h.provider.gates.openAll();
  });
});
