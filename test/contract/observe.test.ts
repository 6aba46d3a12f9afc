import { describe, expect, test } from "vitest";
import { childPath, ROOT_PATH } from "../../src/protocol/agent-path.ts";
import type { RuntimeEvent } from "../../src/protocol/events.ts";
import type { StreamEvent } from "../../src/runtime/event-stream.ts";
import {
  call,
  fail,
  followUp,
  gate,
  interrupt,
  repeat,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { sampleId } from "../../src/testing/store-records.ts";
import { turn } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { withEveryChangeTold } from "../support/changes.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

/** Reads a stream until an event of this type. */
async function readUntil(h: Harness, after: number, type: string): Promise<RuntimeEvent[]> {
  const seen: RuntimeEvent[] = [];
  for await (const event of h.tree.events({ after })) {
    seen.push(event);
    if (event.type === type && event.path === "/root") break;
  }
  return seen;
}

const sequence = (events: readonly StreamEvent[]): number[] =>
  (events as RuntimeEvent[]).map(({ seq }) => seq);
const upTo = (last: number, from = 1): number[] =>
  Array.from({ length: last - from + 1 }, (_, at) => from + at);

describe.each(STORES)("the event log on %s", (store) => {
  test("OBS-4 an observer that throws is heard no more, and nobody else notices", async () => {
    await using h = await harness({ store, scripts: { "/root": [say("done")] } });
    let thrown = 0;
    const seen: string[] = [];
    const observe = (observer: (type: string) => void) =>
      h.tree.control.tree.events.observe(
        ({ type }) => observer(type),
        () => undefined,
      );
    using _broken = observe(() => {
      thrown += 1;
      throw new Error("an observer's own fault");
    });
    using _whole = observe((type) => void seen.push(type));
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "done" });
    expect(thrown).toBe(1);
    expect(seen).toContain("work.ended");
    expect(await h.tree.root.status()).toEqual({ kind: "idle", last: "completed" });
  });

  test("OBS-1 is one per tree, gapless, in one order for stream and store, and outlives a crash", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), wait({ targets: ["worker"] }), say("done")],
        "/root/worker": [say("seven")],
      },
    });
    const reading = readUntil(h, 0, "work.ended");
    await h.ask("go");
    const streamed = await reading;
    expect(sequence(streamed)).toEqual(upTo(streamed.length));
    expect(await h.tree.log(0)).toMatchObject(streamed.map((event) => ({ ...event })));
    const before = await h.tree.log(0);
    await h.crash();
    const after = await h.tree.log(0);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(sequence(after)).toEqual(upTo(after.length));
  });

  test("OBS-1 every change of state stands in one commit with its event", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("one", "first"), spawn("two", "second")),
          wait({ targets: ["one"], timeout_ms: 10_000 }),
          together(call("send_message", { target: "two", message: "more" }), followUp("one", "again")),
          wait({ targets: ["one"] }),
          interrupt("two"),
          say("done"),
          repeat(say("woken")),
        ],
        "/root/one": [say("1"), say("2")],
        "/root/two": [together(gate("never"), say("3"))],
      },
      tree: { onLostRun: "retry" },
    });
    const untold = withEveryChangeTold(h.store);
    await h.ask("go");
    await h.tree.idle();
    await h.store.send([
      { ...(await look(h).mail("/root/two"))[0]!, id: "msg_other", key: "other" } as never,
    ]);
    await waitUntil("the sent mail is told", async () =>
      (await h.tree.log(0)).some((event) => event.data["mailId"] === "msg_other"),
    );
    await (await h.tree.agent("/root/one")).close();
    expect(untold()).toEqual([]);
  });

  test("OBS-1 a subscriber gets a snapshot, then each event behind it once, whenever it comes", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "count"),
          together(gate("look"), wait({ targets: ["worker"] })),
          say("done"),
        ],
        "/root/worker": [together(gate("work"), say("seven"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("look");
    await h.provider.gates.arrived("work");
    const snapshot = await h.tree.snapshot();
    expect(snapshot.agents.map(({ path, status }) => [path, status.kind])).toEqual([
      ["/root", "running"],
      ["/root/worker", "running"],
    ]);
    expect(snapshot.openWorks.map(({ executorPath, state }) => [executorPath, state])).toEqual([
      ["/root", "running"],
      ["/root/worker", "running"],
    ]);
    const reading = readUntil(h, snapshot.cursor, "work.ended");
    h.provider.gates.openAll();
    await work.outcome();
    const late = await readUntil(h, snapshot.cursor, "work.ended");
    const early = await reading;
    expect(sequence(early)).toEqual(upTo(snapshot.cursor + early.length, snapshot.cursor + 1));
    expect(late).toEqual(early);
    const ended = (early as RuntimeEvent[])
      .filter(({ type }) => type === "work.ended")
      .map(({ path }) => path);
    expect(ended).toEqual(["/root/worker", "/root"]);
    expect((await h.tree.snapshot()).openWorks).toEqual([]);
  });
});

describe.each(STORES)("a stream that is aborted on %s", (store) => {
  test("OBS-1 tells nothing more, also in the middle of what is stored", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("done"))] } });
    await h.ask("go");
    const stop = new AbortController();
    const seen: StreamEvent[] = [];
    for await (const event of h.tree.events({ after: 0, signal: stop.signal })) {
      seen.push(event);
      if (seen.length === 2) stop.abort();
    }
    expect(sequence(seen)).toEqual([1, 2]);
  });
});

describe.each(STORES)("the question why on %s", (store) => {
  test("OBS-3 says why an agent is not started: queue, provider, rate", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(spawn("one", "a"), spawn("two", "b"), spawn("three", "c")), repeat(say("ok"))],
        "*": [together(gate("hold"), say("done"))],
      },
      tree: { limits: { running: 1, runsPerMinute: 2 } },
    });
    await (await h.tree.root.send("go")).outcome({ signal: AbortSignal.abort() }).catch(() => undefined);
    await h.provider.gates.arrived("hold");
    await waitUntil("two wait", async () => (await h.tree.counts()).queued === 2);
    const queued = await (await h.tree.agent("three")).why();
    expect(queued.status).toBe("queued");
    expect(queued.reasons.join("\n")).toMatch(
      /trigger-turn messages? (?:is|are) pending; it is number 2 in the queue/,
    );
    h.provider.gates.open("hold");
    await waitUntil("the minute is used up", async () =>
      (await (await h.tree.agent("two")).why()).reasons.some((text) => text.includes("within a minute")),
    );
    expect((await (await h.tree.agent("two")).why()).reasons.join("\n")).toMatch(
      /has started 2 runs within a minute, as many as it may; the next starts in \d+ ms/,
    );
  });

  test("OBS-3 says why an agent is blocked, from the log", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), repeat(say("ok"))],
        "/root/worker": [repeat(say("hi"))],
      },
    });
    await h.ask("go");
    await h.tree.idle();
    await h.crash({ providers: {} });
    await h.tree.root.send("again");
    await waitUntil("it is blocked", async () =>
      (await h.tree.log(0, 1000)).some(({ type }) => type === "agent.blocked"),
    );
    const { reasons, status } = await h.tree.root.why();
    expect(status).toBe("queued");
    expect(reasons.join("\n")).toMatch(/it could not run \(PROVIDER_NOT_CONFIGURED\): \w/);
    expect(reasons.join("")).not.toMatch(/[{}]/);
  });

  test("OBS-3 says with which error a run has failed, and a message was lost for it", async () => {
    const message = "against the content policy.";
    const refused = fail({ code: "PROVIDER_REFUSED", message });
    await using h = await harness({ store, scripts: { "/root": [refused] } });
    await (await h.tree.root.send("go")).outcome();
    const reasons = (await h.tree.root.why()).reasons.join("\n");
    expect(reasons).toMatch(/Last outcome: failed \(provider_error\) at \S+: PROVIDER_REFUSED: .*policy\.$/m);
    expect(reasons).toMatch(/message msg_\w+ was lost to it: not_delivered: PROVIDER_REFUSED: .*policy\.$/m);
  });

  test("OBS-3 says why an agent is not woken, not unloaded, and who owes what to whom", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), wait({ targets: ["worker"] }), repeat(say("done"))],
        "/root/worker": [together(gate("work"), say("seven"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await waitUntil("the root waits", async () => (await h.tree.root.status()).kind === "waiting");
    const worker = await h.tree.agent("worker");
    const [debt] = await h.tree.root.owed();
    const busy = (await worker.why()).reasons.join("\n");
    expect(busy).toContain("cannot be unloaded: its run is not settled");
    expect(busy).toContain(`It owes ${debt!.work.id} (running) to /root`);
    const waiting = (await h.tree.root.why()).reasons.join("\n");
    expect(waiting).toContain(`/root/worker owes it ${debt!.work.id} (running); that agent is running.`);
    expect(waiting).toContain(`It waits for 1 of ${debt!.work.id}`);
    h.provider.gates.openAll();
    await work.outcome();
    await worker.tell("for later");
    const idle = (await worker.why()).reasons.join("\n");
    expect(idle).toContain("1 unread message is queue-only: it waits for the next run and starts none.");
    expect(idle).toContain("It is resident and may be unloaded when room is wanted.");
    await h.crash();
    expect((await (await h.tree.agent("worker")).why()).reasons.join("\n")).toContain("It is not resident");
  });
});

describe.each(STORES)("observers on %s", (store) => {
  const scripts = {
    "/root": [spawn("worker", "count"), wait({ targets: ["worker"] }), say("done")],
    "/root/worker": [fail({ times: 1 }), say("seven")],
  };

  test("OBS-4 a reader that throws, one that never reads on, and one that is far behind disturb nobody", async () => {
    await using h = await harness({ store, scripts: { "/root": [repeat(say("ok"))] } });
    const stuck = h.tree.events({ after: 0 })[Symbol.asyncIterator]();
    await stuck.next();
    const throwing = (async () => {
      for await (const _event of h.tree.events({ after: 0 })) throw new Error("an observer's own fault");
    })();
    await expect(throwing).rejects.toThrow("an observer's own fault");
    for (let round = 0; round < 200; round += 1) await h.ask(`round ${round}`);
    // More has happened than a reader's buffer holds; it gets every event all the same, once and in order.
    const last = await h.store.read((view) => view.lastEvent(h.tree.id));
    expect(last).toBeGreaterThan(1200);
    const rest: number[] = [];
    while (rest.at(-1) !== last) rest.push(((await stuck.next()).value as RuntimeEvent).seq);
    expect(rest).toEqual(upTo(last, 2));
    await stuck.return?.(undefined);
  });

  test("OBS-4 a tracer, a logger and an inspector that throw disturb nobody", async () => {
    const broken = (): never => {
      throw new Error("an observer's own fault");
    };
    const logger = { debug: broken, info: broken, warn: broken, error: broken };
    await using h = await harness({
      store,
      scripts,
      runtime: { logger, tracer: { startSpan: broken, startActiveSpan: broken }, inspect: broken },
    });
    const work = await h.tree.root.send("go");
    await waitUntil("it is done", async () => (await work.record()).state === "ended", {
      step: () => h.clock.advance(1000),
    });
    expect((await work.outcome()).text).toBe("done");
    await turn();
  });
});

describe.each(STORES)("activities on %s", (store) => {
  test("OBS-5 carry the work's id, one per work, on the run that asked, even after its end", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("one", "first"), spawn("two", "second", { detached: true })),
          wait({ targets: ["one"] }),
          together(
            followUp("one", "third", { detached: true }),
            followUp("one", "fourth", { detached: true }),
          ),
          interrupt("two"),
          say("done"),
          repeat(say("woken")),
        ],
        "/root/one": [say("1"), together(gate("late"), say("2")), repeat(say("3"))],
        "/root/two": [together(gate("never"), say("3"))],
      },
    });
    const outcome = await h.ask("go");
    h.provider.gates.open("late");
    await h.tree.idle();
    const works = await look(h).works();
    const byObjective = new Map(works.map((work) => [work.objective, work.id]));
    const told = (await h.tree.log(0, 1000)).filter(({ type }) => type.startsWith("activity."));
    const shown = told.map(({ type, path, runId, workId, data }) => [
      type,
      path,
      runId,
      workId,
      data["agent"],
    ]);
    const row = (kind: string, objective: string, agent: string) => [
      `activity.${kind}`,
      "/root",
      outcome.runId,
      byObjective.get(objective),
      `/root/${agent}`,
    ];
    expect(shown.map(String).toSorted()).toEqual(
      [
        row("started", "first", "one"),
        row("started", "second", "two"),
        row("interacted", "third", "one"),
        row("interacted", "fourth", "one"),
        row("completed", "first", "one"),
        row("completed", "third", "one"),
        row("completed", "fourth", "one"),
        row("interrupted", "second", "two"),
      ]
        .map(String)
        .toSorted(),
    );
    // Their last ones come when the run that asked is long settled.
    const settled = (await h.tree.log(0, 1000)).find(
      ({ type, runId }) => type === "run.settled" && runId === outcome.runId,
    );
    expect(told.filter(({ seq }) => seq > settled!.seq).map(({ type }) => type)).toEqual([
      "activity.completed",
      "activity.completed",
    ]);
  });

  test("OBS-5 are neither a result nor a proof of acceptance", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), say("started"), repeat(say("woken"))],
        "/root/worker": [together(gate("before", { beforeAcceptance: true }), say("seven"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("before");
    await waitUntil("it started", async () =>
      (await h.tree.log(0)).some(({ type }) => type === "activity.started"),
    );
    const [request] = await look(h).mail("/root/worker");
    expect(request!.state).toBe("accepted");
    expect((await look(h).work("/root/worker")).state).toBe("queued");
    expect(await look(h).mail("/root")).toHaveLength(1);
    h.provider.gates.openAll();
    await work.outcome();
    // The answer came as mail of its own, and no activity stands in a transcript.
    expect((await look(h).mail("/root")).map(({ kind }) => kind)).toEqual(["user", "final_answer"]);
    expect(JSON.stringify(await h.tree.root.transcript())).not.toContain("activity");
  });
});

describe.each(STORES)("what a run is told of its children on %s", (store) => {
  test("OBS-6 at most eight, within 1,024 bytes, loaded ones first, unloaded ones too", async () => {
    const names = Array.from({ length: 10 }, (_, at) => `child_${String.fromCodePoint(97 + at)}`);
    await using h = await harness({
      store,
      scripts: { "/root": [repeat(say("ok"))], "*": [repeat(say("done"))] },
      tree: { limits: { running: 10 } },
      runtime: { limits: { residents: 4 } },
    });
    for (const name of names) await (await h.tree.root.spawn(name, "work")).work.outcome();
    const loaded = (await h.tree.list()).agents.filter(({ resident }) => resident).map(({ path }) => path);
    expect(loaded.length).toBeLessThan(10);
    const children = loaded.filter((path) => path !== "/root");
    await h.ask("who is there?");
    const note = look(h)
      .inputs("/root", -1)
      .find((text) => text.includes("Your agents:"))!;
    const body = note.slice(note.indexOf("Your agents:"));
    const named = [...body.matchAll(/^- (\/root\/\w+): (\w+)/gm)].map(([, path]) => path!);
    expect(named).toHaveLength(8);
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(1024);
    expect(children.length).toBeGreaterThan(0);
    // Loading the root may have unloaded the oldest of them.
    const first = named.slice(0, children.length - 1);
    expect(first.filter((path) => !children.includes(path as never))).toEqual([]);
    expect(named.some((path) => !children.includes(path as never))).toBe(true);
  });

  test("OBS-6 however many were closed before, those that live are named, and no closed one is read", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [repeat(say("ok"))], "*": [repeat(say("done"))] },
    });
    const { agent, work } = await h.tree.root.spawn("gone", "work");
    await work.outcome();
    await agent.close();
    const { tree } = h.tree.control;
    await tree.commit((tx) => {
      const gone = tx.store.agent(agent.threadId)!;
      for (let at = 0; at < 500; at += 1) {
        const threadId = sampleId("thread", `gone${at}`);
        tx.store.putAgent({
          ...gone,
          threadId,
          path: childPath(ROOT_PATH, `gone_${at}`),
          tokenDigest: threadId,
        });
      }
    });
    for (const name of ["alive", "well"]) await (await h.tree.root.spawn(name, "work")).work.outcome();
    await h.ask("who is there?");
    const note = look(h)
      .inputs("/root", -1)
      .find((text) => text.includes("Your agents:"))!;
    expect(note.slice(note.indexOf("Your agents:"))).toMatch(
      /^Your agents:\n- \/root\/alive: idle\n- \/root\/well: idle/,
    );
    const { rows } = await h.store.read((view) => view.childrenOf(h.tree.id, { limit: 500 }));
    expect(rows.map(({ path }) => path)).toEqual(["/root/alive", "/root/well"]);
  });

  test("OBS-6 long names end it within its bytes, grandchildren and closed ones are left out", async () => {
    const long = "x".repeat(60);
    await using h = await harness({
      store,
      scripts: {
        "/root": [repeat(say("ok"))],
        "/root/parent": [spawn("grandchild", "work"), repeat(say("done"))],
        "*": [repeat(say("done"))],
      },
      tree: { limits: { running: 20 } },
    });
    await (await h.tree.root.spawn("parent", "work")).work.outcome();
    for (const at of [1, 2, 3, 4, 5, 6, 7])
      await (await h.tree.root.spawn(`${long}_${at}`, "x")).work.outcome();
    await (await h.tree.agent(`${long}_1`)).close();
    await h.ask("who is there?");
    const note = look(h)
      .inputs("/root", -1)
      .find((text) => text.includes("Your agents:"))!;
    const body = note.slice(note.indexOf("Your agents:"));
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(1024);
    expect(body).toContain("/root/parent: idle");
    expect(body).not.toContain("grandchild");
    expect(body).not.toContain(`${long}_1:`);
  });
});
