/** A conversation whose loop is ours and that outgrows the model's window: it goes on in a new one, which is told by text (C10). */
import { describe, expect, onTestFinished, test } from "vitest";
import { gate, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { estimateTokens } from "../../src/policy/estimate-tokens.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const WINDOW = 40_000;
/** What is kept for a run is 16,000 tokens, so this is what earlier runs may take. */
const ROOM = 24_000;
const MODEL = {
  contextWindow: WINDOW,
  maxOutputTokens: null,
  efforts: [],
  defaultEffort: null,
  collaborates: true,
};
const LONG = "y".repeat(8_000);

describe.each(STORES)("a long conversation on %s", (store) => {
  const open = async (more: HarnessOptions = {}): Promise<Harness> => {
    const h = await harness({
      store,
      scripts: { "*": [repeat(say(({ inputs }) => `${inputs.at(-1)} ${LONG}`))] },
      scripted: { models: { scripted: MODEL } },
      tree: { limits: { tokensPerTree: null } },
      ...more,
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    return h;
  };
  const sizes = (h: Harness) =>
    h.provider.requests("/root").map(({ messages }) => estimateTokens(messages, []));
  const switches = async (h: Harness) =>
    (await h.runtime.threads.transfers(h.tree.id, { limit: 100 })).rows.filter(
      ({ type }) => type === "provider_handoff",
    );
  const preview = (h: Harness) =>
    h.runtime.threads.preview(h.tree.id, { provider: "scripted", model: "scripted" });
  /** As many runs as it takes until the next one would begin anew; the number of the last. */
  const fill = async (h: Harness): Promise<number> => {
    for (let at = 1; ; at += 1) {
      await h.ask(`q${at};`);
      if ((await preview(h)).staleness.length > 0) return at;
    }
  };

  test("C10 C4.8 begins anew before it fills the window, told of what was said, and every run is answered", async () => {
    const h = await open();
    await h.runtime.threads.pin(h.tree.id, "decisions", "port 8080");
    for (let at = 1; at <= 40; at += 1) {
      expect((await h.ask(`q${at};`)).ending).toBe("completed");
      await h.clock.advance(10_000);
    }
    expect(Math.max(...sizes(h))).toBeLessThan(ROOM + 4_000);
    const made = await switches(h);
    expect(made.length).toBeGreaterThan(1);
    expect(made[0]).toMatchObject({
      staleness: ["context_full"],
      status: "consumed",
      basePoint: null,
      sourceProvider: "scripted",
      targetProvider: "scripted",
    });
    const { ordinal } = made[0]!.sourcePoint;
    const told = JSON.stringify(h.provider.requests("/root")[ordinal]!.messages);
    expect(told).toContain("port 8080");
    expect(told).toContain(`q${ordinal};`);
    expect(told).not.toContain("q1; yyy");
  });

  test("C10 goes on after a reload and a crash as it would have, and is not begun anew again", async () => {
    const h = await open();
    for (let at = 1; (await switches(h)).length === 0; at += 1) {
      await h.ask(`q${at};`);
      await h.clock.advance(10_000);
    }
    await h.crash();
    const before = sizes(h).at(-1)!;
    await h.ask("and now?");
    expect(await switches(h)).toHaveLength(1);
    expect(sizes(h).at(-1)!).toBeLessThan(before + 4_000);
    expect(await h.store.read((view) => view.providerThreadsOf(h.tree.id).length)).toBe(2);
  });

  test("S3-13 says so before, and why", async () => {
    const h = await open();
    await h.ask("q0;");
    expect(await preview(h)).toMatchObject({ strategy: "none", into: "existing", staleness: [] });
    for (let at = 1; sizes(h).at(-1)! < ROOM - 1_000; at += 1) await h.ask(`q${at};`);
    expect(await preview(h)).toMatchObject({ strategy: "full", into: "new", staleness: ["context_full"] });
  });

  test("C10 C4.16 the window is that of the model which the run goes to", async () => {
    const h = await open({
      scripted: { models: { scripted: { ...MODEL, contextWindow: 200_000 }, small: MODEL } },
    });
    for (let at = 1; at <= 20; at += 1) await h.ask(`q${at};`);
    expect(await switches(h)).toEqual([]);
    const small = await h.runtime.threads.preview(h.tree.id, { provider: "scripted", model: "small" });
    expect(small).toMatchObject({ strategy: "full", staleness: ["context_full"] });
    await (await h.tree.root.send("smaller", { provider: "scripted", model: "small" })).outcome();
    expect(sizes(h).at(-1)!).toBeLessThan(ROOM);
    expect(await switches(h)).toMatchObject([{ staleness: ["context_full"], status: "consumed" }]);
  });

  test("C10 C6.7 a run that brings more than a handoff leaves room for goes on with what is full", async () => {
    const h = await open();
    await fill(h);
    expect(await h.ask("z".repeat(23_500))).toMatchObject({ ending: "completed", error: null });
    expect(await switches(h)).toEqual([]);
    await h.ask("short;");
    expect(await switches(h)).toMatchObject([{ staleness: ["context_full"], status: "consumed" }]);
  });

  test("C10 C4.8 what is full is gone on with where not one message fits into the text of a new one", async () => {
    const h = await open({ scripts: { "*": [repeat(say("z".repeat(30_000)))] } });
    const long = "q".repeat(9_000);
    for (let at = 1; at <= 3; at += 1) await h.ask(long);
    expect(await preview(h)).toMatchObject({ staleness: ["context_full"] });
    expect(await h.ask("z".repeat(22_000))).toMatchObject({ ending: "completed", error: null });
    expect(await switches(h)).toEqual([]);
  });

  test("C10 WRK-4 a parent with a full conversation gets the results of its children", async () => {
    const child = (name: string) => spawn(name, "look", { fork_turns: "none" });
    const h = await open({
      scripts: {
        "/root": [
          ...Array.from({ length: 11 }, () => say(LONG)),
          together(child("a"), child("b"), child("c")),
          say(LONG),
          repeat(say("summed up")),
        ],
        "*": [together(gate("work"), say("r".repeat(9_000)))],
      },
    });
    for (let at = 1; at <= 11; at += 1) await h.ask(`q${at};`);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work", 3);
    h.provider.gates.openAll();
    expect(await work.outcome()).toMatchObject({ ending: "completed", error: null });
    expect(JSON.stringify(h.provider.requests("/root").at(-1)!.messages)).toContain("rrr");
  });

  test("C7.3 C10 a conversation that begins anew is told what a fork had brought back into the one before", async () => {
    const answer = say(
      ({ inputs }) => `${inputs.at(-1)} ${`${inputs.at(-1)}`.startsWith("q") ? LONG : "yes"}`,
    );
    const h = await open({ scripts: { "*": [repeat(answer)] } });
    await h.ask("q0;");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    const fork = await h.runtime.openTree({ id: thread.id });
    await (await fork.root.send("found by the fork;")).outcome();
    await h.runtime.threads.mergeBack(thread.id);
    await fill(h);
    await h.ask("and now?");
    const told = h.provider.requests("/root").at(-1)!.messages;
    expect(await switches(h)).toMatchObject([{ staleness: ["context_full"], status: "consumed" }]);
    expect(JSON.stringify(told)).toContain("Brought back by forks");
    expect(JSON.stringify(told)).toContain("found by the fork;");
    expect(estimateTokens(told, [])).toBeLessThan(ROOM);
  });

  test("C9.5 rolled back behind where it began anew, the conversation before is gone on with word for word", async () => {
    const h = await open();
    await fill(h);
    await h.ask("anew;");
    expect(await switches(h)).toHaveLength(1);
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 3 } });
    await h.ask("after;");
    const told = JSON.stringify(h.provider.requests("/root").at(-1)!.messages);
    expect(told).toContain("q3; yyy");
    expect(told).not.toContain("q4;");
    expect(told).not.toContain("[runtime: handoff]");
    expect(await switches(h)).toHaveLength(1);
  });

  test("C9.5 C9.11 a rollback behind where it began anew that is undone is told of everything once", async () => {
    const h = await open();
    const last = await fill(h);
    await h.ask("anew;");
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 3 } });
    await h.runtime.threads.undoRollback(h.tree.id);
    await h.ask("after;");
    const told = JSON.stringify(h.provider.requests("/root").at(-1)!.messages);
    expect(told.split("[runtime: handoff]")).toHaveLength(2);
    for (const said of [`q${last};`, "anew;"]) expect(told).toContain(said);
  });

  test("C10 instructions that take the room are no reason to begin anew with each run", async () => {
    const tree = { instructions: "i".repeat(100_000), limits: { tokensPerTree: null } };
    const h = await open({ tree });
    for (let at = 1; at <= 4; at += 1) {
      await h.ask(`q${at};`);
      expect(await switches(h)).toEqual([]);
    }
    // As soon as there is something to be had by it, it is done.
    for (let at = 5; at <= 12; at += 1) expect((await h.ask(`q${at};`)).ending).toBe("completed");
    const begun = (await switches(h)).map(({ sourcePoint }) => sourcePoint.ordinal);
    expect(begun.length).toBeGreaterThan(1);
    for (const [at, ordinal] of begun.entries()) expect(ordinal - (begun[at - 1] ?? 0)).toBeGreaterThan(1);
    expect(Math.max(...sizes(h))).toBeLessThan(WINDOW);
  });

  test("C10 a window too small for any text is gone on with", async () => {
    const h = await open({
      scripted: { models: { scripted: { ...MODEL, contextWindow: 10_000 } } },
      tree: { limits: { tokensPerTree: null, mailPerRequestBytes: 1_000 } },
    });
    for (let at = 1; at <= 8; at += 1) expect((await h.ask(`q${at};`)).ending).toBe("completed");
    expect(await switches(h)).toEqual([]);
    expect((await new Look(h).runs("/root")).length).toBe(8);
  });
});
