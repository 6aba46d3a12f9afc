/** What the methods of `runtime.threads` are given: looked at before anything is read or changed, and answered with. */
import { describe, expect, test } from "vitest";
import type { CommandVerb } from "../../src/protocol/command.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { ThreadReads } from "../../src/runtime/thread-reads.ts";
import { Threads } from "../../src/runtime/threads.ts";
import { Work } from "../../src/runtime/work.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

/** Of the form of an id and in no store: what is read first would say that it is not there. */
const NOBODY = `thread_${"a".repeat(21)}`;
const BLANK = " \n";

type Cases = readonly (readonly [given: readonly unknown[], words: RegExp])[];
const noText: Cases = [
  [[5], /expected string, received number/],
  [[], /expected string, received undefined/],
];
const pages: Cases = [
  [[5], /id: .*expected string/],
  [[NOBODY, { limit: 1.5 }], /page\.limit: .*int/],
  [[NOBODY, { limit: 0 }], /page\.limit: .*>=1/],
  [[NOBODY, { after: 5 }], /page\.after: /],
  [[NOBODY, { before: "a" }], /unknown field `before`. Accepted fields of page: after, limit/],
];
const points: Cases = [
  [[NOBODY, { at: { kind: "latest" } }], /options\.at\.kind: /],
  [[NOBODY, { at: { kind: "message", seq: 1.5 } }], /options\.at\.seq: .*int/],
  [[NOBODY, { at: { kind: "run", run: "run_1" } }], /options\.at\.runId: .*unknown field `run`/],
  [[NOBODY, { policy: { strategy: "natively" } }], /options\.policy\.strategy: /],
  [[NOBODY, { policy: { requestId: BLANK } }], /options\.policy\.requestId: it is blank/],
  [[NOBODY, { policy: { replay: { maxSeedChars: 0 } } }], /options\.policy\.replay\.maxSeedChars: .*>=1/],
  [[NOBODY, { title: BLANK }], /options\.title: is blank/],
  [[NOBODY, { strategy: "auto" }], /unknown field `strategy`. Accepted fields of options: at, policy, title/],
];
const choices: Cases = [
  [[NOBODY, {}], /choice\.provider: /],
  [[NOBODY, { provider: "" }], /choice\.provider: .*>=1/],
  [[NOBODY, { provider: "a", model: 5 }], /choice\.model: /],
  [
    [NOBODY, { provider: "a", clean: true }],
    /Accepted fields of choice: provider, model, effort, cleanContext/,
  ],
];

/** Of each method: what is wrong, and a word of the refusal. */
const WRONG: Readonly<Record<string, Cases>> = {
  create: [
    [[{ titel: "x" }], /unknown field `titel`. Accepted fields: id, title, provider/],
    [[{ parent: 5 }], /parent: /],
    [[{ title: BLANK }], /title: is blank/],
    [[{ continuity: "native" }], /continuity: /],
    [[null], /received null/],
  ],
  editHandoff: [
    [["hnd_1", 5], /text: /],
    [["hnd_1", BLANK], /text: is blank/],
  ],
  regenerateHandoff: noText,
  continue: [
    [[NOBODY, 5], /message: .*expected string/],
    [[NOBODY, BLANK], /message: is blank/],
    [[NOBODY, "x", { onBusy: "later" }], /options\.onBusy: /],
    [[NOBODY, "x", { providr: "y" }], /unknown field `providr`. Accepted fields of options: provider, model/],
    [[NOBODY, "x", { model: { a: 1 } }], /options\.model: /],
    [[NOBODY, "x", { expectedRevision: 0 }], /options\.expectedRevision: .*>=1/],
    [[NOBODY, "x", { commandId: " " }], /options\.commandId: is blank/],
    [[NOBODY, "x", null], /options: .*received null/],
  ],
  select: [...choices, [[NOBODY], /choice: /]],
  preview: [...choices, [[NOBODY, null], /choice: .*received null/]],
  discardDraft: noText,
  rename: [
    [[NOBODY, 5], /title: /],
    [[NOBODY, BLANK], /title: is blank/],
    [[NOBODY], /title: /],
  ],
  close: noText,
  archive: noText,
  pin: [
    [[NOBODY, "decision", "x"], /section: .*"decisions"/],
    [[NOBODY, "decisions", BLANK], /text: is blank/],
    [[NOBODY, "decisions"], /text: /],
  ],
  planFork: points,
  reference: [
    [[NOBODY, { kind: "latest" }], /at\.kind: /],
    [[NOBODY, "latest"], /at: /],
  ],
  fork: points,
  mergeBack: [
    [[NOBODY, { run: 5 }], /options\.run: .*run_…/],
    [[NOBODY, { into: "" }], /options\.into: /],
    [[NOBODY, { target: NOBODY }], /unknown field `target`. Accepted fields of options: into, run/],
  ],
  rollBack: [
    [[NOBODY], /options: .*Accepted fields of options: to, native, provider/],
    [[NOBODY, { native: "demanded" }], /options\.to: /],
    [[NOBODY, { to: { kind: "ordinal", ordinal: 1 }, native: "demandd" }], /options\.native: /],
    [[NOBODY, { to: { kind: "ordinal", ordinal: 1 }, natve: "demanded" }], /unknown field `natve`/],
    [[NOBODY, { to: { kind: "ordinal", ordinal: 1.5 } }], /options\.to\.ordinal: .*int/],
    [[NOBODY, { to: { kind: "ordinal", ordinal: "1" } }], /options\.to\.ordinal: /],
    [[NOBODY, { to: { kind: "before_message", seq: Number.NaN } }], /options\.to\.seq: /],
    [[NOBODY, { to: { kind: "before_message", seq: 0 } }], /options\.to\.seq: /],
    [[NOBODY, { to: { kind: "run", runId: "run_1" } }], /options\.to\.kind: /],
  ],
  undoRollback: noText,
  inject: noText,
  list: [
    [[{ state: "opn" }], /filter\.state: .*"open"/],
    [[{ workspace: "" }], /filter\.workspace: /],
    [[{ limit: 5 }], /unknown field `limit`. Accepted fields of filter: workspace, state/],
    [[{}, { limit: -1 }], /page\.limit: .*>=1/],
  ],
  reconcile: noText,
  show: [[[NOBODY, { limit: 0 }], /executions\.limit: /]],
  sync: [
    [[NOBODY, { run: 5 }], /options\.run: /],
    [[NOBODY, { runs: "run_1" }], /Accepted fields of options: run, commandId/],
  ],
  checkpoints: pages,
  diffCheckpoints: [
    [[NOBODY, {}], /between\.run: /],
    [[NOBODY, { run: "run_1", patchBytes: -1 }], /between\.patchBytes: .*>=0/],
    [[NOBODY, { run: "run_1", from: "run_2" }], /Accepted fields of between: run, to, patchBytes/],
  ],
  restoreCheckpoint: [
    [[NOBODY], /options: .*run/],
    [[NOBODY, { run: "run_1", paths: [] }], /options\.paths: .*leave it out for the whole folder/],
    [[NOBODY, { run: "run_1", paths: "a.txt" }], /options\.paths: /],
    [[NOBODY, { run: "run_1", force: true }], /unknown field `force`/],
  ],
  removeCheckpoint: [[[NOBODY, ""], /run: .*>=1/]],
  history: pages,
  mirror: noText,
  transcript: [
    [[NOBODY, { limit: 1.5 }], /page\.limit: .*int/],
    [[NOBODY, { limit: Number.NaN }], /page\.limit: /],
    [[NOBODY, { before: 5 }], /page\.before: /],
    [[NOBODY, { after: "a" }], /unknown field `after`. Accepted fields of page: before, limit/],
  ],
  get: noText,
  executions: pages,
  context: noText,
  draft: noText,
  transfers: pages,
  handoffs: pages,
  handoff: noText,
};

describe.each(STORES)("arguments of commands on threads on %s", (store) => {
  const talkative = (): Promise<Harness> => harness({ store, scripts: { "*": [repeat(say("ok"))] } });

  test("C3.1 C3.12 each method refuses what is wrong or unknown before it reads or changes anything", async () => {
    const methods = [Threads, ThreadReads].flatMap((kind) => Object.getOwnPropertyNames(kind.prototype));
    expect(Object.keys(WRONG).toSorted()).toEqual(
      methods.filter((name) => name !== "constructor").toSorted(),
    );
    await using h = await talkative();
    const threads = h.runtime.threads as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
    const before = await h.tree.log(0);
    for (const [name, cases] of Object.entries(WRONG)) {
      for (const [given, words] of cases) {
        const error = (await threads[name]!(...given).catch((refused: unknown) => refused)) as Error;
        expect(error).toMatchObject({
          code: "INVALID_ARGUMENT",
          message: expect.stringMatching(words),
        });
        expect(error.message).toContain(`the arguments of Threads.${name} are wrong: `);
      }
    }
    expect(await h.tree.log(0)).toEqual(before);
    expect((await h.runtime.threads.list({ state: "any" })).rows).toHaveLength(1);
  });

  test("C3.1 REC-2 what a verb does not take, no method takes either, for the same reason", async () => {
    await using h = await talkative();
    const { id } = h.tree;
    const { threads } = h.runtime;
    await h.tree.close();
    const twice: readonly (readonly [CommandVerb, object, (given: never) => Promise<unknown>])[] = [
      ["continue", { expectedRevision: 0 }, (given) => threads.continue(id, "x", given)],
      ["continue", { effort: "" }, (given) => threads.continue(id, "x", given)],
      ["select", { provider: "", model: "", cleanContext: 1 }, (given) => threads.select(id, given)],
      ["rename", { title: BLANK }, ({ title }) => threads.rename(id, title)],
      ["pin", { section: "decision", text: BLANK }, ({ section, text }) => threads.pin(id, section, text)],
      ["merge_back", { into: "", run: "5" }, (given) => threads.mergeBack(id, given)],
      ["edit_handoff", { text: BLANK }, ({ text }) => threads.editHandoff("hnd_1", text)],
    ];
    const faultsOf = async (refused: Promise<unknown>) => {
      const error = (await refused.catch((thrown: unknown) => thrown)) as {
        details: { faults: { path: string; message: string }[] };
      };
      return error.details.faults.map(({ path, message }) => [path.split(".").at(-1), message]);
    };
    const beside: Readonly<Partial<Record<CommandVerb, object>>> = {
      continue: { thread: id, message: "x" },
      merge_back: { fork: id },
      edit_handoff: { handoff: "hnd_1" },
    };
    for (const [verb, given, method] of twice) {
      const args = { ...(beside[verb] ?? { thread: id }), ...given } as JsonObject;
      const sent = commandTree(h.store, id, verb, args, { clock: h.clock, provenDead: () => true });
      expect([verb, await faultsOf(sent)]).toEqual([verb, await faultsOf(method(given as never))]);
    }
    h.tree = await h.runtime.openTree({ id });
  });

  test("C3.2 continue answers with a work whose outcome can be awaited, the same one for the same key", async () => {
    await using h = await talkative();
    const { threads } = h.runtime;
    const { id } = await threads.create();
    const work = await threads.continue(id, "one", { commandId: "once" });
    expect(work).toBeInstanceOf(Work);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "ok" });
    expect(await work.record()).toMatchObject({ id: work.id, executor: id });
    expect((await threads.continue(id, "one", { commandId: "once" })).id).toBe(work.id);
  });

  test("C3.4 a fork is answered as the thread that it is, with its transfer and its draft", async () => {
    await using h = await talkative();
    const { threads } = h.runtime;
    await h.ask("one");
    const seq = (await h.tree.root.transcript()).find(({ kind }) => kind === "user")!.index + 1;
    const forked = await threads.fork(h.tree.id, { at: { kind: "message", seq }, title: "Again" });
    expect(Object.keys(forked).toSorted()).toEqual(["draft", "thread", "transfer"]);
    expect(forked.thread).toEqual(await threads.get(forked.thread.id));
    expect(forked).toMatchObject({
      thread: { title: "Again", lineage: { parentThreadId: h.tree.id, relationshipToParent: "fork" } },
      transfer: { type: "fork", status: "pending", targetThreadId: forked.thread.id },
      draft: { text: "one" },
    });
    // What a fork would be names no record of the runtime's own either.
    expect(Object.keys(await threads.planFork(h.tree.id)).toSorted()).toEqual([
      "availability",
      "carries",
      "draft",
      "point",
      "title",
    ]);
  });
});
