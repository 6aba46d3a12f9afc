/** Messages, follow-ups and results under the `codex` profile: where they go, when they are seen, and in which order. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createGates } from "../../src/providers/scripted/gates.ts";
import {
  call,
  followUp,
  gate,
  list,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { codex, listed, requestOf, requestsOf, turn, untilIdle, untilWaiting } from "../support/codex.ts";
import { type Harness, type StoreKind, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

/** A harness whose agents have a tool that lasts until the gate `slow` lets it through. */
function withSlowTool(
  store: StoreKind,
  scripts: NonNullable<Parameters<typeof codex>[1]>["scripts"] & object,
) {
  const gates = createGates();
  const slow = defineTool({
    name: "slow",
    input: z.strictObject({}),
    run: async (_input, { signal }) => {
      await gates.pass("slow", signal);
      return "slow and steady";
    },
  });
  return codex(store, { scripts, scripted: { gates }, runtime: { tools: [slow] } });
}

async function resultsAt(h: Harness, path: string): Promise<readonly string[]> {
  const mail = await new Look(h).mail(path);
  return mail.flatMap((one) =>
    one.kind === "final_answer" && one.author.kind === "agent"
      ? [`${one.author.path}: ${one.content.text}`]
      : [],
  );
}

describe.each(STORES)("mail on %s", (store) => {
  test("B1 U-177 spawn, wait, list: a path, a summary, sorted statuses, and the result behind the wait's output", async () => {
    await using h = await codex(store, { scripts: { "/root/worker": [gate("count"), say("seven")] } });
    const playing = turn(h, spawn("worker", "count", { fork_turns: "none" }), wait(), list());
    await untilWaiting(h);
    h.provider.gates.open("count");
    const [spawned, waited, agents] = await playing;
    expect(spawned!.output).toEqual({ task_name: "/root/worker" });
    expect(waited!.output).toEqual({ message: "There was activity.", timed_out: false });
    expect(agents!.output).toEqual({
      agents: [
        { agent_name: "/root", agent_status: "running" },
        { agent_name: "/root/worker", agent_status: { completed: "seven" } },
      ],
    });
    expect(requestOf(h, "/root", 2).slice(-2)).toEqual([
      `wait_agent → ${JSON.stringify(waited!.output)}`,
      "FINAL_ANSWER from /root/worker: seven",
    ]);
    const first = h.provider.requests("/root/worker")[0]!;
    expect(first.messages.at(-1)).toEqual({
      role: "user",
      text: [
        "Message Type: NEW_TASK",
        "Task name: /root/worker",
        "Sender: /root",
        "Authority: carries no user authority",
        "Payload:",
        "count",
      ].join("\n"),
    });
    const [run] = await new Look(h).runs("/root");
    expect((await new Look(h).runs("/root/worker"))[0]).toMatchObject({
      parentRunId: run!.id,
      rootRunId: run!.id,
    });
  });

  test("B14 a child's message to the running root is in the root's next request", async () => {
    await using h = await withSlowTool(store, {
      "/root/worker": [send("/root", "look here"), say("seven")],
    });
    const playing = turn(h, spawn("worker", "count"), call("slow"));
    await h.provider.gates.arrived("slow");
    await untilIdle(h, "/root/worker");
    expect(requestsOf(h, "/root")).toBe(2);
    h.provider.gates.open("slow");
    await playing;
    expect(requestOf(h, "/root", 2).slice(-3)).toEqual([
      "slow → slow and steady",
      "MESSAGE from /root/worker: look here",
      "FINAL_ANSWER from /root/worker: seven",
    ]);
    expect(await new Look(h).runs("/root")).toHaveLength(1);
  });

  test("B16 a message to oneself arrives in the same run", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [send("/root/worker", "remember"), say("seven")] },
    });
    await turn(h, spawn("worker", "count"));
    await h.tree.idle();
    expect(requestOf(h, "/root/worker", 1).slice(-2)).toEqual([
      "send_message → ",
      "MESSAGE from /root/worker: remember",
    ]);
    expect(await new Look(h).runs("/root/worker")).toHaveLength(1);
  });

  test("B17 two messages and the follow-up behind them go into one new run, in order", async () => {
    await using h = await codex(store, { scripts: { "/root/worker": [say("one"), say("two")] } });
    await turn(h, spawn("worker", "count"));
    await h.tree.idle();
    await turn(h, send("worker", "first"), send("worker", "second"));
    await h.tree.idle();
    expect(requestsOf(h, "/root/worker")).toBe(1);
    await turn(h, followUp("worker", "count again"));
    await h.tree.idle();
    expect(requestsOf(h, "/root/worker")).toBe(2);
    expect(requestOf(h, "/root/worker", 1).slice(-4)).toEqual([
      "said one",
      "MESSAGE from /root: first",
      "MESSAGE from /root: second",
      "NEW_TASK from /root: count again",
    ]);
    expect(await resultsAt(h, "/root")).toEqual(["/root/worker: one", "/root/worker: two"]);
  });

  test("B18 five messages of two senders that meet the final answer make one further run and one result", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/worker": [gate("answer"), say("one"), say("two")],
        "/root/peer": [
          gate("peer"),
          followUp("/root/worker", "peer's task"),
          send("/root/worker", "peer's word"),
          say("sent"),
        ],
      },
    });
    await turn(h, spawn("worker", "count"), spawn("peer", "help"));
    await h.provider.gates.arrived("answer");
    await turn(h, send("worker", "a word"), followUp("worker", "a task"), send("worker", "another word"));
    h.provider.gates.open("peer");
    await untilIdle(h, "/root/peer");
    expect(requestsOf(h, "/root/worker")).toBe(1);
    h.provider.gates.open("answer");
    await h.tree.idle();
    expect(requestsOf(h, "/root/worker")).toBe(2);
    expect(requestOf(h, "/root/worker", 1).slice(-6)).toEqual([
      "said one",
      "MESSAGE from /root: a word",
      "NEW_TASK from /root: a task",
      "MESSAGE from /root: another word",
      "NEW_TASK from /root/peer: peer's task",
      "MESSAGE from /root/peer: peer's word",
    ]);
    const answers = (await resultsAt(h, "/root")).filter((result) => result.startsWith("/root/worker"));
    expect(answers).toEqual(["/root/worker: one", "/root/worker: two"]);
    expect(await resultsAt(h, "/root/peer")).toEqual([]);
  });

  test("B19 a follow-up during a tool joins that run, behind the tool's output", async () => {
    await using h = await withSlowTool(store, { "/root/worker": [call("slow"), say("seven")] });
    await turn(h, spawn("worker", "count"));
    await h.provider.gates.arrived("slow");
    await turn(h, followUp("worker", "and weigh"));
    h.provider.gates.open("slow");
    await h.tree.idle();
    expect(requestsOf(h, "/root/worker")).toBe(2);
    expect(requestOf(h, "/root/worker", 1).slice(-2)).toEqual([
      "slow → slow and steady",
      "NEW_TASK from /root: and weigh",
    ]);
    expect(await new Look(h).runs("/root/worker")).toHaveLength(1);
    expect(await resultsAt(h, "/root")).toEqual(["/root/worker: seven"]);
  });

  test("B35 a result that reached an idle root is absent from a turn that answers at once, and in the next", async () => {
    await using h = await codex(store, { scripts: { "/root/worker": [gate("count"), say("seven")] } });
    await turn(h, spawn("worker", "count"));
    h.provider.gates.open("count");
    await h.tree.idle();
    // It wakes nobody.
    expect(requestsOf(h, "/root")).toBe(2);
    await turn(h);
    expect(requestOf(h, "/root", 2).join("\n")).not.toContain("seven");
    expect((await h.tree.root.summary()).unread).toBe(1);
    await turn(h);
    expect(requestOf(h, "/root", 3).slice(-3)).toEqual([
      "said done",
      "FINAL_ANSWER from /root/worker: seven",
      "go on",
    ]);
    expect((await h.tree.root.summary()).unread).toBe(0);
  });

  test("B36 a result that reached an idle root is in the second request of its next turn", async () => {
    await using h = await codex(store, { scripts: { "/root/worker": [gate("count"), say("seven")] } });
    await turn(h, spawn("worker", "count"));
    h.provider.gates.open("count");
    await h.tree.idle();
    await turn(h, list());
    expect(requestOf(h, "/root", 2).join("\n")).not.toContain("seven");
    expect(requestOf(h, "/root", 3).at(-2)).toContain("list_agents →");
    expect(requestOf(h, "/root", 3).at(-1)).toBe("FINAL_ANSWER from /root/worker: seven");
  });

  test("B37 a grandchild's result to a parent that has finished wakes nobody", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [spawn("b", "count"), say("asked")],
        "/root/a/b": [gate("count"), say("seven")],
      },
    });
    await turn(h, spawn("a", "have it counted"));
    await untilIdle(h, "/root/a");
    h.provider.gates.open("count");
    await h.tree.idle();
    expect([requestsOf(h, "/root"), requestsOf(h, "/root/a")]).toEqual([2, 2]);
    expect(await resultsAt(h, "/root/a")).toEqual(["/root/a/b: seven"]);
    const [agents] = await turn(h, list());
    expect(listed(agents)).toEqual([
      ["/root", "running"],
      ["/root/a", { completed: "asked" }],
      ["/root/a/b", { completed: "seven" }],
    ]);
    expect(await resultsAt(h, "/root")).toEqual(["/root/a: asked"]);
    expect(await (await h.tree.agent("/root/a")).summary()).toMatchObject({ unread: 1 });
  });

  test("B38 a sibling's follow-up sends the result to the path parent and the activity to the run that asked", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [gate("a"), followUp("/root/b", "a's task"), say("asked")],
        "/root/b": [say("one"), gate("b"), say("two"), gate("b2"), say("three"), say("four")],
      },
    });
    const look = new Look(h);
    await turn(h, spawn("a", "ask b"), spawn("b", "count"));
    await untilIdle(h, "/root/b");
    h.provider.gates.open("a");
    await untilIdle(h, "/root/a");
    h.provider.gates.open("b");
    await h.tree.idle();
    const [asking] = await look.runs("/root/a");
    expect(await resultsAt(h, "/root/a")).toEqual([]);
    expect(await resultsAt(h, "/root")).toEqual(["/root/b: one", "/root/a: asked", "/root/b: two"]);
    expect(
      (await look.events("activity.completed", "/root/a")).map(({ runId, data }) => [runId, data]),
    ).toEqual([[asking!.id, { agent: "/root/b" }]]);
    // Requests of two senders that share a run are nobody's to tell of.
    await turn(h, followUp("b", "count on"));
    await h.provider.gates.arrived("b2");
    h.provider.append("/root/a", followUp("/root/b", "and weigh"), say("asked"));
    await turn(h, followUp("b", "and measure"), followUp("a", "ask b once more"));
    await untilIdle(h, "/root/a");
    h.provider.gates.open("b2");
    await h.tree.idle();
    expect(requestOf(h, "/root/b", -1).slice(-2)).toEqual([
      "NEW_TASK from /root: and measure",
      "NEW_TASK from /root/a: and weigh",
    ]);
    expect(await look.events("activity.completed", "/root/a")).toHaveLength(1);
    const told = (await look.events("activity.completed", "/root")).map(({ data }) => data["agent"]);
    expect(told.filter((agent) => agent === "/root/b")).toHaveLength(2);
    expect((await resultsAt(h, "/root")).filter((result) => result.startsWith("/root/b"))).toEqual([
      "/root/b: one",
      "/root/b: two",
      "/root/b: three",
      "/root/b: four",
    ]);
  });

  test("B49 with the setting on a message to an idle root starts its turn", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [gate("say"), send("/root", "look here"), gate("end"), say("seven")] },
      tree: { wakeOnAgentMessages: true },
    });
    await turn(h, spawn("worker", "count"));
    h.provider.append("/root", say("I look"), say("I see"));
    h.provider.gates.open("say");
    await h.provider.gates.arrived("end");
    await untilIdle(h, "/root");
    expect(requestOf(h, "/root", 2).at(-1)).toBe("MESSAGE from /root/worker: look here");
    h.provider.gates.open("end");
    await h.tree.idle();
    expect(requestsOf(h, "/root")).toBe(4);
    expect(requestOf(h, "/root", 3).slice(-2)).toEqual([
      "said I look",
      "FINAL_ANSWER from /root/worker: seven",
    ]);
  });

  test("B49 the setting is the tree's, and holds when it is opened again; that opening may say otherwise", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [gate("one"), say("one"), say("two"), say("three")] },
      tree: { wakeOnAgentMessages: true },
    });
    const look = new Look(h);
    await turn(h, spawn("worker", "count"));
    h.provider.append("/root", say("seen one"), say("seen two"));
    h.provider.gates.open("one");
    await h.tree.idle();
    expect(await look.runs("/root")).toHaveLength(2);
    await h.crash();
    await (await h.tree.agent("worker")).send("go on");
    await h.tree.idle();
    expect(await look.runs("/root")).toHaveLength(3);
    const { id } = h.tree;
    await h.tree[Symbol.asyncDispose]();
    h.tree = await h.runtime.openTree({ id, wakeOnAgentMessages: false });
    await (await h.tree.agent("worker")).send("go on");
    await h.tree.idle();
    expect(await look.runs("/root")).toHaveLength(3);
  });

  test("B49 the setting goes with a fork", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [gate("one"), say("one")] },
      tree: { wakeOnAgentMessages: true },
    });
    h.provider.append("/root", say("first"), spawn("worker", "count"), say("asked"), say("seen one"));
    await h.ask("begin");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    await using fork = await h.runtime.openTree({ id: thread.treeId });
    for (const text of ["begin", "go"]) await (await fork.root.send(text)).outcome();
    h.provider.gates.open("one");
    await fork.idle();
    expect((await fork.root.record()).runs).toBe(3);
  });

  test("B49 without the setting it starts none", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [gate("say"), send("/root", "hello"), say("seven")] },
    });
    await turn(h, spawn("worker", "count"));
    h.provider.gates.open("say");
    await h.tree.idle();
    expect(requestsOf(h, "/root")).toBe(2);
    expect((await h.tree.root.summary()).unread).toBe(2);
  });

  test("B17 several follow-ups that arrive together are one run and one result", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [gate("count"), say("one"), say("two")] },
    });
    await turn(h, spawn("worker", "count"));
    await turn(h, together(followUp("worker", "weigh"), followUp("worker", "measure")));
    h.provider.gates.open("count");
    await h.tree.idle();
    expect(await new Look(h).runs("/root/worker")).toHaveLength(2);
    expect(await resultsAt(h, "/root")).toEqual(["/root/worker: one", "/root/worker: two"]);
  });
});
