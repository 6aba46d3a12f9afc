/** The turns that a run took of its provider (C1.5, C1.6), whenever they are named, and what is cut at them (C5.11, C9.5). */
import { describe, expect, test } from "vitest";
import {
  exclusiveFork,
  itemFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { ownTool } from "../../src/providers/scripted/native/words.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";

const KINDS = { turnFork, itemFork, exclusiveFork };
/** It asks for a second turn where the first answer is none. */
const ANSWER = {
  type: "object",
  properties: { a: { type: "number" } },
  required: ["a"],
  additionalProperties: false,
} as const;

async function open(
  store: (typeof STORES)[number],
  make: (typeof KINDS)[keyof typeof KINDS],
  script: readonly ReturnType<typeof say>[],
  options = {},
): Promise<{ readonly h: Harness; readonly native: ScriptedNativeProvider }> {
  const native = make({ "*": [say("plain"), ...script, repeat(say("ok"))] }, options);
  const h = await harness({ store, others: { native }, tree: { provider: "native" } });
  await h.ask("q1;");
  return { h, native };
}

const runAt = (h: Harness, ordinal: number, id: ThreadId = h.tree.id) =>
  h.store.read((view) => view.runAt(id, ordinal)!);

/** What the conversation holds that carried this run. */
async function told(h: Harness, { conversations }: ScriptedNativeProvider, ordinal: number, id = h.tree.id) {
  const run = await runAt(h, ordinal, id);
  const record = await h.store.read((view) => view.providerThread(run.providerThreadId!)!);
  const held = conversations.all().find((one) => one.id === record.nativeThreadRef!.nativeId)!;
  return JSON.stringify(held.items.map(({ message }) => message));
}

const back = (h: Harness, ordinal: number) =>
  h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal } });

describe.each(STORES)("the turns of a run on %s", (store) => {
  test.each(Object.entries(KINDS))(
    "C1.5 C1.6 C9.5 %s all of them stand with the run, and go with it",
    async (_name, make) => {
      const { h, native } = await open(store, make, [say("no answer"), say('{"a": 1}')]);
      await using _ = h;
      const work = await h.tree.root.send("q2;", { outputSchema: ANSWER });
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
      await h.clock.settle();
      const { nativeTurns } = await runAt(h, 2);
      expect(new Set(nativeTurns.map((turn) => turn!.nativeId)).size).toBe(2);
      const [record] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
      expect(record!.nativeHeadRef).toEqual(nativeTurns[1]);
      await h.ask("q3;");
      expect(await back(h, 2)).toMatchObject({ native: "rolled_back" });
      const text = await told(h, native, 2);
      expect(text).toContain('a\\\":');
      expect(text).not.toContain("q3;");
      expect(await back(h, 1)).toMatchObject({ native: "rolled_back" });
      expect(await told(h, native, 1)).not.toContain("q2;");
    },
  );

  for (const turn of [1, 2]) {
    /** A run that is lost in this turn, and one after it. */
    const lost = async (make: (typeof KINDS)[keyof typeof KINDS]) => {
      const { h, native } = await open(store, make, [
        ...(turn === 2 ? [say("no answer")] : []),
        together(say("midway"), ownTool("shell", { command: "ls" }, "LISTED")),
        together(gate("held"), say('{"a": 1}')),
      ]);
      await h.tree.root.send("q2;", { outputSchema: ANSWER });
      await native.gates.arrived("held");
      await h.clock.settle();
      await h.crash();
      native.kill();
      native.gates.openAll();
      await h.clock.settle();
      const run = await runAt(h, 2);
      expect(run).toMatchObject({ status: "interrupted", nativeTurns: { length: turn } });
      const [record] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
      expect(record!.nativeHeadRef).toEqual(run.nativeTurns.at(-1));
      return { h, native, run };
    };

    test.each(Object.entries(KINDS))(
      `C9.5 C1.6 %s a rollback to a run that was lost in turn ${turn} keeps all of it, and nothing behind it`,
      async (_name, make) => {
        const { h, native } = await lost(make);
        await using _ = h;
        await h.ask("q3;");
        await back(h, 2);
        await h.ask("q4;");
        const text = await told(h, native, 4);
        for (const there of ["q1;", "q2;", "LISTED", "q4;"]) expect(text).toContain(there);
        expect(text).not.toContain("q3;");
      },
    );

    test.each(Object.entries(KINDS))(
      `C5.11 C5.18 %s a fork of a run that was lost in turn ${turn} has all of it, and nothing behind it`,
      async (_name, make) => {
        const { h, native, run } = await lost(make);
        await using _ = h;
        await h.ask("q3;");
        const { thread } = await h.runtime.threads.fork(h.tree.id, { at: { kind: "run", runId: run.id } });
        const fork = await h.runtime.openTree({ id: thread.id });
        expect(await (await fork.root.send("q4;")).outcome()).toMatchObject({ ending: "completed" });
        const text = await told(h, native, 1, thread.id);
        for (const there of ["q1;", "q2;", "LISTED", "q4;"]) expect(text).toContain(there);
        expect(text).not.toContain("q3;");
      },
    );
  }

  test("C9.5 C9.3 REC-1 a run whose row could not be read takes its turns with it, however many there were", async () => {
    const script = [say("no answer"), say('{"a": 1}')];
    for (const [make, options] of [
      [turnFork, { history: "legacy" }],
      [turnFork, { history: "paginated" }],
      [itemFork, {}],
    ] as const) {
      const { h, native } = await open(store, make, script, options);
      await using _ = h;
      await (await h.tree.root.send("q2;", { outputSchema: ANSWER })).outcome();
      h.damageRow("runs", (await runAt(h, 2)).id);
      await h.crash();
      native.kill();
      await h.ask("q3;");
      expect(await back(h, 1)).toMatchObject({ native: "given_up", runs: [[2, 3]] });
      await h.ask("q4;");
      const text = await told(h, native, 4);
      for (const there of ["q1;", "q4;"]) expect(text).toContain(there);
      for (const gone of ["q2;", "q3;"]) expect(text).not.toContain(gone);
    }
  });
});
