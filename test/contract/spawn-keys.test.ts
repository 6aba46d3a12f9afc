/** SPN-6, LST-1: idempotency keys of every mutating call, and the list of agents. */
import { describe, expect, test } from "vitest";
import { gate, list, call, say, spawn, together, ask, fail } from "../../src/providers/scripted/script.ts";
import { hostTools } from "../../src/tools/host-tools.ts";
import { harness, STORES } from "../support/harness.ts";
import { look, textAt } from "../support/look.ts";
import type { Json, JsonObject } from "../../src/protocol/json.ts";

const CONFLICT = { code: "COMMAND_ID_CONFLICT" };

describe.each(STORES)("idempotency keys on %s", (store) => {
  test("SPN-6 a repeated key with equal arguments gives the first receipt and no second effect; others conflict", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/asks": [ask("which?"), say("thanks")], "*": [say("ok"), say("ok"), say("ok")] },
    });
    const { root } = h.tree;
    const { agent: w } = await root.spawn("w", "go");
    await root.spawn("asks", "go");
    await h.tree.idle();
    await look(h).until(
      "the question is open",
      async () => (await (await h.tree.agent("/root/asks")).status()).kind === "awaiting_approval",
    );
    const [request] = await look(h).view((view) =>
      view.openRequestsOf(view.agentAt(h.tree.id, "/root/asks")!.threadId),
    );
    const calls: readonly {
      readonly name: string;
      readonly act: (key: string, other: boolean) => Promise<unknown>;
    }[] = [
      {
        name: "spawn",
        act: async (key, other) => {
          const { agent, work } = await root.spawn("twice", other ? "other" : "go", { commandId: key });
          return [agent.path, agent.threadId, work.id];
        },
      },
      { name: "tell", act: (key, other) => w.tell(other ? "other" : "hello", { commandId: key }) },
      {
        name: "send",
        act: async (key, other) => (await w.send(other ? "other" : "hello", { commandId: key })).id,
      },
      {
        name: "interrupt",
        act: (key, other) => w.interrupt({ commandId: key, cascade: other ? "subtree" : "none" }),
      },
      { name: "raise", act: (key, other) => w.raiseBudget("tokens", other ? 1 : 1000, { commandId: key }) },
      {
        name: "answer",
        act: (key, other) => h.tree.answer(request!.id, other ? "b" : "a", { commandId: key }),
      },
      { name: "close", act: (key, other) => w.close({ commandId: key, politely: other }) },
    ];
    for (const { name, act } of calls) {
      const first = await act(`key ${name}`, false);
      await h.tree.idle();
      const before = await look(h).snapshot();
      expect(await act(`key ${name}`, false)).toEqual(first);
      await expect(act(`key ${name}`, true)).rejects.toMatchObject(CONFLICT);
      expect(await look(h).snapshot()).toEqual(before);
    }
    // Kept for the life of the tree, over a restart.
    await h.crash();
    const again = await h.tree.root.spawn("twice", "go", { commandId: "key spawn" });
    expect(again.agent.path).toBe("/root/twice");
    await expect(h.tree.root.spawn("twice", "other", { commandId: "key spawn" })).rejects.toMatchObject(
      CONFLICT,
    );
    await expect(h.tree.root.spawn("twice", "go")).rejects.toMatchObject({ code: "AGENT_EXISTS" });
  });

  test("SPN-6 a call of a run is known by agent, run, step and call id; ids repeat from step to step", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [gate("in"), say("done")], "/root/w": [gate("in"), say("done")], "*": [say("ok")] },
    });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("in");
    await h.tree.root.spawn("w", "go");
    await h.provider.gates.arrived("in", 2);
    const { control } = h.tree;
    const root = { ...(await look(h).caller("/root", "call_1")), step: 1 };
    const input = { taskName: "a", message: "go", forkTurns: "none", asked: {} };
    const first = await control.spawn(root, input);
    expect(await control.spawn(root, input)).toEqual(first);
    await expect(control.spawn(root, { ...input, message: "other" })).rejects.toMatchObject(CONFLICT);
    // The same call id in another step, of another agent, or another call of the step is another call.
    await expect(control.spawn({ ...root, step: 2 }, input)).rejects.toMatchObject({ code: "AGENT_EXISTS" });
    await expect(control.spawn({ ...root, callId: "call_2" }, input)).rejects.toMatchObject({
      code: "AGENT_EXISTS",
    });
    const ofChild = await control.spawn({ ...(await look(h).caller("/root/w", "call_1")), step: 1 }, input);
    expect(ofChild.path).toBe("/root/w/a");
    const sent = await control.send({ ...root, callId: "call_3" }, "/root/w", "hello");
    expect(await control.send({ ...root, callId: "call_3" }, "/root/w", "hello")).toEqual(sent);
    const asked = await control.followUp(
      { ...root, callId: "call_4" },
      { target: "/root/w", message: "more" },
    );
    expect(
      await control.followUp({ ...root, callId: "call_4" }, { target: "/root/w", message: "more" }),
    ).toEqual(asked);
    const messages = (await look(h).mail("/root/w")).filter(({ resultOf }) => resultOf === null);
    expect(messages).toHaveLength(3);
    const served = (await look(h).runs("/root/w"))[0]!.serves[0]!;
    const w = { ...(await look(h).caller("/root/w", "call_5")), step: 1 };
    const report = { workId: served, text: "seven", status: "completed" } as const;
    const reported = await control.reportResult(w, report);
    expect(await control.reportResult(w, report)).toEqual(reported);
    await expect(control.reportResult(w, { ...report, text: "eight" })).rejects.toMatchObject(CONFLICT);
    await expect(control.reportResult({ ...w, callId: "call_6" }, report)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    h.provider.gates.openAll();
  });

  test("SPN-6 a key that a model gives holds in its later steps and runs, and for nobody else", async () => {
    const keyed = (message: string) =>
      call("send_message", { target: "/root/w", message, idempotency_key: "k" });
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          keyed("hello"),
          keyed("hello"),
          keyed("other"),
          say("first"),
          keyed("hello"),
          spawn("v", "go", { detached: true, wake: "never" }),
          say("second"),
        ],
        "/root/v": [keyed("hello"), say("ok")],
        "*": [say("ok")],
      },
    });
    await h.tree.root.spawn("w", "go");
    await h.ask("one");
    await h.ask("two");
    await h.tree.idle();
    const outputs = await look(h).outputs("/root", "send_message");
    const ids = outputs.map(({ output }) => output["message_id"]);
    expect(outputs.map(({ isError }) => isError)).toEqual([false, false, true, false]);
    expect(outputs[2]!.output["code"]).toBe("COMMAND_ID_CONFLICT");
    expect(new Set([ids[0], ids[1], ids[3]]).size).toBe(1);
    const plain = (await look(h).mail("/root/w")).filter(({ kind }) => kind === "message");
    expect(plain.map(({ author }) => author.kind === "agent" && author.path)).toEqual(["/root", "/root/v"]);
  });

  test("SPN-6 without stable call ids there is no key unless the caller gives one", async () => {
    await using h = await harness({ store, tree: { hostDriven: true }, scripts: { "*": [say("ok")] } });
    const tools = new Map(hostTools(h.tree.control, h.tree.id).map((tool) => [tool.name, tool]));
    const asked = async (name: string, input: JsonObject) => {
      const { output } = await tools.get(name)!.call(input);
      return output as Record<string, Json>;
    };
    await asked("spawn_agent", { task_name: "w", message: "go" });
    const message = { target: "w", message: "hello" };
    const one = await asked("send_message", message);
    const two = await asked("send_message", message);
    expect(one["message_id"]).not.toBe(two["message_id"]);
    const keyed = { ...message, idempotency_key: "k" };
    const three = await asked("send_message", keyed);
    expect((await asked("send_message", keyed))["message_id"]).toBe(three["message_id"]);
    expect((await asked("send_message", { ...keyed, message: "other" }))["code"]).toBe("COMMAND_ID_CONFLICT");
    // A user's key is not a host's.
    const user = await (await h.tree.agent("/root/w")).tell("hello", { commandId: "k" });
    expect(user.id).not.toBe(three["message_id"]);
  });

  test("SPN-6 `reject`: what was done is answered from its receipt, however full it is meanwhile", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex", limits: { running: 1 } },
      scripts: { "*": [gate("in"), say("ok")] },
    });
    const first = await h.tree.root.spawn("w", "go", { commandId: "k" });
    await h.provider.gates.arrived("in");
    const again = await h.tree.root.spawn("w", "go", { commandId: "k" });
    expect([again.agent.threadId, again.work.id]).toEqual([first.agent.threadId, first.work.id]);
    await expect(h.tree.root.spawn("w", "other", { commandId: "k" })).rejects.toMatchObject(CONFLICT);
    await expect(h.tree.root.spawn("v", "go", { commandId: "v" })).rejects.toMatchObject({
      code: "AGENT_LIMIT_REACHED",
    });
    h.provider.gates.openAll();
    await h.tree.idle();
    await expect(h.tree.root.spawn("v", "go", { commandId: "v" })).resolves.toMatchObject({
      agent: { path: "/root/v" },
    });
  });
});

describe.each(STORES)("the list of agents on %s", (store) => {
  test("LST-1 shows every registered agent, paged, with residency apart, bounded outcome, debts and unread mail", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2, running: 8 } },
      scripts: {
        "/root": [
          together(list(), list({ limit: 2 }), list({ path_prefix: "b" }), list({ path_prefix: "/root/zz" })),
          say("done"),
        ],
        "/root/long": [say("x".repeat(5000))],
        "/root/broken": [fail({ code: "PROVIDER_REFUSED", message: "no" })],
        "*": [say("ok")],
      },
    });
    const names = ["long", "broken", "b", "b2", "told"];
    for (const name of names) await (await h.tree.root.spawn(name, "go")).work.outcome();
    const told = await h.tree.agent("/root/told");
    await told.tell("one");
    await h.clock.advance(500);
    await told.tell("two");
    const shut = await h.tree.root.spawn("shut", "go");
    await shut.work.outcome();
    await shut.agent.close();
    await h.ask("list");
    const [all, page, below, none] = (await look(h).outputs("/root", "list_agents")).map(
      ({ output }) => output as { agents: JsonObject[]; next?: string },
    );
    const paths = (one: typeof all) => one!.agents.map((agent) => agent["agent"]);
    expect(paths(all)).toEqual(["/root", "/root/b", "/root/b2", "/root/broken", "/root/long", "/root/told"]);
    expect(paths(page)).toEqual(["/root", "/root/b"]);
    expect(page!.next).toEqual(expect.any(String));
    expect(all!.next).toBeUndefined();
    expect(paths(below)).toEqual(["/root/b"]);
    expect(paths(none)).toEqual([]);
    const row = (path: string) => all!.agents.find((agent) => agent["agent"] === path)!;
    expect(row("/root")).toMatchObject({
      status: { kind: "running" },
      resident: true,
      open_works: [expect.stringMatching(/^wrk_/)],
    });
    expect(row("/root/told")).toMatchObject({
      status: { kind: "idle", last: "completed" },
      open_works: [],
      unread: 2,
      oldest_unread_ms: 500,
    });
    expect(row("/root/broken")["last_outcome"]).toMatchObject({
      status: "failed",
      reason: "provider_error",
      text: "PROVIDER_REFUSED: no",
    });
    expect(textAt(row("/root/long")["last_outcome"] as JsonObject, "text")).toBe("x".repeat(1024));
    // Two are resident at most; all the others are shown all the same.
    expect(all!.agents.filter((agent) => agent["resident"] === true).length).toBeLessThanOrEqual(2);
  });

  test("LST-1 pages end, closed agents come on request, and all of it survives a restart", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/held": [gate("held"), say("ok")], "*": [say("ok")] },
    });
    for (const name of ["a", "b", "c"]) await (await h.tree.root.spawn(name, "go")).work.outcome();
    await (await h.tree.agent("/root/b")).close();
    const held = await h.tree.root.spawn("held", "go");
    await h.provider.gates.arrived("held");
    await held.agent.interrupt();
    const listed = async (closed: boolean) => {
      const rows = [];
      for (let after: string | null = null; ;) {
        const page = await h.tree.list({ limit: 2, after, closed });
        rows.push(...page.agents);
        after = page.next;
        if (after === null) return rows;
      }
    };
    const before = await listed(true);
    expect(before.map(({ path }) => path)).toEqual(["/root", "/root/a", "/root/b", "/root/c", "/root/held"]);
    expect(before.map(({ status }) => status)).toEqual([
      { kind: "idle", last: null },
      { kind: "idle", last: "completed" },
      { kind: "closed" },
      { kind: "idle", last: "completed" },
      { kind: "idle", last: "interrupted" },
    ]);
    await h.crash();
    const after = await listed(true);
    expect(after).toEqual(before.map((one) => ({ ...one, resident: false })));
    expect((await listed(false)).map(({ path }) => path)).toEqual([
      "/root",
      "/root/a",
      "/root/c",
      "/root/held",
    ]);
  });
});
