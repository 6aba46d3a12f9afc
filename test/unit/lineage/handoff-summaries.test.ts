/** Summaries: who writes them, what they may see, and what stands where there is none (C6.4 to C6.6, C6.14). */
import { describe, expect, test } from "vitest";
import { buildHandoff } from "../../../src/lineage/handoff/build.ts";
import {
  deterministic,
  modelSummariser,
  summarise,
  type Summariser,
  summaryMaterial,
} from "../../../src/lineage/handoff/summarise.ts";
import { redact } from "../../../src/platform/redact.ts";
import { InterruptedError } from "../../../src/protocol/errors.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../../src/protocol/lineage-limits.ts";
import { answer, built, call, inputOf, pin, section, snapshot, thread, user } from "./handoff-fixtures.ts";

const source = thread([
  [user("Build the cache"), call("write_file", { path: "src/cache.ts" }), answer("The cache stands.")],
  [
    user("Never use the network"),
    call("bash", { command: "npm test" }, "eviction is broken", true),
    answer("Tests are written."),
  ],
]);
const material = summaryMaterial(inputOf([source]));
const ask = (summariser: Summariser | null, signal = new AbortController().signal) =>
  summarise({ mode: "summary_plus_recent", summariser, material, signal });
const WRITTEN = [
  "## Goal",
  "ignored: no colon",
  "**Goal:** a cache",
  "Instructions:",
  "- no network",
  "Accomplished:",
  "* it stands",
  "Relevant files: src/cache.ts",
].join("\n");
const far = (answerOf: (prompt: string) => string | Promise<string>) =>
  modelSummariser("far", (prompt) => Promise.resolve(answerOf(prompt)), redact);
const handoffWith = async (summariser: Summariser | null) =>
  built(buildHandoff(inputOf([source], { mode: "summary_plus_recent", summary: await ask(summariser) })));

describe("a summary", () => {
  test("S2-29 S3-38 by the deterministic author has a goal, instructions, discoveries, what is done and files", async () => {
    const handoff = await handoffWith(deterministic);
    expect(section(handoff.text, "Summary of the dialogue")).toBe(
      [
        "== Summary of the dialogue ==",
        "Goal:",
        "- Build the cache",
        "Instructions:",
        "- Never use the network",
        "Discoveries:",
        "- `npm test` failed: eviction is broken",
        "Accomplished:",
        "- The cache stands.",
        "- Tests are written.",
        "Relevant files:",
        "- src/cache.ts",
      ].join("\n"),
    );
    expect(handoff.about.createdByProvider).toBeNull();
    expect(handoff.mode).toBe("summary_plus_recent");
  });

  test("S2-24 comes before the recent messages", async () => {
    const { text, about } = await handoffWith(deterministic);
    expect(text.indexOf("== Summary")).toBeLessThan(text.indexOf("== Recent dialogue"));
    expect(about.payload.sections.slice(-2)).toEqual(["summary", "dialogue"]);
  });

  test.for(["near", "far", "third"])(
    "S3-38 S3-39 by %s names its author, whoever the target is",
    async (author) => {
      const summariser = modelSummariser(author, () => Promise.resolve(WRITTEN), redact);
      const handoff = await handoffWith(summariser);
      expect(handoff.about.createdByProvider).toBe(author);
      expect(handoff.text).toContain(`put together by the runtime, the summary by ${author}.`);
      expect(section(handoff.text, "Summary of the dialogue")).toContain(
        "Goal:\n- a cache\nInstructions:\n- no network\nDiscoveries:\n- nothing recorded\nAccomplished:\n- it stands",
      );
    },
  );

  test("C6.4 is written from dialogue and files; what was pinned stays out of it", async () => {
    const prompts: string[] = [];
    const pinned = inputOf([source], { snapshot: snapshot({ decisions: [pin("pinned words")] }) });
    await summarise({
      mode: "summary_plus_recent",
      summariser: far((prompt) => {
        prompts.push(prompt);
        return WRITTEN;
      }),
      material: summaryMaterial(pinned),
      signal: new AbortController().signal,
    });
    expect(prompts).toHaveLength(1);
    expect(prompts[0]).toContain("Build the cache");
    expect(prompts[0]).toContain("src/cache.ts");
    expect(prompts[0]).not.toContain("pinned words");
  });

  test("C6.12 no summariser sees a secret, and none gets one into the text", async () => {
    const secret = "sk-abcdefghijklmnopqrstuvwx";
    const secretive = summaryMaterial(inputOf([thread([[user(`use ${secret}`), answer(secret)]])]));
    expect(JSON.stringify(secretive)).not.toContain("abcdefghijklmnop");
    const handoff = await handoffWith(far(() => `Goal:\n- use ${secret}`));
    expect(handoff.text).not.toContain("abcdefghijklmnop");
    expect(handoff.text).toContain("- use ***");
  });

  test("C6.9 that is too long is cut and marked", async () => {
    const handoff = built(
      buildHandoff(
        inputOf([source], {
          mode: "summary_plus_recent",
          summary: await ask(far(() => `Goal:\n- ${"😀".repeat(9_000)}`)),
        }),
      ),
    );
    expect(handoff.text).toContain("[cut from");
    expect(handoff.text.isWellFormed()).toBe(true);
  });

  test("C6.5 of a long thread is written from its newest part and the first message of the user", () => {
    const many = thread(Array.from({ length: 500 }, (_, at) => [user(`asked ${at} ${"-".repeat(300)}`)]));
    const limits = { ...DEFAULT_LINEAGE_LIMITS, seedChars: 3_000 };
    const { dialogue } = summaryMaterial({ ...inputOf([many]), limits });
    expect(dialogue[0]!.text).toContain("asked 0 ");
    expect(dialogue.at(-1)!.text).toContain("asked 499 ");
    expect(dialogue.length).toBeLessThan(14);
  });
});

describe("without a summary", () => {
  test("S2-28 the default is the recent window alone", async () => {
    const none = await summarise({
      mode: "recent",
      summariser: deterministic,
      material,
      signal: new AbortController().signal,
    });
    expect(none).toEqual({ kind: "none", why: "not asked for" });
    const handoff = built(buildHandoff(inputOf([source], { summary: none })));
    expect(handoff.text).not.toContain("Summary");
    expect(handoff.mode).toBe("recent");
    expect(handoff.about.payload.sections).not.toContain("summary");
  });

  test("S2-30 switched off: recent alone, recorded as such, and no error", async () => {
    const handoff = await handoffWith(null);
    expect(handoff.mode).toBe("recent");
    expect(handoff.text).toContain("\nSummary: none, summaries are switched off\n");
    expect(handoff.text).toContain("Tests are written.");
  });

  test.for<[string, () => string | Promise<string>, string]>([
    ["it throws", () => Promise.reject<string>(new Error("no quota")), "no quota"],
    ["it says nothing useful", () => "I cannot do that", "neither a goal"],
  ])("C6.14 %s: the deterministic author writes once, and the failure is told", async ([, says, why]) => {
    const outcome = await ask(far(says));
    expect(outcome).toMatchObject({ kind: "text", author: null });
    const handoff = await handoffWith(far(says));
    expect(handoff.about.createdByProvider).toBeNull();
    expect(handoff.text).toContain("Summary: HANDOFF_GENERATION_FAILED by far: ");
    expect(handoff.text).toContain(why);
  });

  test("C6.5 a failure of the deterministic author too is recorded as recent", async () => {
    const broken: Summariser = { author: null, summarise: () => Promise.reject(new Error("broken")) };
    const outcome = await ask(broken);
    expect(outcome).toEqual({ kind: "none", why: "HANDOFF_GENERATION_FAILED by the runtime: broken" });
  });

  test("C6.14 a cancellation is no failure of a summary", async () => {
    const stop = new AbortController();
    const reason: unknown = new InterruptedError("RUN_INTERRUPTED", "stopped");
    const cancelled = ask(
      far((): Promise<string> => {
        stop.abort(reason);
        return Promise.reject(new Error("aborted"));
      }),
      stop.signal,
    );
    await expect(cancelled).rejects.toBe(reason);
  });
});
