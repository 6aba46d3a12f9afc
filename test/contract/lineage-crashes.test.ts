/**
 * A kill at every write of every command on threads, and after what a provider has done and could not tell: what is stored
 * is the old state or the new one, every promise holds, and the command can be given again (C1.18, C4.13, C5.19, C9.10).
 */
import { describe, expect, test } from "vitest";
import { crashAfter, hang } from "../../src/providers/scripted/native/faults.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import type { StoreView } from "../../src/store/port.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { STORES } from "../support/harness.ts";
import {
  acceptedOf,
  ALL,
  begin,
  type Command,
  facts,
  grown,
  judge,
  killedAtEachWrite,
  type Life,
} from "../support/thread-crashes.ts";

const SCRIPT = { "/root": [repeat(say((context) => `took ${context.inputs.at(-1)}`))] };
const NEW = "thread_000000000000000000001" as ThreadId;

/** A run that takes in a context: with it all or nothing, and nothing is left to be told then. */
function taking(message: string, provider?: string): Pick<Command, "command" | "done" | "none" | "again"> {
  return {
    async command({ h, threads, thread }) {
      await threads.continue(thread, message, provider === undefined ? {} : { provider });
      await (await h.runtime.openTree({ id: thread })).idle();
    },
    done: (view, life) => {
      const [accepted, delivered, consumed] = grown(view, life);
      const status = acceptedOf(view, life).at(-1)?.status;
      return (
        accepted === 1 &&
        delivered! <= 1 &&
        consumed === 1 &&
        (status === "completed" || status === "interrupted")
      );
    },
    none: (view, life) =>
      grown(view, life).every((change) => change === 0) && facts(view, life).selection === null,
    again: (life) => life.talk(message, provider),
  };
}

async function fork(life: Life, strategy: "auto" | "native" | "replay"): Promise<void> {
  life.thread = (await life.threads.fork(life.h.tree.id, { policy: { strategy } })).thread.id;
}

const statuses = (view: StoreView, life: Life) =>
  view
    .runsOf(life.thread, ALL)
    .rows.map(({ status }) => status)
    .join();
const isBack: Command["done"] = (view, life) =>
  statuses(view, life) === "completed,rolled_back" && facts(view, life).rolledBack.length === 1;
const isThere: Command["done"] = (view, life) =>
  statuses(view, life) === "completed,completed" && facts(view, life).rolledBack.length === 0;
const back = (life: Life) => life.threads.rollBack(life.thread, { to: { kind: "ordinal", ordinal: 1 } });

/** Of the transfer of a fork: whether nobody knows what has become of what its provider was asked for. */
const inDoubt: Command["done"] = (view, { thread }) =>
  view.transfersOf(thread, ALL).rows.some(({ type, intent }) => type === "fork" && intent !== null);

const COMMANDS: Readonly<Record<string, Command>> = {
  create: {
    command: ({ threads }) => threads.create({ id: NEW, title: "made" }),
    done: (view) => view.tree(NEW) !== undefined && view.agent(NEW)?.thread?.title === "made",
    none: (view) => view.tree(NEW) === undefined && view.agent(NEW) === undefined,
  },
  "a continue that switches": { before: (life) => life.talk("q1"), ...taking("q2", "other") },
  "a continue that comes back": {
    async before(life) {
      await life.talk("q1");
      await life.talk("q2", "other");
    },
    ...taking("q3", "scripted"),
  },
  "a continue that switches to a loop of its own": {
    before: (life) => life.talk("q1"),
    ...taking("q2", "able"),
    calls: [
      [0, "ensureThread"],
      [0, "startTurn"],
    ],
  },
  "a continue that resumes a loop of its own": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await life.talk("q2", "poor");
      for (const native of life.natives) native.kill();
    },
    ...taking("q3", "able"),
    calls: [
      [0, "resumeThread"],
      [0, "startTurn"],
    ],
  },
  fork: {
    before: (life) => life.talk("q1"),
    command: ({ threads, thread }) => threads.fork(thread, { policy: { requestId: "once" } }),
    done(view) {
      const [child] = view.trees(ALL).rows;
      const { forkedFrom } = view.agent(child!.treeId)!.thread!;
      return view.trees(ALL).rows.length === 2 && view.transfer(forkedFrom!.transferId)?.status === "pending";
    },
    none: (view) => view.trees(ALL).rows.length === 1,
  },
  "the first run of a native fork": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await fork(life, "native");
    },
    ...taking("f1"),
    calls: [
      [0, "forkThread"],
      [0, "startTurn"],
    ],
  },
  "the reconcile of a fork in doubt": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await fork(life, "native");
      life.natives[0]!.fault("forkThread", crashAfter());
      expect(await life.say("f1")).toBe("provider_error");
    },
    command: ({ threads, thread }) => threads.reconcile(thread),
    done: (view, life) => {
      const [native] = view.providerThreadsOf(life.thread);
      return !inDoubt(view, life) && native?.nativeThreadRef !== undefined && native.status === "idle";
    },
    none: (view, life) => inDoubt(view, life) && view.providerThreadsOf(life.thread).length === 0,
    calls: [[0, "findForks"]],
  },
  "the first run of a replay fork": {
    async before(life) {
      await life.talk("q1");
      await fork(life, "replay");
    },
    ...taking("f1"),
  },
  "the run that takes a merge-back in": {
    async before(life) {
      await life.talk("q1");
      await fork(life, "auto");
      await life.talk("f1");
      const child = life.thread;
      life.thread = life.h.tree.id;
      await life.threads.mergeBack(child);
    },
    ...taking("q2"),
  },
  "a rollback": {
    async before(life) {
      await life.talk("q1");
      await life.talk("q2");
    },
    command: back,
    done: isBack,
    none: isThere,
  },
  "a rollback of the provider's own": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await life.talk("q2");
    },
    command: back,
    done: isBack,
    none: isThere,
    calls: [[0, "rollbackThread"]],
  },
  "the undo of a rollback": {
    async before(life) {
      await life.talk("q1");
      await life.talk("q2");
      await back(life);
    },
    command: ({ threads, thread }) => threads.undoRollback(thread),
    done: isThere,
    none: isBack,
  },
  close: {
    before: (life) => life.talk("q1"),
    command: ({ threads, thread }) => threads.close(thread),
    done: (view, { thread }) => view.agent(thread)!.state === "closed",
    none: (view, { thread }) => view.agent(thread)!.state === "open",
  },
  archive: {
    async before(life) {
      await life.talk("q1");
      await life.threads.close(life.thread);
    },
    command: ({ threads, thread }) => threads.archive(thread),
    done: (view, { thread }) => view.agent(thread)!.state === "archived",
    none: (view, { thread }) => view.agent(thread)!.state === "closed",
  },
  "the edit of a handoff": {
    async before(life) {
      await life.talk("q1");
      expect(await life.say("q2", "refuses")).not.toBe("completed");
      life.handoff = await life.h.store.read((view) => view.handoffsOf(life.thread, ALL).rows[0]!.id);
    },
    command: ({ threads, handoff }) => threads.editHandoff(handoff, "as I say"),
    done(view, { thread, handoff }) {
      const [old, mine] = view.handoffsOf(thread, ALL).rows;
      return (
        old!.supersededBy === mine?.id &&
        mine?.status === "ready" &&
        view.handoff(handoff)!.status === "superseded"
      );
    },
    none: (view, { thread }) =>
      view
        .handoffsOf(thread, ALL)
        .rows.map(({ status }) => status)
        .join() === "ready",
  },
};

describe.each(STORES)("crashes in commands on threads on %s", (store) => {
  test.for(Object.keys(COMMANDS))(
    "REC-1 C4.13 C9.10 %s: at each of its writes, before and after it",
    { timeout: 120_000 },
    async (name) => {
      expect(await killedAtEachWrite(store, SCRIPT, name, COMMANDS[name]!)).toBeGreaterThan(1);
    },
  );

  const calls = Object.entries(COMMANDS).flatMap(([name, { calls = [] }]) =>
    calls.map(([provider, method]) => ({ name, provider, method })),
  );
  test.for(calls)(
    "C5.19 C4.13 C9.10 $name: after $method was done and not told",
    async ({ name, provider, method }) => {
      const command = COMMANDS[name]!;
      await using life = await begin(store, SCRIPT, command);
      const native = life.natives[provider]!;
      native.fault(method, hang("done", { done: true }));
      command.command(life).catch(() => undefined);
      await waitUntil("it is done", () => native.gates.waiting("done") > 0);
      await life.crash();
      await judge(life, name, command, `after ${method}`);
    },
  );
});
