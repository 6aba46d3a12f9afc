/** C6.5, C6.6, C6.14: who writes the summary of a fork that asks for one, and what becomes of one that is not written. */
import { describe, expect, onTestFinished, test } from "vitest";
import { modelSummariser, type Summariser } from "../../src/lineage/handoff/summarise.ts";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

const summaryOf = (goal: string) => `Goal:\n- ${goal}\nAccomplished:\n- all of it`;
const SECRET = "hunter2-very-secret-value";

/** One that answers a prompt outside of its conversations too. */
function able(answer: (prompt: string, signal: AbortSignal) => Promise<string>): OwnLoopAdapter {
  const provider = scripted({ "*": [repeat(say("able took it"))] });
  const context = { ...provider.threads.context, canSummarise: true };
  return { ...provider, threads: { ...provider.threads, context }, summarise: answer };
}

const configured = (answer: (prompt: string, signal: AbortSignal) => Promise<string>): Summariser =>
  modelSummariser("configured", answer);

describe.each(STORES)("summaries on %s", (store) => {
  async function opened(summariser: Summariser | null | undefined, own: OwnLoopAdapter): Promise<Harness> {
    const h = await harness({
      store,
      scripts: { "*": [repeat(say("taken"))] },
      others: { own },
      runtime: { secrets: [SECRET], ...(summariser === undefined ? {} : { summariser }) },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    return h;
  }

  /** The handoff of a fork of a thread that was on this provider. */
  async function forked(
    h: Harness,
    provider: string,
    meanwhile: () => Promise<unknown> = async () => undefined,
  ) {
    const tree = await h.runtime.openTree({ provider });
    await (await tree.root.send(`build it, the key is ${SECRET}`)).outcome();
    const policy = { strategy: "replay", replay: { mode: "summary_plus_recent" } } as const;
    const { thread } = await h.runtime.threads.fork(tree.id, { policy });
    const work = await h.runtime.threads.continue(thread.id, "go on", { provider: "scripted" });
    await meanwhile();
    const forkTree = await h.runtime.openTree({ id: thread.id });
    expect((await forkTree.work(work.id).outcome()).ending).toBe("completed");
    return (await h.runtime.threads.handoffs(thread.id, { limit: 5 })).rows[0]!;
  }

  test("C6.6 S3-38 S3-39 the provider that is left summarises its own conversation; else the configured one; else the runtime", async () => {
    const prompts: string[] = [];
    const own = able(async (prompt) => {
      prompts.push(prompt);
      return summaryOf("its own");
    });
    const h = await opened(
      configured(async () => summaryOf("configured")),
      own,
    );
    const left = await forked(h, "own");
    expect(left).toMatchObject({ createdByProvider: "own" });
    expect(left.summaryText).toContain("- its own");
    expect(prompts).toHaveLength(1);
    expect(prompts[0]).toContain("build it");
    expect(prompts[0]).not.toContain(SECRET);
    const other = await forked(h, "scripted");
    expect(other).toMatchObject({ createdByProvider: "configured" });
    expect(other.summaryText).toContain("- configured");
    const plain = await forked(await opened(undefined, own), "scripted");
    expect(plain.createdByProvider).toBeNull();
    expect(plain.summaryText).toContain("== Summary of the dialogue ==");
  });

  test("C4.9 C6.6 a preview asks nobody, and shows what the runtime itself would write", async () => {
    const asked: string[] = [];
    const asking = async (prompt: string) => {
      asked.push(prompt);
      return summaryOf("paid for");
    };
    for (const summariser of [configured(asking), null]) {
      const h = await opened(summariser, able(asking));
      const tree = await h.runtime.openTree({ provider: "own" });
      await (await tree.root.send("build it")).outcome();
      const policy = { strategy: "replay", replay: { mode: "summary_plus_recent" } } as const;
      const { thread } = await h.runtime.threads.fork(tree.id, { policy });
      const { tells } = await h.runtime.threads.preview(thread.id, { provider: "scripted" });
      expect(tells[0]!.text).toContain(
        summariser === null ? "summaries are switched off" : "== Summary of the dialogue ==",
      );
    }
    expect(asked).toEqual([]);
  });

  test("C6.5 S2-30 switched off nobody is asked, not even a provider that could", async () => {
    const h = await opened(
      null,
      able(() => Promise.reject(new Error("it was asked"))),
    );
    const handoff = await forked(h, "own");
    expect(handoff.createdByProvider).toBeNull();
    expect(handoff.summaryText).toContain("Summary: none, summaries are switched off");
  });

  test("C6.6 C6.14 one that fails is replaced by the deterministic one, and the record says so", async () => {
    const h = await opened(
      configured(async () => "no headings at all"),
      able(() => Promise.reject(new Error("no more tokens"))),
    );
    for (const [provider, author] of [
      ["own", "own"],
      ["scripted", "configured"],
    ] as const) {
      const { summaryText, createdByProvider } = await forked(h, provider);
      expect(createdByProvider).toBeNull();
      expect(summaryText).toContain(`Summary: HANDOFF_GENERATION_FAILED by ${author}`);
      expect(summaryText).toContain("== Summary of the dialogue ==");
    }
  });

  test("C6.6 C6.14 one that takes too long is given up, told so, and replaced", async () => {
    const asked = Promise.withResolvers<AbortSignal>();
    const h = await opened(
      configured((_prompt, signal) => {
        asked.resolve(signal);
        return new Promise(() => undefined);
      }),
      able(async () => ""),
    );
    const handoff = await forked(h, "scripted", async () => {
      await asked.promise;
      await h.clock.advance(30_000);
    });
    expect((await asked.promise).aborted).toBe(true);
    expect(handoff.createdByProvider).toBeNull();
    expect(handoff.summaryText).toContain("it took longer than 30000 ms");
    expect(handoff.summaryText).toContain("== Summary of the dialogue ==");
  });
});
