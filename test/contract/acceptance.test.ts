/** The ten cases in which delegation goes wrong elsewhere. Each test checks all that its case expects. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { loadRoles } from "../../src/policy/roles.ts";
import {
  call,
  followUp,
  gate,
  interrupt,
  list,
  repeat,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, STORES } from "../support/harness.ts";
import { nextAgent } from "../../src/testing/store-records.ts";
import { look } from "../support/look.ts";

describe.each(STORES)("acceptance on %s", (store) => {
  test("ACC-1 idle message: sent to a finished agent it starts nothing, a follow-up does, and neither is lost", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("b", "first"),
          wait({ targets: ["b"] }),
          send("b", "note this"),
          say("waiting"),
          followUp("b", "now go on"),
          wait({ targets: ["b"] }),
          say("done"),
        ],
        "/root/b": [say("one"), say((context) => `read: ${context.inputs.join(" | ")}`)],
      },
    });
    await h.ask("go");
    await h.tree.idle();
    // The message is accepted and waits; no run, no session, no permit was given to it.
    const b = await h.tree.agent("b");
    expect(await look(h).runs("/root/b")).toHaveLength(1);
    expect(await b.status()).toEqual({ kind: "idle", last: "completed" });
    expect((await look(h).mail("/root/b")).map(({ kind, state, trigger }) => [kind, state, trigger])).toEqual(
      [
        ["new_task", "settled", true],
        ["message", "accepted", false],
      ],
    );
    expect((await b.summary()).unread).toBe(1);
    await h.ask("continue");
    // The follow-up started one run, which read both, in their order.
    expect(await look(h).runs("/root/b")).toHaveLength(2);
    const [, answer] = await look(h).works("/root/b");
    expect(answer!.outcome!.text).toMatch(/note this[\s\S]*now go on/);
    expect((await look(h).mail("/root/b")).map(({ state }) => state)).toEqual([
      "settled",
      "settled",
      "settled",
    ]);
  });

  test("ACC-2 message during a tool: acceptance and consumption can both be seen, and the tool is not cut short", async () => {
    const finished: boolean[] = [];
    const slow = defineTool({
      name: "slow",
      input: z.strictObject({}),
      effects: ["read"],
      run: async (_input, { signal }) => {
        await h.provider.gates.pass("tool", signal);
        finished.push(!signal.aborted);
        return "slept";
      },
    });
    await using h = await harness({
      store,
      scripts: {
        "/root/b": [call("slow"), say((context) => `after the tool: ${context.inputs.length} messages`)],
      },
      runtime: { tools: [slow] },
    });
    const { agent: b, work } = await h.tree.root.spawn("b", "use the tool");
    await h.provider.gates.arrived("tool");
    const receipt = await b.tell("meanwhile");
    expect(receipt).toMatchObject({ state: "accepted", runId: null, recipient: "/root/b" });
    await h.clock.advance(1000);
    expect((await look(h).mail("/root/b")).at(-1)).toMatchObject({ id: receipt.id, state: "accepted" });
    expect([finished, h.provider.requests("/root/b").length]).toEqual([[], 1]);
    h.provider.gates.open("tool");
    expect((await work.outcome()).text).toBe("after the tool: 1 messages");
    expect(finished).toEqual([true]);
    const [run] = await look(h).runs("/root/b");
    expect((await look(h).mail("/root/b")).at(-1)).toMatchObject({ state: "settled", runId: run!.id });
    // When each happened stands in the log: accepted during the tool, delivered after it.
    const log = await h.tree.log(0, 1000);
    const when = (type: string, mailId?: string): number =>
      log.find((event) => event.type === type && (mailId === undefined || event.data["mailId"] === mailId))!
        .seq;
    expect(when("tool.called")).toBeLessThan(when("mail.accepted", receipt.id));
    expect(when("mail.accepted", receipt.id)).toBeLessThan(when("tool.returned"));
    expect(when("tool.returned")).toBeLessThan(when("mail.delivered", receipt.id));
  });

  test("ACC-3 sibling delegation: activity, result and reply address each go where they should, and say so", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("b", "be ready"), wait({ targets: ["b"] }), spawn("a", "ask b"), repeat(say("ok"))],
        "/root/a": [
          followUp("/root/b", "answer me"),
          followUp("/root/b", "answer the root", { reply_to: "/root" }),
          repeat(say((context) => `a heard ${context.inputs.length}`)),
        ],
        "/root/b": [
          say("ready"),
          repeat(say((context) => `b answers ${context.inputs.join(" ").length > 0}`)),
        ],
      },
    });
    await h.ask("go");
    await h.tree.idle();
    const [, mine, roots] = await look(h).works("/root/b");
    const a = await (await h.tree.agent("a")).record();
    expect(mine).toMatchObject({
      requester: { path: "/root/a" },
      replyTo: { path: "/root/a" },
      executorPath: "/root/b",
      detached: false,
    });
    expect(roots).toMatchObject({
      requester: { path: "/root/a" },
      replyTo: { path: "/root" },
      detached: true,
    });
    // Results: to whoever each work names, not to b's parent by habit.
    const resultsAt = async (path: string) =>
      (await look(h).mail(path))
        .filter(({ kind }) => kind === "final_answer")
        .map(({ resultOf }) => resultOf);
    expect(await resultsAt("/root/a")).toEqual([mine!.id]);
    expect(await resultsAt("/root")).toContain(roots!.id);
    expect(await resultsAt("/root")).not.toContain(mine!.id);
    // Activities: on the run that asked, which is a's.
    const told = (await h.tree.log(0, 2000)).filter(
      ({ type, workId }) => type.startsWith("activity.") && (workId === mine!.id || workId === roots!.id),
    );
    expect(told.map(({ type }) => type).toSorted()).toEqual([
      "activity.completed",
      "activity.completed",
      "activity.interacted",
      "activity.interacted",
    ]);
    expect(new Set(told.map(({ threadId, runId }) => `${threadId} ${runId}`))).toEqual(
      new Set([`${a.threadId} ${mine!.originRunId}`]),
    );
    // And the transfers say the same.
    const transfers = await look(h).transfers("subagent_result");
    const targetOf = (work: string) => transfers.find((transfer) => transfer.workId === work);
    expect(targetOf(mine!.id)).toMatchObject({ targetThreadId: a.threadId });
    expect(targetOf(roots!.id)).toMatchObject({ targetThreadId: h.tree.id });
  });

  test("ACC-4 several requests in one run: the run is shared, the works settle each for its own requester", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("b", "be ready"),
          wait({ targets: ["b"] }),
          together(spawn("a", "x"), spawn("d", "y")),
          repeat(say("ok")),
        ],
        "/root/a": [followUp("/root/b", "for a"), repeat(say("a is done"))],
        "/root/d": [followUp("/root/b", "for d"), repeat(say("d is done"))],
        "/root/b": [
          say("ready"),
          together(gate("both"), list()),
          call("report_result", (context) => ({
            work_id: /Work id: (\S+)[\s\S]*?for d/.exec(
              JSON.stringify(context.messages).replaceAll("\\n", "\n"),
            )
              ? [...JSON.stringify(context.messages).matchAll(/Work id: (wrk_\w+)/g)].at(-1)![1]!
              : "",
            result: "this one by itself",
          })),
          repeat(say("the other with the run")),
        ],
      },
    });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("both");
    await waitUntil("both have asked", async () => (await look(h).works("/root/b")).length === 3);
    h.provider.gates.open("both");
    await h.tree.idle();
    const [, first, second] = await look(h).works("/root/b");
    const runs = await look(h).runs("/root/b");
    const shared = runs.find(({ serves }) => serves.includes(first!.id) && serves.includes(second!.id));
    expect(shared).toBeDefined();
    // Both were served by the one run; each has its own ending, its own text and its own way home.
    const ends = [first!, second!].map(({ requester, outcome, resultMailId }) => ({
      requester: (requester as { path: string }).path,
      text: outcome!.text,
      ending: outcome!.ending,
      resultMailId,
    }));
    expect(ends.map(({ ending }) => ending)).toEqual(["completed", "completed"]);
    expect(new Set(ends.map(({ text }) => text))).toEqual(
      new Set(["this one by itself", "the other with the run"]),
    );
    for (const { requester, resultMailId, text } of ends) {
      const results = (await look(h).mail(requester)).filter(({ kind }) => kind === "final_answer");
      expect(results.map(({ id, content }) => [id, content.text])).toEqual([[resultMailId, text]]);
    }
    // The one that went with the run says that it shared it.
    const byRun = [first!, second!].find(({ outcome }) => outcome!.text === "the other with the run")!;
    expect(byRun.outcome!.shared).toBe(true);
  });

  test("ACC-5 final race: a result that meets the final answer prolongs nothing and is kept; policy decides on the next run", async () => {
    for (const [wake, runs] of [
      ["never", 1],
      ["settled_only", 2],
      ["always", 2],
    ] as const) {
      await using h = await harness({
        store,
        scripts: {
          "/root": [
            spawn("b", "work", { wake, detached: true }),
            together(say("this is final"), gate("final")),
            repeat(say((context) => `woken with ${context.inputs.length}`)),
          ],
          "/root/b": [together(gate("b"), say("b is done"))],
        },
      });
      const work = await h.tree.root.send("go");
      for (const name of ["final", "b"]) await h.provider.gates.arrived(name);
      h.provider.gates.open("b");
      await waitUntil("the result is there", async () => (await look(h).mail("/root")).length === 2);
      const asked = h.provider.requests("/root").length;
      h.provider.gates.open("final");
      expect(await work.outcome()).toMatchObject({ ending: "completed", text: "this is final" });
      // The run that gave the answer asked nothing more.
      expect((await look(h).runs("/root"))[0]).toMatchObject({ status: "completed", steps: 2 });
      await h.tree.idle();
      expect(await look(h).runs("/root")).toHaveLength(runs);
      expect(h.provider.requests("/root").length - asked).toBe(runs - 1);
      const result = (await look(h).mail("/root"))[1]!;
      expect(result).toMatchObject({ kind: "final_answer", state: runs === 2 ? "settled" : "accepted" });
      // Kept either way: the next run has it.
      await h.ask("and?");
      expect((await look(h).mail("/root"))[1]!.state).toBe("settled");
      expect(JSON.stringify(await h.tree.root.transcript())).toContain("b is done");
    }
  });

  test("ACC-6 capacity and eviction: registered, resident and running differ; the busy and those with mail stay", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/busy": [together(gate("busy"), say("done"))],
        "*": [repeat(say("done"))],
      },
      tree: { limits: { running: 2 } },
      runtime: { limits: { residents: 3 } },
    });
    await h.tree.root.spawn("busy", "long work");
    await h.provider.gates.arrived("busy");
    const { agent: mailed, work } = await h.tree.root.spawn("mailed", "short work");
    await work.outcome();
    await mailed.tell("unread");
    for (let at = 0; at < 8; at += 1) {
      const { work: more } = await h.tree.root.spawn(`w_${at}`, "short work");
      expect((await more.outcome()).ending).toBe("completed");
      expect((await h.tree.counts()).resident).toBeLessThanOrEqual(3);
    }
    const counts = await h.tree.counts();
    expect(counts).toMatchObject({ registered: 11, running: 1 });
    expect(counts.resident).toBe(3);
    const resident = (await h.tree.list()).agents.filter((agent) => agent.resident).map(({ path }) => path);
    // The busy one was never a candidate; the one with mail goes after all that have none.
    expect(resident).toContain("/root/busy");
    expect(resident).toContain("/root/mailed");
    const unloaded = (await h.tree.log(0, 2000))
      .filter(({ type }) => type === "agent.unloaded")
      .map(({ path }) => path);
    expect(unloaded).not.toContain("/root/busy");
    expect(unloaded).not.toContain("/root/mailed");
    expect(unloaded.indexOf("/root/w_0" as never)).toBeGreaterThanOrEqual(0);
    // Every agent that was put away is still registered, listed and can be given work.
    expect((await h.tree.list()).agents).toHaveLength(11);
    const first = await h.tree.agent("w_0");
    expect(await first.status()).toEqual({ kind: "idle", last: "completed" });
    expect((await (await first.send("again")).outcome()).ending).toBe("completed");
  });

  test("ACC-7 recovery: no authority grows, a failure has its reason, and what cannot be recovered is no success", async () => {
    let written = 0;
    const writes = defineTool({
      name: "writes",
      input: z.strictObject({}),
      effects: ["write"],
      run: async () => `written ${(written += 1)} times`,
    });
    const scripts = {
      "/root": [repeat(say("ok"))],
      "/root/parent": [repeat(say("ok"))],
      "/root/parent/reader": [say("first"), call("writes"), repeat(say((context) => context.lastToolText))],
      "/root/parent/writer": [say("first"), call("writes"), repeat(say((context) => context.lastToolText))],
      "/root/homeless": [say("first"), say("never")],
    };
    await using h = await harness({ store, scripts, runtime: { tools: [writes] } });
    const { agent: parent, work } = await h.tree.root.spawn("parent", "work");
    await work.outcome();
    const { work: read } = await parent.spawn("reader", "work", { effects: ["read"] });
    await read.outcome();
    const { work: write } = await parent.spawn("writer", "work");
    await write.outcome();
    const { agent: homeless, work: housed } = await h.tree.root.spawn("homeless", "work", { workspace: "/" });
    await housed.outcome();
    // The parent may only read by now, the environment of one has gone, and the runtime was killed.
    await h.store.commit(h.tree.control.tree.lease, (tx) => {
      const narrowed = tx.agent(parent.threadId)!;
      tx.putAgent(nextAgent(narrowed, { config: { ...narrowed.config, effects: ["read"] } }));
      const record = tx.agent(homeless.threadId)!;
      tx.putAgent(nextAgent(record, { config: { ...record.config, workspace: "/no/such/folder" } }));
    });
    await h.crash();
    const again = await h.tree.agent("/root/parent/reader");
    expect((await again.record()).config.effects).toEqual(["read"]);
    const outcome = await (await again.send("write something")).outcome();
    expect(outcome).toMatchObject({
      ending: "completed",
      text: expect.stringContaining("AUTHORITY_ESCALATION_DENIED"),
    });
    // What an agent was given once is bounded by what its parent may now.
    const wider = await (await (await h.tree.agent("/root/parent/writer")).send("write something")).outcome();
    expect(wider.text).toContain("AUTHORITY_ESCALATION_DENIED");
    expect(written).toBe(0);
    // What cannot be loaded says why, typed, and its work is no success.
    const lost = await (await (await h.tree.agent("homeless")).send("again")).outcome();
    expect(lost).toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
    expect(lost.error!.message).toContain("workspace_missing");
    const why = (await (await h.tree.agent("homeless")).why()).reasons.join("\n");
    expect(why).toContain("workspace_missing");
    expect((await look(h).runs("/root/homeless")).map(({ status }) => status)).toEqual(["completed"]);
  });

  test("ACC-8 role configuration: asked and effective can be compared, and what was clipped is named", async () => {
    const tool = (name: string, effects: ("read" | "write" | "execute" | "network")[]) =>
      defineTool({ name, input: z.strictObject({}), effects, run: async () => name });
    const tools = [
      tool("look", ["read"]),
      tool("change", ["write"]),
      tool("call_out", ["network"]),
      tool("fetch", ["network"]),
    ];
    const roles = loadRoles(
      [
        {
          file: "auditor.md",
          bytes: Buffer.from(
            [
              "---",
              "name: auditor",
              "description: Looks and writes.",
              "model: small",
              "tools: look, change, call_out, fetch",
              "disallowedTools: fetch",
              "sandbox_mode: danger-full-access",
              "permissionMode: wild",
              "colour: red",
              "mcpServers:",
              "  - tracker",
              "effects: [read, write, network]",
              "---",
              "You audit.",
            ].join("\n"),
          ),
        },
      ],
      tools,
    );
    // What sets a ceiling is kept as it was written; what says nothing is named.
    expect(roles.roles.get("auditor")!.authority).toContainEqual({
      field: "sandbox_mode",
      asked: "danger-full-access",
    });
    expect(roles.warnings).toEqual([
      "auditor.md: permissionMode: `wild` is not known and has no effect",
      "auditor.md: colour: is not known and has no effect",
    ]);
    await using h = await harness({
      store,
      scripts: { "*": [repeat(say("ok"))] },
      scripted: { models: { large: {}, small: {} } },
      tree: { model: "large", effects: ["read", "network"] },
      runtime: { tools, roles },
    });
    const { agent, work } = await h.tree.root.spawn("auditor", "audit", { role: "auditor" });
    await work.outcome();
    const { config } = await agent.record();
    expect(config).toMatchObject({
      role: "auditor",
      model: "small",
      instructions: expect.stringContaining("You audit."),
    });
    // The parent may not write, so neither may the role, whatever its file says.
    expect(config.effects.toSorted()).toEqual(["network", "read"]);
    const clipped = config.adjustments.map(({ field, effect }) => `${field} ${effect}`);
    expect(clipped).toContain("effects clipped");
    expect(clipped.some((text) => /mcp/i.test(text))).toBe(true);
    // What is reported is what the model is offered, and what is shown in the log.
    const offered = h.provider.requests("/root/auditor")[0]!.tools.map(({ name }) => name);
    expect(offered).toContain("look");
    expect(offered).toContain("call_out");
    // One that the ceiling forbids, and one that the role switches off.
    expect(offered).not.toContain("change");
    expect(offered).not.toContain("fetch");
    const spawned = (await h.tree.log(0)).find(
      ({ type, path }) => type === "agent.spawned" && path === agent.path,
    );
    expect(spawned!.data).toMatchObject({ role: "auditor", model: "small", adjustments: config.adjustments });
    // An argument that widens is refused, not clipped.
    await expect(h.tree.root.spawn("writer", "x", { effects: ["write"] })).rejects.toMatchObject({
      code: "AUTHORITY_ESCALATION_DENIED",
    });
  });

  test("ACC-9 interrupt: finished side effects stay, and an interrupted state never passes for an answer", async () => {
    const done: string[] = [];
    const effect = defineTool({
      name: "effect",
      input: z.strictObject({ what: z.string() }),
      effects: ["write"],
      run: async ({ what }) => void done.push(what),
    });
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("b", "do two things"),
          wait({ timeout_ms: 10_000 }),
          interrupt("b"),
          wait({ targets: ["b"] }),
          followUp("b", "go on"),
          wait({ targets: ["b"] }),
          repeat(say("done")),
        ],
        "/root/b": [
          call("effect", { what: "first" }),
          repeat((context) => {
            const cut = JSON.stringify(context.messages).includes("interrupted on purpose");
            if (cut) return say("went on, knowing that it was cut");
            return together(say("half an answer"), gate("cut"), call("effect", { what: "second" }));
          }),
        ],
      },
      runtime: { tools: [effect] },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("cut");
    await h.clock.advance(10_000);
    h.provider.gates.open("cut");
    expect((await work.outcome()).ending).toBe("completed");
    expect(done).toEqual(["first"]);
    const [cut, resumed] = await look(h).works("/root/b");
    expect(cut!.outcome).toMatchObject({ ending: "interrupted", value: null, text: "half an answer" });
    expect((await look(h).runs("/root/b"))[0]).toMatchObject({
      status: "interrupted",
      reason: "interrupted",
    });
    // Whoever waited is told in so many words, in a state of its own.
    const [, waited] = await look(h).outputs("/root", "wait_agent");
    expect(waited!.output).toMatchObject({ results: [{ work_id: cut!.id, state: "interrupted" }] });
    const result = (await look(h).mail("/root")).find(({ resultOf }) => resultOf === cut!.id)!;
    expect(result.content.text).toMatch(/interrupted/);
    expect(result.content.text.trim()).not.toBe("half an answer");
    // It goes on where it was, knows that it was cut, and answers the new request.
    expect(resumed!.outcome).toMatchObject({ ending: "completed", text: "went on, knowing that it was cut" });
  });

  test("ACC-10 process crash: a kill between accepting and consuming loses nothing", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/b": [
          together(gate("busy"), say("first")),
          repeat(say((context) => `read: ${context.inputs.join(" | ")}`)),
        ],
      },
      runtime: { subagents: { onLostRun: "retry" } },
    });
    const { agent: b, work } = await h.tree.root.spawn("b", "task");
    await h.provider.gates.arrived("busy");
    const receipts = [];
    for (const text of ["one", "two", "three"]) receipts.push(await b.tell(text));
    const more = await b.send("and this task", { onBusy: "queue" });
    // Accepted, acknowledged, not consumed; now the runtime is killed.
    await h.crash();
    h.provider.gates.openAll();
    expect((await h.tree.work(work.id).outcome()).ending).toBe("completed");
    expect((await h.tree.work(more.id).outcome()).ending).toBe("completed");
    await h.tree.idle();
    const mail = await look(h).mail("/root/b");
    for (const { id } of receipts)
      expect(mail.find((one) => one.id === id)).toMatchObject({ state: "settled" });
    // Each was read, once, in its order.
    const texts = (await look(h).items("/root/b")).flatMap((item) =>
      item.kind === "user" ? [item.text] : [],
    );
    expect(texts.filter((text) => ["one", "two", "three"].includes(text))).toEqual(["one", "two", "three"]);
  });
});
