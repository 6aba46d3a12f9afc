/** Thin uses of the builder: seeds of forks, merge-backs, and what a subagent is told. */
import { describe, expect, test } from "vitest";
import { buildHandoff } from "../../../src/lineage/handoff/build.ts";
import type { HandoffSegment } from "../../../src/lineage/handoff/input.ts";
import { mergeBackText, type MergeBackInput } from "../../../src/lineage/handoff/merge-back.ts";
import { replaySeed, type SeedInput } from "../../../src/lineage/handoff/seed.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../../src/protocol/lineage-limits.ts";
import { forkPolicySchema } from "../../../src/protocol/thread.ts";
import {
  answer,
  assistant,
  between,
  built,
  call,
  inputOf,
  mail,
  section,
  snapshot,
  thread,
  user,
} from "./handoff-fixtures.ts";

function seedOf(
  segments: readonly HandoffSegment[],
  replay: { mode?: "recent" | "summary_plus_recent"; maxSeedChars?: number; recentMessages?: number } = {},
  changes: Partial<SeedInput> = {},
) {
  return replaySeed({
    ...inputOf(segments),
    policy: forkPolicySchema.parse({ replay }).replay,
    room: {
      providerMaxChars: null,
      window: 1_000_000,
      occupied: 0,
      message: { text: "", images: 0, attachments: 0 },
    },
    ...changes,
  });
}

const talk = (count: number, size = 0) =>
  thread(
    Array.from({ length: count }, (_, at) => [
      user(`asked ${at} ${"-".repeat(size)}`),
      answer(`said ${at} ${"-".repeat(size)}`),
    ]),
  );

describe("a seed", () => {
  test("S2-16 S2-31 stays within its characters, frame included, and drops the oldest first", () => {
    const seed = built(seedOf([talk(200, 100)], { maxSeedChars: 6_000 }));
    expect(seed.text.length).toBeLessThanOrEqual(6_000);
    expect(seed.about.budget).toEqual({ limit: 6_000, used: seed.text.length, unit: "chars" });
    const said = [...seed.text.matchAll(/(asked|said) (\d+)/g)].map(([, who, at]) => `${who} ${at}`);
    expect(said.length).toBeGreaterThan(20);
    expect(said).toEqual([
      "asked 0",
      ...Array.from({ length: 200 }, (_, at) => [`asked ${at}`, `said ${at}`])
        .flat()
        .slice(1 - said.length),
    ]);
  });

  test("C18.7 has at least 1 024 characters, which are enough for a message, and at most 200 000", () => {
    const least = built(seedOf([talk(50, 40)], { maxSeedChars: 1 }));
    expect(least.about.budget.limit).toBe(1_024);
    expect(least.text.length).toBeLessThanOrEqual(1_024);
    expect(least.text).toContain("asked 49");
    expect(built(seedOf([talk(1)], { maxSeedChars: 9_999_999 })).about.budget.limit).toBe(200_000);
    expect(built(seedOf([talk(1)])).about.budget.limit).toBe(120_000);
  });

  test("C18.8 holds no more messages than asked for, and looks at no more than its candidates", () => {
    expect(built(seedOf([talk(40)], { recentMessages: 7 })).about.payload.items).toBe(7);
    expect(built(seedOf([talk(40)], { recentMessages: 1 })).text).toContain("asked 39");
    const seedMessages = (count: number) => ({ limits: { ...DEFAULT_LINEAGE_LIMITS, seedMessages: count } });
    const few = built(seedOf([talk(40)], {}, seedMessages(1)));
    expect(few.about.payload.items).toBe(50);
    expect(few.text).not.toContain("asked 0 ");
    expect(few.about.payload.omittedItemIds).toHaveLength(30);
    expect(built(seedOf([talk(400)], {}, seedMessages(9_999))).about.payload.items).toBe(500);
  });

  test("C18.8 cuts messages only where that is asked for", () => {
    const source = thread([[user("x".repeat(900)), answer("done")]]);
    expect(built(seedOf([source])).text).toContain("x".repeat(900));
    const clipped = { limits: { ...DEFAULT_LINEAGE_LIMITS, messageChars: 100 } };
    const { text } = built(seedOf([source], {}, clipped));
    expect(text).toContain("… [cut from 900 characters]");
    expect(text).not.toContain("x".repeat(100));
  });

  test("S2-23 holds the transcript up to its cut, and nothing later", () => {
    const whole = talk(5);
    const cut: HandoffSegment = { ...whole, items: whole.items.slice(0, 5), runs: whole.runs.slice(0, 3) };
    const { text } = built(seedOf([cut]));
    expect(text).toContain("asked 2");
    expect(text).not.toMatch(/said 2|asked [34]|said [34]/);
    expect(built(seedOf([whole])).text).toContain("said 4");
  });

  test("C5.22 tells a chain from its oldest ancestor, each thread up to its own point", () => {
    const chain = ["thread_a", "thread_b", "thread_c"].map((threadId) =>
      thread([[user(`asked ${threadId}`), answer("ok"), call("write_file", { path: `${threadId}.ts` })]], {
        threadId: threadId as "thread_a",
        title: threadId === "thread_b" ? "B" : null,
      }),
    );
    const seed = built(seedOf(chain));
    const order = ["=== From thread_a, runs 1 ===", '=== From thread_b "B", runs 1 ===', "asked thread_c"];
    const places = order.map((one) => seed.text.indexOf(one));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
    expect(seed.text).toContain("=== User, run 1 of thread_a ===\nasked thread_a");
    expect(seed.text).toContain("=== User, run 1 ===\nasked thread_c");
    expect(section(seed.text, "Files")).toContain("- thread_a.ts (run 1 of thread_a, write_file)");
    expect(seed.text).toContain("Covers: thread_c, runs 1, after what it has inherited from 2.");
    expect(seed.coveredRanges).toEqual([[0, 4]]);
  });

  test("C5.22 C18.10 goes up so many ancestors, says how many were left out, and never in a circle", () => {
    const chain = Array.from({ length: 30 }, (_, at) =>
      thread([[user(`asked by ${at}.`)]], { threadId: `thread_${at}` }),
    );
    const { text } = built(seedOf(chain));
    expect(text.match(/=== From/g)).toHaveLength(11);
    expect(text).not.toContain("asked by 18.");
    expect(section(text, "Left out")).toContain("19 threads further up. Read them with `read_thread`.");
    const circle = [chain[1]!, chain[0]!, chain[1]!];
    expect(built(seedOf(circle)).text.match(/=== From/g)).toHaveLength(2);
  });

  test("X-11 C9.9 tells of a run that was rolled back after the fork was taken", () => {
    const source = thread([{ status: "rolled_back", said: [user("before the fork")] }]);
    expect(built(seedOf([source])).text).toContain("before the fork");
  });

  test("C5.15 is refused where there is nothing to replay, or no room for a message", () => {
    expect(seedOf([thread([])])).toEqual({ kind: "failed", code: "FORK_SEED_EMPTY" });
    expect(seedOf([talk(1, 5_000)], { maxSeedChars: 2_000 })).toMatchObject({
      kind: "failed",
      code: "HANDOFF_BUDGET_TOO_SMALL",
    });
  });

  test("C6.7 yields to the window as a handoff does", () => {
    const room = {
      providerMaxChars: null,
      window: 40_000,
      occupied: 20_000,
      message: { text: "", images: 0, attachments: 0 },
    };
    const seed = built(seedOf([talk(400, 50)], {}, { room }));
    expect(seed.about.budget).toMatchObject({ limit: 4_000, unit: "tokens" });
    expect(seed.about.budget.used).toBeLessThanOrEqual(4_000);
  });
});

describe("a merge-back", () => {
  const write = (path: string) => call("write_file", { path });
  const target = thread([[user("meanwhile"), write("shared.ts"), write("theirs.ts")]], {
    threadId: "thread_parent",
  });
  const fork = thread(
    [
      [user("try it"), write("/work/project/shared.ts"), write("ours.ts"), answer("tried")],
      [user("and again"), call("bash", { command: "npm test" }, "12 passed"), answer("it works")],
    ],
    { threadId: "thread_fork" },
  );
  const merge = (changes: Partial<MergeBackInput> = {}) =>
    mergeBackText({ ...inputOf([]), fork, target, delivered: [], ...changes });

  test("S0-46 C7.3 tells what the fork has done since its point, as a delta", () => {
    const handoff = built(merge({ fork: between(fork, 2, 2) }));
    expect(handoff.about).toMatchObject({ kind: "delta_context", strategy: "delta_since_target_last_seen" });
    expect(handoff.about.coveredRuns).toEqual([[2, 2]]);
    expect(handoff.text).toContain("This is what a fork of this conversation has done.");
    expect(handoff.text).toContain("`npm test` (run 2): ok\n12 passed");
    expect(handoff.text).toContain("it works");
    expect(handoff.text).not.toMatch(/try it|meanwhile|ours\.ts/);
  });

  test("C7.7 names the files that both sides have changed", () => {
    expect(section(built(merge()).text, "Conflicts")).toBe(
      "== Conflicts: changed on both sides since the fork ==\n- shared.ts",
    );
    const apart = { ...target, runs: [] };
    expect(built(merge({ target: apart })).text).not.toContain("Conflicts");
  });

  test("X-8 C7.6 a later one leaves out what was delivered", () => {
    const second = built(merge({ delivered: [[1, 1]] }));
    expect(second.text).not.toMatch(/try it|ours\.ts|Conflicts/);
    expect(second.text).toContain("it works");
    expect(second.about.coveredRuns).toEqual([[2, 2]]);
    expect(merge({ delivered: [[1, 2]], snapshot: snapshot({ objective: "x" }) })).toEqual({ kind: "empty" });
  });
});

describe("a subagent's context", () => {
  test("C8.3 SPN-5 is what the user and the final answers have said, and nothing else", () => {
    const source = thread([
      [
        user("go"),
        call("bash", { command: "npm test" }, "tests passed"),
        mail("/root/a", "a word of a sibling"),
        assistant([{ type: "text", text: "on the way" }], "tools"),
        answer("done"),
      ],
    ]);
    const { text } = built(buildHandoff(inputOf([source], { purpose: "subagent_spawn" })));
    expect(text).toContain("history of the agent that has started you");
    expect(section(text, "Recent dialogue")).toBe(
      "== Recent dialogue ==\n=== User, run 1 ===\ngo\n=== Assistant, run 1 ===\ndone\n",
    );
    expect(text).not.toMatch(/npm test|sibling|on the way|How the runs ended/);
  });
});
