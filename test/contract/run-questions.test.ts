/** Questions of an adapter that names them by a counter of its own: each is one of its agent's alone. */
import { describe, expect, test } from "vitest";
import type { StepEvent } from "../../src/protocol/provider-events.ts";
import { OWN_LOOP_THREADS } from "../../src/providers/own-loop.ts";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

/** Asks one question in each session, then tells the answer. */
const asking: OwnLoopAdapter = {
  driver: "asking",
  loop: "ours",
  threads: OWN_LOOP_THREADS,
  capabilities: { exact: true, parksWaits: true, questions: true, approvals: false },
  defaultModel: null,
  models: () => null,
  openSession: () =>
    Promise.resolve({
      async *step({ ownSteps, path, messages }): AsyncGenerator<StepEvent> {
        const text = ownSteps === 0 ? `Who is ${path}?` : JSON.stringify(messages.at(-1));
        const question = {
          type: "request",
          callId: "q1",
          requestId: "req_1",
          kind: "question",
          text,
        } as const;
        yield { type: "part", part: ownSteps === 0 ? question : { type: "text", text } };
        yield { type: "finish", reason: "stop" };
      },
      close: () => Promise.resolve(),
    }),
};

describe.each(STORES)("questions with the same id on %s", (store) => {
  test.each(["one tree", "two trees"])(
    "SPN-6 WAI-2 REC-2 each of two agents of %s gets its own answer",
    async (where) => {
      await using h = await harness({ store, others: { asking } });
      const look = new Look(h);
      const trees = [h.tree, where === "one tree" ? h.tree : await h.runtime.openTree()];
      const works = await Promise.all(
        trees.map(async (tree, at) => (await tree.root.spawn(`a${at}`, "go", { provider: "asking" })).work),
      );
      const questions = async () =>
        (await Promise.all([...new Set(trees)].map((tree) => tree.requests()))).flat();
      await look.until("both have asked", async () => (await questions()).length === 2);
      expect((await questions()).map(({ text }) => text)).toEqual(["Who is /root/a0?", "Who is /root/a1?"]);
      for (const [at, { id }] of (await questions()).entries()) await trees[at]!.answer(id, `the ${at}th`);
      for (const [at, work] of works.entries())
        expect(await work.outcome()).toMatchObject({
          ending: "completed",
          text: expect.stringContaining(`the ${at}th`) as string,
        });
    },
  );
});

test("WAI-2 REC-2 a run whose question is another run's ends, and does not go round for ever", async () => {
  await using h = await harness({ store: "sqlite", others: { asking } });
  const look = new Look(h);
  const { work } = await h.tree.root.spawn("a", "go", { provider: "asking" });
  await look.until("it has asked", async () => (await h.tree.requests()).length === 1);
  // What a store may hold that was written before the ids were ours.
  h.edit("UPDATE requests SET open = 0, body = json_set(body, '$.runId', 'run_of_another_tree')");
  await h.crash();
  expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "runtime_lost" });
});
