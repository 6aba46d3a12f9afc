/** Interrupts, errors and their aftermath under the `codex` profile: what stops, what stays, and what the next run is told. */
import { type ChildProcess, spawn as startProcess } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createGates } from "../../src/providers/scripted/gates.ts";
import {
  call,
  fail,
  followUp,
  gate,
  interrupt,
  list,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
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
  untilWaiting,
} from "../support/codex.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const MARKER = expect.stringMatching(/^\[runtime: interrupted\]\n.*interrupted on purpose/);

describe.each(STORES)("interrupts on %s", (store) => {
  test.each([{ beforeAcceptance: false }, { beforeAcceptance: true }])(
    "B25 an interrupted child keeps history and mail, tells its parent nothing, and resumes in order (%o)",
    async (when) => {
      await using h = await codex(store, {
        scripts: { "/root/worker": [gate("request", when), say("resumed")] },
      });
      const look = new Look(h);
      const { gates } = h.provider;
      await turn(h, spawn("worker", "old task"));
      await gates.arrived("request");
      const playing = turn(
        h,
        send("worker", "a word"),
        followUp("worker", "waiting task"),
        interrupt("worker"),
        wait(),
        list(),
      );
      await untilWaiting(h);
      // The request was cut off, and what was queued has started nothing.
      expect(gates.waiting("request")).toBe(0);
      await h.clock.advance(30_000);
      const made = await playing;
      expect(made[2]!.output).toEqual({ previous_status: "running" });
      expect(made[3]!.output).toEqual({ message: "The wait ran out of time.", timed_out: true });
      expect(listed(made[4])).toEqual([
        ["/root", "running"],
        ["/root/worker", "interrupted"],
      ]);
      expect(requestsOf(h, "/root/worker")).toBe(1);
      expect((await look.mail("/root")).map(({ kind }) => kind)).toEqual(["user", "user"]);
      expect(
        (await look.works("/root/worker")).map(({ state, outcome }) => [state, outcome?.ending]),
      ).toEqual([
        ["ended", "interrupted"],
        ["queued", undefined],
      ]);
      expect(await look.events("activity.interrupted", "/root")).toMatchObject([
        { data: { agent: "/root/worker" } },
      ]);
      gates.open("request");
      await turn(h, followUp("worker", "new task"));
      await h.tree.idle();
      expect(requestOf(h, "/root/worker", 1)).toEqual([
        "[inherited]\ngo on",
        expect.stringContaining("[runtime: inherited_history]"),
        "NEW_TASK from /root: old task",
        MARKER,
        "MESSAGE from /root: a word",
        "NEW_TASK from /root: waiting task",
        "NEW_TASK from /root: new task",
      ]);
      expect((await look.works("/root/worker")).map(({ outcome }) => outcome?.ending)).toEqual([
        "interrupted",
        "completed",
        "completed",
      ]);
      const answers = (await look.mail("/root")).filter(({ kind }) => kind === "final_answer");
      expect(answers.map(({ content }) => content.text)).toEqual(["resumed"]);
    },
  );

  test("B25 U-141 a tool call that is cut off says so with its time, and descendants go on", async () => {
    const gates = createGates();
    const slow = defineTool({
      name: "slow",
      input: z.strictObject({}),
      run: (_input, { signal }) => gates.pass("slow", signal),
    });
    await using h = await codex(store, {
      scripts: {
        "/root/worker": [spawn("leaf", "count"), call("slow"), say("resumed")],
        "/root/worker/leaf": [gate("leaf"), say("seven")],
      },
      scripted: { gates },
      runtime: { tools: [slow] },
    });
    await turn(h, spawn("worker", "old task"));
    await gates.arrived("slow");
    await gates.arrived("leaf");
    await h.clock.advance(1234);
    const [, agents] = await turn(h, interrupt("worker"), list());
    expect(gates.waiting("slow")).toBe(0);
    expect(listed(agents)).toEqual([
      ["/root", "running"],
      ["/root/worker", "interrupted"],
      ["/root/worker/leaf", "running"],
    ]);
    expect((await (await h.tree.agent("/root/worker")).summary()).resident).toBe(true);
    gates.open("leaf");
    await h.tree.idle();
    await turn(h, followUp("worker", "new task"));
    await h.tree.idle();
    expect(requestOf(h, "/root/worker", -1).slice(-4)).toEqual([
      expect.stringMatching(/^slow → aborted: .* after 1234 ms$/),
      MARKER,
      "FINAL_ANSWER from /root/worker/leaf: seven",
      "NEW_TASK from /root: new task",
    ]);
  });

  test("B26 root, self and unknown agents cannot be interrupted; idle and unloaded ones answer their status", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/worker": [
          interrupt("/root"),
          () => interrupt(h.tree.root.threadId),
          interrupt("/root/worker"),
          ({ request }) => interrupt(request.threadId),
          say("seven"),
        ],
        "/root/other": [say("eight")],
      },
      runtime: { limits: { running: 1 } },
    });
    await turn(h, spawn("worker", "try"));
    await h.tree.idle();
    const refused = await callsOf(h, "/root/worker");
    expect(refused.map(codeOf)).toEqual(Array(4).fill("INVALID_ARGUMENT"));
    expect(refusal(refused[0])).toBe(refusal(refused[1]));
    expect(refusal(refused[2])).toBe(refusal(refused[3]));
    expect(refusal(refused[0])).not.toBe(refusal(refused[2]));
    const [idle, unknown] = await turn(h, interrupt("worker"), interrupt("nobody"));
    expect(idle!.output).toEqual({ previous_status: { completed: "seven" } });
    expect(codeOf(unknown)).toBe("AGENT_NOT_FOUND");
    await turn(h, spawn("other", "count"));
    await h.tree.idle();
    const [unloaded, agents] = await turn(h, interrupt("worker"), list());
    expect(unloaded).toMatchObject({ isError: false, output: { previous_status: "not_found" } });
    expect(listed(agents).map(([path]) => path)).toEqual(["/root", "/root/other"]);
    expect(await (await h.tree.agent("/root/worker")).summary()).toMatchObject({
      resident: false,
      status: { kind: "idle", last: "completed" },
    });
    const [self] = await turn(h, together(interrupt("/root")));
    expect(refusal(self)).toBe(refusal(refused[2]));
  });

  test("B27 a process that a tool has started outlives the interrupt and ends with the unload", async () => {
    const started: ChildProcess[] = [];
    const gates = createGates();
    const exec = defineTool({
      name: "exec",
      input: z.strictObject({}),
      run: async (_input, { signal, lifetime }) => {
        const child = startProcess(process.execPath, ["-e", "setInterval(() => {}, 1000)"], {
          stdio: "ignore",
        });
        lifetime.addEventListener("abort", () => child.kill("SIGKILL"), { once: true });
        started.push(child);
        await once(child, "spawn");
        await gates.pass("exec", signal);
      },
    });
    await using h = await codex(store, {
      scripts: { "/root/worker": [call("exec"), say("resumed")], "/root/other": [say("eight")] },
      scripted: { gates },
      runtime: { tools: [exec], limits: { running: 1 } },
    });
    await turn(h, spawn("worker", "build"));
    await gates.arrived("exec");
    const [child] = started;
    const exited = once(child!, "exit");
    await turn(h, interrupt("worker"));
    await h.tree.idle();
    await h.clock.advance(60_000);
    expect(gates.waiting("exec")).toBe(0);
    expect([child!.exitCode, child!.signalCode]).toEqual([null, null]);
    expect(process.kill(child!.pid!, 0)).toBe(true);
    await turn(h, spawn("other", "count"));
    await h.tree.idle();
    expect((await (await h.tree.agent("/root/worker")).summary()).resident).toBe(false);
    expect(await exited).toEqual([null, "SIGKILL"]);
  });

  test("B27 by default, outside of this profile, it ends with the interrupt", async () => {
    const ends: string[] = [];
    const gates = createGates();
    const exec = defineTool({
      name: "exec",
      input: z.strictObject({}),
      run: async (_input, { signal, lifetime, path }) => {
        lifetime.addEventListener("abort", () => ends.push(path), { once: true });
        await gates.pass("exec", signal);
      },
    });
    await using h = await codex(store, {
      scripts: { "/root/worker": [call("exec"), say("done")] },
      scripted: { gates },
      runtime: { tools: [exec], profile: "default" },
    });
    const { agent } = await h.tree.root.spawn("worker", "build");
    await gates.arrived("exec");
    await agent.interrupt();
    expect(ends).toEqual(["/root/worker"]);
    expect((await agent.summary()).resident).toBe(true);
  });

  test("B27 it ends as well when the tree is closed or given back", async () => {
    const ends: string[] = [];
    const exec = defineTool({
      name: "exec",
      input: z.strictObject({}),
      run: (_input, { lifetime, path }) => {
        lifetime.addEventListener("abort", () => ends.push(path), { once: true });
      },
    });
    await using h = await codex(store, {
      scripts: { "*": [call("exec"), say("done")] },
      runtime: { tools: [exec] },
    });
    await turn(h, together(spawn("a", "build"), spawn("b", "build")));
    await h.tree.idle();
    expect(ends).toEqual([]);
    await (await h.tree.agent("/root/a")).close();
    expect(ends).toEqual(["/root/a"]);
    await h.tree.close();
    expect(ends).toEqual(["/root/a", "/root/b"]);
  });

  test("B32 an interrupted child that was unloaded reloads with history and marker, and completes", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [gate("request"), say("resumed")], "/root/other": [say("eight")] },
      runtime: { limits: { running: 1 } },
    });
    await turn(h, spawn("worker", "old task", { fork_turns: "none" }));
    await h.provider.gates.arrived("request");
    await turn(h, interrupt("worker"), spawn("other", "count"));
    await h.tree.idle();
    expect((await (await h.tree.agent("/root/worker")).summary()).resident).toBe(false);
    h.provider.gates.open("request");
    await turn(h, followUp("worker", "new task"));
    await h.tree.idle();
    expect(requestOf(h, "/root/worker", 1)).toEqual([
      "NEW_TASK from /root: old task",
      MARKER,
      "NEW_TASK from /root: new task",
    ]);
    const [agents] = await turn(h, list());
    expect(listed(agents)).toEqual([
      ["/root", "running"],
      ["/root/worker", { completed: "resumed" }],
    ]);
  });

  test("B40 a child that failed takes a follow-up and runs", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/worker": [
          fail({ code: "PROVIDER_REFUSED", status: 400, message: "no such thing", accepted: true }),
          say("seven"),
        ],
      },
    });
    await turn(h, spawn("worker", "count"));
    await h.tree.idle();
    const [before] = await turn(h, list());
    expect(listed(before)[1]).toEqual([
      "/root/worker",
      { errored: expect.stringContaining("no such thing") as unknown as string },
    ]);
    await turn(h, followUp("worker", "count again"));
    await h.tree.idle();
    const [after] = await turn(h, list());
    expect(listed(after)[1]).toEqual(["/root/worker", { completed: "seven" }]);
    expect(requestOf(h, "/root/worker", -1).slice(-2)).toEqual([
      "NEW_TASK from /root: count",
      "NEW_TASK from /root: count again",
    ]);
    const answers = (await new Look(h).mail("/root")).filter(({ kind }) => kind === "final_answer");
    expect(answers).toHaveLength(2);
  });

  test("B42 children of an interrupted root finish by themselves, and their results wait for its next turn", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [gate("count"), say("seven")],
        "/root/b": [gate("count"), say("eight")],
      },
    });
    const playing = turn(h, together(spawn("a", "count"), spawn("b", "count")), wait());
    await untilWaiting(h);
    await h.tree.root.interrupt();
    await playing;
    expect(await h.tree.root.status()).toEqual({ kind: "idle", last: "interrupted" });
    h.provider.gates.open("count");
    await untilIdle(h, "/root/a");
    await untilIdle(h, "/root/b");
    const requests = requestsOf(h, "/root");
    await h.tree.idle();
    expect(requestsOf(h, "/root")).toBe(requests);
    expect((await h.tree.root.summary()).unread).toBe(2);
    // The rest of the turn that was cut off comes first: it answers at once, and only the next one sees them.
    await h.ask("again");
    expect(requestOf(h, "/root", requests).slice(-2)).toEqual([MARKER, "again"]);
    await turn(h);
    const answers = requestOf(h, "/root", requests + 1).filter((words) => words.startsWith("FINAL_ANSWER"));
    expect(answers.toSorted()).toEqual([
      "FINAL_ANSWER from /root/a: seven",
      "FINAL_ANSWER from /root/b: eight",
    ]);
  });

  test("MBX-16 REC-1 a retry that is cut off before its acceptance tells its notice once", async () => {
    await using h = await harness({
      store,
      scripts: {
        // By what it is told: the request, then the notice, then the new one.
        "/root/worker": ({ messages }) => {
          const told = JSON.stringify(messages);
          if (told.includes("new task")) return say("resumed");
          return told.includes("was lost") ? gate("retried", { beforeAcceptance: true }) : gate("lost");
        },
      },
      runtime: { subagents: { onLostRun: "retry" } },
      tree: { profile: "codex" },
    });
    const look = new Look(h);
    await h.tree.root.spawn("worker", "old task");
    await h.provider.gates.arrived("lost");
    await h.crash();
    await h.provider.gates.arrived("retried");
    const worker = await h.tree.agent("worker");
    await worker.interrupt();
    h.provider.gates.openAll();
    await (await worker.send("new task")).outcome();
    const told = (await look.items("/root/worker")).flatMap((item) =>
      (item.kind === "user" || item.kind === "mail") && item.mailId !== null ? [item.mailId] : [],
    );
    expect(told).toHaveLength(3);
    expect(new Set(told).size).toBe(3);
  });
});
