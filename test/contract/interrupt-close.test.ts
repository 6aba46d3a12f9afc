/** Closing a subtree by force, and politely (INT-7). */
import { describe, expect, test } from "vitest";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import {
  ask,
  gate,
  ignoreAbort,
  repeat,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

describe.each(STORES)("closing on %s", (store) => {
  test("INT-7 a subtree ends leaves first, works cancelled, mail dead-lettered, what is owed outside sent", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("top", "lead", NONE), say("started"), say("so it was closed")],
        "/root/top": [spawn("mid", "lead", NONE), say("delegated"), MORE],
        "/root/top/mid": [spawn("leaf", "look", NONE), wait({ targets: ["leaf"] }), MORE],
        "/root/top/mid/leaf": [together(say("so far"), gate("leaf")), MORE],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("leaf");
    await look.until("all but the leaf rest", async () =>
      ["awaiting_children", "waiting"].includes((await look.status("/root/top")) ?? ""),
    );
    await look.until("the middle waits", async () => (await look.status("/root/top/mid")) === "waiting");
    await (await h.tree.agent("top/mid")).tell("by the way");
    const top = await h.tree.agent("top");
    const from = (await look.events()).at(-1)!.seq;
    const order = ["/root/top/mid/leaf", "/root/top/mid", "/root/top"];
    expect(await top.close()).toEqual(order);
    expect((await look.events("agent.closed")).map((event) => event.path)).toEqual(order);
    for (const path of order) {
      expect(await look.work(path)).toMatchObject({ state: "ended", outcome: { ending: "cancelled" } });
      expect(await look.status(path)).toBe("closed");
      expect((await look.mail(path)).filter((mail) => mail.state === "accepted")).toEqual([]);
    }
    expect((await look.work("/root/top/mid/leaf")).outcome!.text).toBe("so far");
    expect((await look.mail("/root/top/mid")).slice(1).map((mail) => [mail.state, mail.reason])).toEqual([
      ["dead_lettered", "closed"],
      ["dead_lettered", "closed"],
    ]);
    // What was owed to the root is sent, and wakes it as any result would.
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "so it was closed" });
    expect((await look.mail("/root")).at(-1)!.content.text).toMatch(/^\[cancelled\]/);
    const since = (await look.events()).filter((event) => event.seq > from);
    expect(since.filter((event) => event.type === "run.reserved").map((event) => event.path)).toEqual([
      "/root",
    ]);
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    expect(await h.tree.counts()).toMatchObject({ registered: 4, resident: 1, running: 0 });
  });

  test("INT-7 admission stops first: nothing of the subtree starts any more", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root/top": [
          together(...["a", "b", "c"].map((name) => spawn(name, "look", NONE))),
          say("delegated"),
          MORE,
        ],
        "/root/other": [say("other")],
        "*": [gate("work"), say("ok")],
      },
    });
    const look = new Look(h);
    const { agent } = await h.tree.root.spawn("top", "lead");
    await h.provider.gates.arrived("work");
    const { work: other } = await h.tree.root.spawn("other", "look");
    expect((await h.tree.counts()).queued).toBe(3);
    const from = (await look.events()).at(-1)!.seq;
    await agent.close();
    expect(await other.outcome()).toMatchObject({ ending: "completed" });
    await h.tree.idle();
    const reserved = (await look.events("run.reserved")).filter((event) => event.seq > from);
    expect(reserved.map((event) => event.path)).toEqual(["/root/other"]);
    expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
    for (const name of ["a", "b", "c"]) {
      expect(await look.work(`/root/top/${name}`)).toMatchObject({ outcome: { ending: "cancelled" } });
    }
  });

  test("INT-7 neither a deaf provider nor a question nor a parked wait holds it up", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 4 } },
      scripts: {
        "/root/top": [
          together(spawn("deaf", "look", NONE), spawn("asks", "look", NONE), spawn("waits", "look", NONE)),
          say("delegated"),
          MORE,
        ],
        "/root/top/deaf": [ignoreAbort("deaf"), say("late")],
        "/root/top/asks": [ask("which?"), MORE],
        "/root/top/waits": [spawn("x", "look", NONE), wait({ targets: ["x"] }), MORE],
        "/root/top/waits/x": [gate("x"), say("ok")],
      },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("top", "lead");
    await h.provider.gates.arrived("deaf");
    await h.provider.gates.arrived("x");
    await look.until("it asks", async () => (await look.status("/root/top/asks")) === "awaiting_approval");
    await look.until("it waits", async () => (await look.status("/root/top/waits")) === "waiting");
    const at = h.clock.now();
    await agent.close();
    expect(await work.outcome()).toMatchObject({ ending: "cancelled", endedAt: at });
    expect((await look.works()).filter((one) => one.state !== "ended")).toEqual([]);
    expect(await look.events("request.closed")).toMatchObject([{ data: { status: "cancelled" } }]);
    expect((await look.events("wait.ended")).map((event) => event.data["end"])).toEqual(["aborted"]);
    await h.clock.settle();
    const { tree } = h.tree.control;
    expect([tree.sessions.size, tree.runs.size, tree.residency.count, tree.permits.inUse]).toEqual([
      0, 0, 0, 0,
    ]);
    const events = (await look.events()).length;
    h.provider.gates.openAll();
    await h.clock.advance(60_000);
    expect(await look.events()).toHaveLength(events);
  });

  test("INT-7 an agent that is closed while it loads leaves no session and no slot", async () => {
    const inner = scripted({ "*": [MORE] });
    const held = Promise.withResolvers<void>();
    const opening: string[] = [];
    const slow: OwnLoopAdapter = {
      ...inner,
      openSession: async (input) => {
        opening.push(input.path);
        if (input.path === "/root/w") await held.promise;
        return inner.openSession(input);
      },
    };
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 }, providers: { slow } },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await look.until("it is being loaded", () => opening.length === 1);
    await agent.close();
    expect(await work.outcome()).toMatchObject({ ending: "cancelled" });
    held.resolve();
    const { work: next } = await h.tree.root.spawn("x", "look");
    expect(await next.outcome()).toMatchObject({ ending: "completed" });
    const { tree } = h.tree.control;
    expect([...tree.sessions.values()].map((session) => session.agent.path)).toEqual(["/root/x"]);
    expect([tree.residency.count, tree.permits.inUse]).toEqual([1, 0]);
    expect(inner.requests("/root/w")).toEqual([]);
  });

  test("INT-7 a closed agent takes no mail, and the refusal names its state and last outcome", async () => {
    await using h = await harness({ store, scripts: { "*": [MORE] } });
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await work.outcome();
    await agent.close();
    for (const asked of [agent.send("again"), agent.tell("psst")]) {
      await expect(asked).rejects.toMatchObject({
        code: "AGENT_CLOSED",
        details: { state: "closed", lastOutcome: "completed" },
      });
    }
    expect(await agent.close()).toEqual([]);
  });

  test("INT-7 the polite close is `THREAD_BUSY` while a run, an open work or trigger-turn mail is there", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root/w": [spawn("sub", "help", NONE), say("delegated"), say("end")],
        "/root/w/sub": [gate("sub"), say("ok")],
        "/root/queued": [say("ok")],
      },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await h.provider.gates.arrived("sub");
    const { agent: queued, work: later } = await h.tree.root.spawn("queued", "look");
    const sub = await h.tree.agent("w/sub");
    const [run] = await look.runs("/root/w/sub");
    const before = await look.snapshot();
    await expect(sub.close({ politely: true })).rejects.toMatchObject({
      code: "THREAD_BUSY",
      details: { path: "/root/w/sub", run: run!.id, openWorks: 1, triggers: 0 },
    });
    // The agent itself only awaits.
    await expect(agent.close({ politely: true })).rejects.toMatchObject({ code: "THREAD_BUSY" });
    await expect(queued.close({ politely: true })).rejects.toMatchObject({
      code: "THREAD_BUSY",
      details: { path: "/root/queued", run: null, openWorks: 1, triggers: 1 },
    });
    expect(await look.snapshot()).toEqual(before);
    h.provider.gates.open("sub");
    await work.outcome();
    await later.outcome();
    expect(await agent.close({ politely: true })).toEqual(["/root/w/sub", "/root/w"]);
    expect(await agent.close({ politely: true })).toEqual([]);
  });
});
