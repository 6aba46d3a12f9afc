/** Unloading and loading again (RES-4, RES-5, RES-6). */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import {
  call,
  followUp,
  gate,
  list,
  repeat,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

async function done(h: Harness, name: string): Promise<void> {
  const { work } = await h.tree.root.spawn(name, "look");
  await work.outcome();
  await h.clock.settle();
}

describe.each(STORES)("loads on %s", (store) => {
  test("RES-4 an agent whose flush fails stays resident, and is asked again", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: { "*": [MORE] },
    });
    const look = new Look(h);
    await done(h, "a");
    let commits = 0;
    h.onWrite = (_write, kind) => {
      if (kind !== "commit") return null;
      commits += 1;
      return commits === 2 ? { kind: "error" } : null;
    };
    const { work } = await h.tree.root.spawn("b", "look");
    await look.until("the flush has failed", () => commits >= 2);
    expect(await look.events("agent.unloaded")).toEqual([]);
    expect((await (await h.tree.agent("a")).summary()).resident).toBe(true);
    expect(h.tree.control.tree.residency.count).toBe(1);
    let ended = false;
    void work.outcome().then(() => (ended = true));
    for (let step = 0; step < 100 && !ended; step += 1) await h.clock.advance(100);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect((await look.events("agent.unloaded")).map((event) => event.path)).toEqual(["/root/a"]);
  });

  test("RES-4 the mailbox is looked at again in the commit that unloads", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: { "/root/b": [gate("b"), say("b")], "*": [MORE] },
    });
    const look = new Look(h);
    await done(h, "a");
    const a = await h.tree.agent("a");
    let commits = 0;
    h.onWrite = (_write, kind) => {
      if (kind !== "commit") return null;
      commits += 1;
      return commits === 2 ? { kind: "hang" } : null;
    };
    const { work: b } = await h.tree.root.spawn("b", "look");
    await look.until("the unload is at the store", () => commits >= 2);
    const late = await a.send("just in time");
    h.faulty.resume();
    expect(await late.outcome()).toMatchObject({ ending: "completed" });
    const path = (await look.events("agent.unloaded"))[0]?.path ?? null;
    const runs = await look.runs("/root/a");
    // It was not unloaded before it had done what came in.
    if (path !== null) {
      const [unloaded] = await look.events("agent.unloaded", "/root/a");
      const settled = (await look.events("run.settled", "/root/a")).at(-1)!;
      expect(unloaded!.seq).toBeGreaterThan(settled.seq);
    }
    expect(runs).toHaveLength(2);
    h.provider.gates.open("b");
    expect(await b.outcome()).toMatchObject({ ending: "completed" });
  });

  test("RES-5 loading is single-flight", async () => {
    const opened: string[] = [];
    const inner = scripted({ "/root": [repeat(say("ok"))], "*": [repeat(say("ok"))] });
    const held = Promise.withResolvers<void>();
    const counting: OwnLoopAdapter = {
      ...inner,
      openSession: async (input) => {
        opened.push(input.path);
        await held.promise;
        return inner.openSession(input);
      },
    };
    await using h = await harness({ store, runtime: { providers: { counting } } });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("a", "look");
    const works = [work];
    for (let at = 0; at < 8; at += 1) works.push(await agent.send(`and ${at}`));
    await look.until("it is being loaded", () => opened.length > 0);
    await h.clock.settle();
    expect(h.tree.control.tree.residency.count).toBe(1);
    held.resolve();
    for (const one of works) expect(await one.outcome()).toMatchObject({ ending: "completed" });
    expect(opened).toEqual(["/root/a"]);
    expect(await look.runs("/root/a")).toHaveLength(1);
    expect(h.tree.control.tree.lane.size).toBe(0);
  });

  test("RES-5 an agent interrupted while it loads goes on from what is stored", async () => {
    let hold: Promise<void> | null = null;
    const inner = scripted({
      "/root": [
        spawn("w", "look", NONE),
        wait({ targets: ["w"] }),
        say("second run"),
        say("third run"),
        MORE,
      ],
      "/root/w": [gate("w"), say("ok"), MORE],
    });
    const opening: string[] = [];
    const slow: OwnLoopAdapter = {
      ...inner,
      openSession: async (input) => {
        opening.push(input.path);
        await hold;
        return inner.openSession(input);
      },
    };
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 }, providers: { slow } },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await inner.gates.arrived("w");
    const held = Promise.withResolvers<void>();
    hold = held.promise;
    const before = opening.length;
    inner.gates.open("w");
    await look.until("the root is being loaded", () => opening.length > before);
    await h.tree.root.interrupt();
    held.resolve();
    expect(await h.ask("again")).toMatchObject({ ending: "completed", text: "second run" });
    const { messages } = inner.requests("/root").at(-1)!;
    const calls = messages.flatMap((message) =>
      message.role === "assistant"
        ? message.parts.flatMap((part) => (part.type === "tool_call" ? [part.callId] : []))
        : [],
    );
    const results = messages.flatMap((message) => (message.role === "tool" ? [message.callId] : []));
    expect(results).toEqual(calls);
    expect(
      messages.some(
        (message) => message.role === "user" && message.text.startsWith("[runtime: interrupted]"),
      ),
    ).toBe(true);
  });

  test("RES-5 a run after unload and reload is indistinguishable from one without", async () => {
    const seen: string[] = [];
    const tool = defineTool({ name: "look", input: z.object({}), effects: ["read"], run: () => "seen" });
    for (const limit of [64, 1]) {
      await using h = await harness({
        store,
        runtime: { limits: { residents: limit }, tools: [tool] },
        scripted: { models: { one: {}, two: {} } },
        scripts: {
          "/root": [
            spawn("w", "first", { fork_turns: "none", model: "two", effects: ["read"] }),
            wait({ targets: ["w"] }),
            call("send_message", { target: "w", message: "in between" }),
            followUp("w", "second"),
            wait({ targets: ["w"] }),
            call("look"),
            say("end"),
          ],
          "/root/w": [
            call("look"),
            say("one"),
            spawn("sub", "help", NONE),
            wait({ targets: ["sub"] }),
            say("two"),
          ],
          "/root/w/sub": [say("ok")],
        },
      });
      const look = new Look(h);
      expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "end" });
      expect((await look.events("agent.unloaded")).length > 0).toBe(limit === 1);
      const requests = ["/root", "/root/w", "/root/w/sub"].map((path) =>
        h.provider
          .requests(path)
          .map((request) => ({ ...request, tools: request.tools.map((tool) => tool.name) })),
      );
      const transcripts = [await look.items("/root"), await look.items("/root/w")];
      const config = (await (await h.tree.agent("w")).record()).config;
      expect(config).toMatchObject({ model: "two", effects: ["read"] });
      seen.push(normalised({ requests, transcripts, config }));
    }
    expect(seen[1]).toBe(seen[0]);
  });

  test("RES-5 an interrupted agent that was unloaded reloads too", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: { "/root/a": [list(), gate("a"), say("never"), say("back")], "*": [MORE] },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("a", "look");
    await h.provider.gates.arrived("a");
    await agent.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    await done(h, "b");
    expect((await agent.summary()).resident).toBe(false);
    h.provider.gates.open("a");
    await (await agent.send("go on")).outcome();
    const { messages } = h.provider.requests("/root/a").at(-1)!;
    expect(messages.filter((message) => message.role === "tool")).toHaveLength(1);
    expect(look.inputs("/root/a", -1).join("\n")).toMatch(/interrupted on purpose[^]*go on/);
  });

  test("RES-6 opening a tree loads nobody but those that have something to do", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 4 } },
      scripts: {
        "/root/busy": [gate("busy"), say("never"), MORE],
        "/root/mailed": [MORE],
        "*": [MORE],
      },
    });
    const look = new Look(h);
    for (const name of ["a", "b", "mailed"]) await done(h, name);
    await h.ask("hello");
    await (await h.tree.agent("mailed")).tell("for later");
    await h.crash();
    await h.clock.settle();
    expect(await h.tree.counts()).toMatchObject({ registered: 4, resident: 0, running: 0 });
    expect((await look.mail("/root/mailed")).at(-1)).toMatchObject({ state: "accepted" });

    // A request whose run was not accepted before the crash is all that there is to do.
    h.provider.append("/root/late", gate("late", { beforeAcceptance: true }), say("late"));
    const { work } = await h.tree.root.spawn("late", "look");
    await h.provider.gates.arrived("late");
    await h.crash();
    h.provider.gates.open("late");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "late" });
    const { agents } = await h.tree.list();
    expect(agents.filter((agent) => agent.resident).map((agent) => agent.path)).toEqual(["/root/late"]);
  });

  test("RES-5 what comes while a session is loaded and unloaded again and again is kept in order", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      tree: { limits: { running: 2, runsPerMinute: null } },
      scripts: {
        "/root": [together(spawn("a", "0", NONE), spawn("b", "0", NONE), spawn("c", "0", NONE)), MORE],
        "*": [MORE],
      },
    });
    const look = new Look(h);
    await h.ask("go");
    await h.tree.idle();
    const names = ["a", "b", "c"];
    for (let round = 1; round <= 5; round += 1) {
      const works = await Promise.all(
        names.map(async (name) => (await h.tree.agent(name)).send(`${round}`, { onBusy: "queue" })),
      );
      await Promise.all(works.map((work) => work.outcome()));
    }
    for (const name of names) {
      const texts = (await look.items(`/root/${name}`)).flatMap((item) =>
        item.kind === "user" ? [item.text] : [],
      );
      expect(texts).toEqual(["1", "2", "3", "4", "5"]);
      const items = await look.items(`/root/${name}`);
      expect(items.map((item) => item.index)).toEqual(items.map((_, at) => at));
    }
    expect((await look.events("agent.unloaded")).length).toBeGreaterThan(3);
  });
});

/** Ids by the order in which they appear; what is minted between them does not matter. */
function normalised(value: unknown): string {
  const known = new Map<string, string>();
  // How long the queue was when a follow-up was accepted is another matter.
  const text = JSON.stringify(value, null, 1).replaceAll(/"position": \d/g, '"position": 0');
  return text.replaceAll(
    /\b(thread|msg|wrk|run|call|wait|req|tok|xfr|hnd)_[A-Za-z0-9]{21}\b/g,
    (id, prefix: string) => {
      const name = known.get(id) ?? `${prefix}_${known.size}`;
      known.set(id, name);
      return name;
    },
  );
}
