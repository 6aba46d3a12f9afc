/** SPN-1 to SPN-4: paths, the one commit of a spawn, the order of its checks, and spawning side by side. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/protocol/json.ts";
import type { Fault } from "../../src/testing/faulty-store.ts";
import {
  call,
  gate,
  pause,
  say,
  type Script,
  send,
  spawn,
  together,
} from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { turn, VIRTUAL_START } from "../../src/testing/virtual-clock.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { detailsOf, look, textAt, type ToolOutput } from "../support/look.ts";
import { occupyPermits, ONE_PERMIT } from "../support/permits.ts";

const errorOf = (one: ToolOutput): string => textAt(one, "error");

/** The next commit, or the one after so many others, meets a fault. */
function nextCommit(h: Harness, fault: Fault, skip = 0): void {
  let left = skip;
  h.onWrite = (_, kind) => {
    if (kind !== "commit" || left < 0) return null;
    left -= 1;
    return left < 0 ? fault : null;
  };
}

describe.each(STORES)("spawning on %s", (store) => {
  test("SPN-1 names: which are taken, and a reason of its own for each kind that is not", async () => {
    const good = ["9_9", "a".repeat(128), "morpheus"];
    const bad = ["", "BadName", "bad-name", "a/b", "root", ".", ".."];
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(...[...good, ...bad].map((name) => spawn(name, "go", { wake: "never", detached: true }))),
          say("done"),
        ],
        "*": [say("ok")],
      },
    });
    await h.ask("start");
    const outputs = await look(h).outputs("/root", "spawn_agent");
    const taken = outputs.filter(({ isError }) => !isError).map((one) => textAt(one, "task_name"));
    expect(taken.toSorted()).toEqual(good.map((name) => `/root/${name}`).toSorted());
    const refused = new Map(
      outputs
        .filter(({ isError }) => isError)
        .map((one) => [textAt(detailsOf(one), "value"), errorOf(one).replace(/`[^`]*`/, "it")] as const),
    );
    expect([...refused.keys()].toSorted()).toEqual(bad.toSorted());
    const kinds = [["BadName", "bad-name"], [".", ".."], [""], ["a/b"], ["root"]];
    for (const kind of kinds) expect(new Set(kind.map((name) => refused.get(name))).size).toBe(1);
    expect(new Set(refused.values()).size).toBe(kinds.length);
    for (const text of refused.values()) expect(text).toContain("task_name");
  });

  test("SPN-1 references resolve below the caller, absolutely, or by the id of a thread of this tree", async () => {
    const foreign = `thread_${"x".repeat(21)}`;
    const references = [
      "",
      "Dup",
      "../x",
      "/other/x",
      "/root/b/",
      "b/",
      "root",
      "/morpheus",
      foreign,
      "nobody",
      "/root/a",
    ];
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "wait"), spawn("b", "nest")),
          say("started"),
          say("woken"),
          say("woken"),
        ],
        "/root/a": [say("idle")],
        "/root/b": [
          spawn("b", "deeper", { detached: true, wake: "never" }),
          together(...references.map((reference) => send(reference, "hello")), send("b", "hello child")),
          say("done"),
        ],
        "/root/b/b": [say("deep")],
      },
    });
    await h.ask("start");
    await h.tree.idle();
    const outputs = await look(h).outputs("/root/b", "send_message");
    const errors = outputs.filter(({ isError }) => isError);
    expect(errors.map(({ output }) => output["code"])).toEqual([
      ...Array.from({ length: 7 }, () => "INVALID_ARGUMENT"),
      "INVALID_ARGUMENT",
      "AGENT_NOT_FOUND",
      "AGENT_NOT_FOUND",
    ]);
    expect(errorOf(errors[8]!)).toContain(foreign);
    // A bare name means a child, never a sibling; the error names the whole path.
    expect(detailsOf(errors[9]!)["target"]).toBe("/root/b/nobody");
    expect(outputs.filter(({ isError }) => !isError).map(({ output }) => output["recipient"])).toEqual([
      "/root/a",
      "/root/b/b",
    ]);
    const deep = await h.tree.agent("/root/b/b");
    expect((await h.tree.agent(deep.threadId)).path).toBe("/root/b/b");
    expect((await (await h.tree.agent("/root/b")).record()).parent).toBe(h.tree.id);
  });

  test("SPN-1 a path has no depth of its own, and stays taken whatever becomes of its agent", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2, depth: null } },
      scripts: { "/root/held": [gate("held"), say("never")], "*": [say("ok")] },
    });
    let parent = h.tree.root;
    for (let depth = 0; depth < 8; depth += 1) {
      const { agent, work } = await parent.spawn("n", "go");
      await work.outcome();
      parent = agent;
    }
    expect(parent.path).toBe(`/root${"/n".repeat(8)}`);
    const { agent: held } = await h.tree.root.spawn("held", "go");
    await h.provider.gates.arrived("held");
    await held.interrupt();
    const { agent: shut, work } = await h.tree.root.spawn("shut", "go");
    await work.outcome();
    await shut.close();
    expect((await h.tree.list({ limit: 100 })).agents.some(({ resident }) => !resident)).toBe(true);
    for (const round of ["before", "after a crash"]) {
      if (round !== "before") await h.crash();
      for (const name of ["n", "held", "shut"]) {
        await expect(h.tree.root.spawn(name, "again")).rejects.toMatchObject({
          code: "AGENT_EXISTS",
          details: { path: `/root/${name}` },
        });
      }
    }
  });

  test("SPN-2 thread, edge, work, transfer and first mail are one commit", async () => {
    for (const when of ["crash_before", "crash_after"] as const) {
      await using h = await harness({ store, scripts: { "/root/w": [say("done")] } });
      const before = await look(h).snapshot();
      nextCommit(h, { kind: when });
      await expect(h.tree.root.spawn("w", "count")).rejects.toThrow("Crashed");
      h.onWrite = () => null;
      if (when === "crash_before") {
        expect(await look(h).snapshot()).toEqual(before);
        await h.crash();
        await expect(h.tree.agent("/root/w")).rejects.toMatchObject({ code: "AGENT_NOT_FOUND" });
        continue;
      }
      const rows = await look(h).view((view) => {
        const agent = view.agentAt(h.tree.id, "/root/w")!;
        const [work] = view.works(h.tree.id, { limit: 10 }).rows;
        const transfer = view.transferOfWork(work!.id, "subagent_spawn");
        return {
          agent,
          work,
          transfer,
          mail: view.unread(agent.threadId, { limit: 10 }),
          parent: view.agent(h.tree.id),
        };
      });
      expect(rows).toMatchObject({
        agent: { parent: h.tree.id, state: "open", currentRun: null },
        work: { executor: rows.agent.threadId, state: "queued", objective: "count" },
        transfer: { type: "subagent_spawn", sourceThreadId: h.tree.id, targetThreadId: rows.agent.threadId },
        mail: [
          {
            id: rows.work!.requestMailId,
            workId: rows.work!.id,
            state: "accepted",
            trigger: true,
            kind: "new_task",
          },
        ],
        parent: { children: 1 },
      });
      await h.crash();
      await expect(h.tree.work(rows.work!.id).outcome()).resolves.toMatchObject({
        ending: "completed",
        text: "done",
      });
    }
  });

  test("SPN-2 no slot and no permit is held across the commit", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { running: 1, residents: 1 } },
      scripts: { "*": [say("ok")] },
    });
    nextCommit(h, { kind: "hang" });
    const slow = h.tree.root.spawn("slow", "go");
    // The only permit and the only slot are free for another, while the first spawn's commit is under way.
    const { work } = await h.tree.root.spawn("fast", "go");
    await expect(work.outcome()).resolves.toMatchObject({ ending: "completed" });
    h.faulty.resume();
    await expect((await slow).work.outcome()).resolves.toMatchObject({ ending: "completed" });
  });

  test("SPN-1 SPN-7 what a spawn or a follow-up names is bounded in bytes, and nothing is made of more", async () => {
    await using h = await harness({ store, scripts: { "*": [say("ok")] } });
    const { agent, work } = await h.tree.root.spawn("w", "go", { model: "m".repeat(256) });
    await work.outcome();
    await h.tree.idle();
    const before = await look(h).snapshot();
    const long = {
      task_name: () => h.tree.root.spawn("a".repeat(129), "go"),
      model: () => h.tree.root.spawn("b", "go", { model: "é".repeat(129) }),
      reasoning_effort: () => h.tree.root.spawn("b", "go", { effort: "e".repeat(65) }),
    };
    for (const [argument, ask] of Object.entries(long))
      await expect(ask()).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringContaining("at most"),
        details: { argument },
      });
    for (const asked of [{ model: "m".repeat(257) }, { effort: "e".repeat(65) }])
      await expect(agent.send("go", asked)).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        details: { limit: expect.any(Number) },
      });
    // A role that is asked for is one of those that exist; the refusal does not repeat the whole.
    const nobody = h.tree.root.spawn("b", "go", { role: "r".repeat(100_000) });
    await expect(nobody).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      details: { argument: "agent_type", value: `${"r".repeat(120)}…` },
    });
    expect(await look(h).snapshot()).toEqual(before);
  });

  test("SPN-7 a spawn names its provider: on that one's default model, and none that there is not", async () => {
    const other = scripted({ "*": [say("from there")] }, { models: { big: {}, small: {} } });
    await using h = await harness({
      store,
      others: { other },
      runtime: { subagents: { model: "scripted" } },
      scripts: {
        "/root": [
          spawn("there", "go", { provider: "other", fork_turns: "none" }),
          spawn("small", "go", { provider: "other", model: "small", fork_turns: "none" }),
          spawn("nowhere", "go", { provider: "nobody" }),
          say("done"),
        ],
      },
    });
    await h.ask("start");
    const outputs = await look(h).outputs("/root", "spawn_agent");
    expect(outputs.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(errorOf(outputs[2]!)).toContain("configured providers: scripted, other");
    const summaryOf = async (path: string) => (await h.tree.agent(path)).summary();
    expect(await summaryOf("/root/there")).toMatchObject({ provider: "other", model: "big" });
    expect(await summaryOf("/root/small")).toMatchObject({ provider: "other", model: "small" });
  });

  test("SPN-7 `codex` takes no provider", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex" },
      scripts: { "/root": [spawn("w", "go", { provider: "scripted" }), say("done")] },
    });
    await h.ask("start");
    const [refused] = await look(h).outputs("/root", "spawn_agent");
    expect(refused).toMatchObject({ isError: true });
    expect(JSON.stringify(refused!.output)).toContain("provider");
  });

  test("SPN-2 a spawn is stored as queued where nothing can run yet", async () => {
    await using h = await harness({ store, runtime: ONE_PERMIT, scripts: {} });
    await occupyPermits(h);
    const { agent, work } = await h.tree.root.spawn("w", "go");
    expect(await work.record()).toMatchObject({ state: "queued" });
    expect(await agent.status()).toEqual({ kind: "queued", position: 1 });
    expect(await h.tree.counts()).toEqual({ registered: 2, resident: 0, running: 0, queued: 1 });
  });

  test("SPN-2 `reject`: permit and slot are taken before the commit, and given back when it fails", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex" },
      runtime: { limits: { running: 1 } },
      scripts: { "*": [say("ok")] },
    });
    // The checks are a commit of their own.
    nextCommit(h, { kind: "hang" }, 1);
    const first = h.tree.root.spawn("first", "go");
    await look(h).until(
      "the commit hangs",
      async () => (await h.tree.counts()).queued === 0 && h.faulty.writes > 0,
    );
    for (let at = 0; at < 20; at += 1) await turn();
    await expect(h.tree.root.spawn("second", "go")).rejects.toMatchObject({
      code: "AGENT_LIMIT_REACHED",
      details: { limit: "running", value: 1, use: 1 },
    });
    h.faulty.resume();
    await (await first).work.outcome();
    await h.tree.idle();
    const before = await look(h).snapshot();
    // The checks, the unload that makes room, then the spawn.
    nextCommit(h, { kind: "error" }, 2);
    await expect(h.tree.root.spawn("third", "go")).rejects.toMatchObject({ code: "STORE_BUSY" });
    const after = await look(h).snapshot();
    expect({ ...after, events: 0 }).toEqual({ ...before, events: 0 });
    const { work } = await h.tree.root.spawn("third", "go");
    await expect(work.outcome()).resolves.toMatchObject({ ending: "completed" });
  });

  test("SPN-2 a spawn that fails leaves nothing behind", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { ...ONE_PERMIT.limits, directChildren: 2, mailboxMessages: 1 } },
      scripts: { "*": [say("ok")] },
    });
    await occupyPermits(h);
    const { agent } = await h.tree.root.spawn("dup", "go");
    const before = await look(h).snapshot();
    const spawns = [
      () => h.tree.root.spawn("dup", "go"),
      () => h.tree.root.spawn("Bad", "go"),
      () => h.tree.root.spawn("w", " "),
      () => h.tree.root.spawn("w", "go", { forkTurns: "0" }),
      () => h.tree.root.spawn("w", "go", { role: "nobody" }),
      // The mailbox of who is to get the result has no room, found after the thread was made.
      () => h.tree.root.spawn("w", "go", { replyTo: agent.path }),
      () => h.tree.root.spawn("w", "go", { replyTo: "/root/nobody" }),
      async () => {
        nextCommit(h, { kind: "error" });
        await h.tree.root.spawn("w", "go");
      },
    ];
    const codes: string[] = [];
    for (const attempt of spawns) {
      const error: unknown = await attempt().then(
        () => null,
        (reason: unknown) => reason,
      );
      codes.push((error as { code: string }).code);
      expect(await look(h).snapshot()).toEqual(before);
    }
    expect(codes).toEqual([
      "AGENT_EXISTS",
      "INVALID_ARGUMENT",
      "INVALID_ARGUMENT",
      "INVALID_ARGUMENT",
      "INVALID_ARGUMENT",
      "MAILBOX_FULL",
      "AGENT_NOT_FOUND",
      "STORE_BUSY",
    ]);
    expect((await h.tree.root.spawn("w", "go")).agent.path).toBe("/root/w");
    await expect(h.tree.root.spawn("more", "go")).rejects.toMatchObject({ code: "LIMIT_REACHED" });
  });

  test("SPN-3 of several faults the first of the fixed order is told", async () => {
    // In the order of the checks: what is wrong, and how its refusal is known.
    const faults: readonly {
      readonly give: JsonObject;
      readonly code: string;
      readonly argument?: string;
    }[] = [
      { give: { colour: "red" }, code: "INVALID_ARGUMENT" },
      { give: { fork_turns: "banana" }, code: "INVALID_ARGUMENT", argument: "fork_turns" },
      { give: { message: "  " }, code: "INVALID_ARGUMENT", argument: "message" },
      { give: { model: "unknown" }, code: "INVALID_ARGUMENT", argument: "model" },
      { give: { reasoning_effort: "absurd" }, code: "INVALID_ARGUMENT", argument: "reasoning_effort" },
      { give: { agent_type: "nobody" }, code: "INVALID_ARGUMENT", argument: "agent_type" },
      { give: { task_name: "Bad" }, code: "INVALID_ARGUMENT", argument: "task_name" },
    ];
    const pairs = faults.flatMap((first, at) => faults.slice(at).map((second) => ({ first, second })));
    const capacity = { give: { task_name: "dup" }, code: "AGENT_LIMIT_REACHED" };
    const atCapacity = faults.map((first) => ({ first, second: capacity }));
    for (const full of [false, true]) {
      const asked = full ? [...atCapacity, { first: capacity, second: capacity }] : pairs;
      await using h = await harness({
        store,
        scripted: { models: { known: { efforts: ["low"] } } },
        tree: full ? { limits: { agentsPerTree: 1 } } : {},
        scripts: {
          "/root": [
            spawn("dup", "exists", { detached: true, wake: "never" }),
            together(
              ...asked.map(({ first, second }) =>
                call("spawn_agent", { task_name: "w", message: "go", ...second.give, ...first.give }),
              ),
              spawn("dup", "again"),
            ),
            say("done"),
          ],
          "*": [say("ok")],
        },
      });
      await h.ask("start");
      const outputs = (await look(h).outputs("/root", "spawn_agent")).slice(1);
      expect(outputs.every(({ isError }) => isError)).toBe(true);
      const told = outputs.map((one) => ({
        code: one.output["code"],
        argument: detailsOf(one)["argument"],
        accepted: detailsOf(one)["accepted"] !== undefined,
      }));
      expect(told).toEqual([
        ...asked.map(({ first }) => ({
          code: first.code,
          argument: "argument" in first ? first.argument : undefined,
          accepted: first === faults[0],
        })),
        // Alone, the duplicate is what is wrong; at capacity the limit is told first.
        { code: full ? "AGENT_LIMIT_REACHED" : "AGENT_EXISTS", argument: undefined, accepted: false },
      ]);
    }
  });

  test("SPN-3 arguments: the accepted fields are listed, wrong types and old names are refused, null is left out", async () => {
    await using h = await harness({
      store,
      scripted: { models: { known: { efforts: ["low", "high"] } } },
      scripts: {
        "/root": [
          together(
            call("spawn_agent", { task_name: "a", message: "go", items: [] }),
            call("spawn_agent", { task_name: "a", message: "go", fork_context: true }),
            call("spawn_agent", { task_name: "a", message: "go", fork_turns: 3 }),
            call("spawn_agent", { task_name: "a", message: "go", model: "gpt" }),
            call("spawn_agent", { task_name: "a", message: "go", reasoning_effort: "ultra" }),
            call("spawn_agent", { task_name: "a", message: "go", agent_type: "wizard" }),
            call("spawn_agent", { task_name: "a", message: "go", fork_turns: " ALL ", model: null }),
            call("spawn_agent", { task_name: "b", message: "go", fork_turns: "" }),
          ),
          say("done"),
          say("woken"),
          say("woken"),
        ],
        "*": [say("ok")],
      },
    });
    await h.ask("start");
    const texts = (await look(h).outputs("/root", "spawn_agent")).map((one) =>
      one.isError ? errorOf(one) : `ok ${textAt(one, "task_name")}`,
    );
    expect(texts.slice(0, 6)).toEqual([
      expect.stringMatching(
        /unknown field `items`.*Accepted fields: task_name, message, fork_turns, model, reasoning_effort, agent_type/,
      ),
      expect.stringContaining("fork_turns"),
      expect.stringContaining("fork_turns: "),
      expect.stringMatching(/gpt.*known/),
      expect.stringMatching(/ultra.*low.*high/),
      expect.stringContaining("wizard"),
    ]);
    expect(texts.slice(6).toSorted()).toEqual(["ok /root/a", "ok /root/b"]);
    const [note] = await look(h).transfers("subagent_spawn");
    expect(note!.note).toBe("all");
  });

  test("SPN-4 children of equal length take the time of one", async () => {
    const names = Array.from({ length: 8 }, (_, at) => `w${at}`);
    await using h = await harness({
      store,
      runtime: { limits: { running: 8, directChildren: 8 } },
      scripts: {
        "/root": [
          together(...names.map((name) => spawn(name, "go")), spawn("one_too_many", "go")),
          say("started"),
          (context) => say(`woken ${context.ownSteps}`),
        ],
        "*": [pause(1000), gate("all"), say("ok")],
      },
    });
    const asked = h.tree.root.send("start");
    await look(h).until("all have begun", async () => (await h.tree.counts()).running === 8);
    await h.clock.advance(1000);
    // All of them are there at once: a barrier that one after the other could never pass.
    await h.provider.gates.arrived("all", 8);
    h.provider.gates.open("all");
    await expect((await asked).outcome()).resolves.toMatchObject({ ending: "completed" });
    for (const name of names) {
      const [run] = await look(h).runs(`/root/${name}`);
      expect(run).toMatchObject({ acceptedAt: VIRTUAL_START, completedAt: VIRTUAL_START + 1000 });
    }
    const outputs = await look(h).outputs("/root", "spawn_agent");
    // One over the limit fails by itself; the others stand.
    expect(outputs.map(({ isError }) => isError)).toEqual([...names.map(() => false), true]);
  });

  test("SPN-4 an unload that the store fails is tried again: nobody waits for its place for ever", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: { "*": [say("ok")] },
    });
    await (await h.tree.root.spawn("first", "go")).work.outcome();
    await h.tree.idle();
    // The spawn itself, then the unload that makes room for it.
    nextCommit(h, { kind: "error" }, 1);
    const { work } = await h.tree.root.spawn("second", "go");
    for (let at = 0; at < 50; at += 1) await turn();
    expect(await work.record()).toMatchObject({ state: "queued" });
    await h.clock.advance(500);
    await expect(work.outcome()).resolves.toMatchObject({ ending: "completed" });
  });

  test("SPN-4 neither a slow provider nor a slow store of one child holds another", async () => {
    const script: Script = [say("ok")];
    const provider = scripted({ "*": script });
    const slow = Promise.withResolvers<void>();
    await using h = await harness({
      store,
      runtime: {
        providers: {
          scripted: {
            ...provider,
            openSession: async (options: Parameters<typeof provider.openSession>[0]) => {
              if (options.path === "/root/slow") await slow.promise;
              return provider.openSession(options);
            },
          },
        },
      },
    });
    const first = await h.tree.root.spawn("slow", "go");
    nextCommit(h, { kind: "hang" });
    const second = h.tree.root.spawn("slow_store", "go");
    const third = await h.tree.root.spawn("fast", "go");
    await expect(third.work.outcome()).resolves.toMatchObject({ ending: "completed" });
    expect(await first.work.record()).toMatchObject({ state: "queued" });
    await expect(h.tree.agent("/root/slow_store")).rejects.toMatchObject({ code: "AGENT_NOT_FOUND" });
    slow.resolve();
    h.faulty.resume();
    await first.work.outcome();
    await (await second).work.outcome();
  });
});
