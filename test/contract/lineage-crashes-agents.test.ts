/**
 * A kill at every write of the commands that change what a thread is to be told or is called, and of what agents do with threads
 * of other trees: the old state or the new one, and nothing twice when it is given again (C3, C8.9, XTR-1).
 */
import { describe, expect, test } from "vitest";
import type { ScriptContext } from "../../src/providers/scripted/context.ts";
import { refuse } from "../../src/providers/scripted/native/faults.ts";
import { call, gate, say, type ScriptedStep, spawn, together } from "../../src/providers/scripted/script.ts";
import { RejectedError } from "../../src/protocol/errors.ts";
import type { StoreView } from "../../src/store/port.ts";
import { STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";
import { ALL, type Command, facts, killedAtEachWrite, type Life } from "../support/thread-crashes.ts";

/** Calls what it is told to call, and says what it took otherwise. */
function root({ inputs }: ScriptContext): ScriptedStep {
  const asked = inputs.at(-1) ?? "nothing";
  const [, tool, id = ""] = /^call (\w+) ?(\S*)$/.exec(asked) ?? [];
  switch (tool) {
    case "create_thread":
      return call(tool, { threads: [{ message: "hello", title: "made" }] });
    case "send_message_to_thread":
      return call(tool, { thread_id: id, message: "hello" });
    case "fork_thread":
      return call(tool, {});
    case "merge_back":
      return call(tool, { fork_thread_id: id });
    case "spawn_agent":
      return spawn("late", "dig", { fork_turns: "none" });
    default:
      return say(`took ${asked}`);
  }
}
const SCRIPTS = { "/root": root, "/root/late": [together(gate("dig"), say("found it"))] };

async function forked(life: Life): Promise<void> {
  await life.talk("q1");
  life.other = (await life.threads.fork(life.thread)).thread.id;
  await life.talk("f1", undefined, life.other);
}

async function refused(life: Life): Promise<void> {
  await life.talk("q1");
  expect(await life.say("q2", "refuses")).not.toBe("completed");
  life.handoff = await life.h.store.read((view) => view.handoffsOf(life.thread, ALL).rows[0]!.id);
}

const handoffs = (view: StoreView, { thread }: Life) =>
  view
    .handoffsOf(thread, ALL)
    .rows.map(({ status }) => status)
    .join();
const merges = (view: StoreView, { thread }: Life): number =>
  view.transfersOf(thread, ALL).rows.filter(({ type }) => type === "merge_back").length;
const trees = (view: StoreView): number => view.trees(ALL).rows.length;
const historyOf = (view: StoreView, { thread }: Life) => view.runAt(thread, 1)!.history?.level;
const pins = (view: StoreView, life: Life): string =>
  facts(view, life)
    .pins.map(({ text }) => text)
    .join();

/** A run of the root that calls a tool. */
function calling(tool: string, about: (life: Life) => string = () => ""): Pick<Command, "command" | "again"> {
  const message = (life: Life): string => `call ${tool} ${about(life)}`.trim();
  return {
    async command(life) {
      await life.threads.continue(life.thread, message(life));
      await (await life.h.runtime.openTree({ id: life.thread })).idle();
    },
    again: (life) => life.talk(message(life)),
  };
}

const COMMANDS: Readonly<Record<string, Command>> = {
  "a merge-back": {
    before: forked,
    command: ({ threads, other }) => threads.mergeBack(other),
    done: (view, life) => merges(view, life) === 1,
    none: (view, life) => merges(view, life) === 0,
  },
  "a handoff that is written anew": {
    before: refused,
    command: ({ threads, handoff }) => threads.regenerateHandoff(handoff),
    done: (view, life) => handoffs(view, life) === "superseded,ready",
    none: (view, life) => handoffs(view, life) === "ready",
  },
  "a choice of provider": {
    before: (life) => life.talk("q1"),
    command: ({ threads, thread }) => threads.select(thread, { provider: "other" }),
    done: (view, life) => facts(view, life).selection?.provider === "other",
    none: (view, life) => facts(view, life).selection === null,
  },
  "a pin": {
    before: (life) => life.talk("q1"),
    command: ({ threads, thread }) => threads.pin(thread, "decisions", "port 8080"),
    done: (view, life) => pins(view, life) === "port 8080",
    none: (view, life) => pins(view, life) === "",
  },
  "another title": {
    before: (life) => life.talk("q1"),
    command: ({ threads, thread }) => threads.rename(thread, "another"),
    done: (view, life) => facts(view, life).title === "another",
    none: (view, life) => facts(view, life).title === null,
  },
  "a history that is read again": {
    on: "able",
    async before(life) {
      const [able] = life.natives;
      able!.fault("readThread", refuse(new RejectedError("PROVIDER_REFUSED", "not today", {})));
      await life.talk("q1");
    },
    command: ({ threads, thread }) => threads.sync(thread),
    done: (view, life) => historyOf(view, life) === "complete",
    none: (view, life) => historyOf(view, life) === "final-only",
  },
  "a result that is brought in": {
    async before(life) {
      const look = new Look(life.h);
      await life.talk("q1");
      await life.threads.continue(life.thread, "call spawn_agent");
      await look.until("it waits", async () => (await look.status("/root")) === "awaiting_children");
      await life.threads.rollBack(life.thread, { to: { kind: "ordinal", ordinal: 1 } });
      life.h.provider.gates.open("dig");
      await life.rest();
      life.transfer = (await look.transfers("subagent_result"))[0]!.id;
    },
    command: ({ threads, transfer }) => threads.inject(transfer),
    done: (view, { transfer }) => view.transfer(transfer)?.staleBase === false,
    none: (view, { transfer }) => view.transfer(transfer)?.staleBase === true,
  },
  "an agent's create_thread": {
    ...calling("create_thread"),
    done: (view, life) => {
      const made = view.trees(ALL).rows.map(({ treeId }) => treeId);
      const [other] = made.filter((id) => id !== life.thread);
      return made.length === 2 && view.mailOf(other!, ALL).rows.length === 1;
    },
    none: (view) => trees(view) === 1,
  },
  "an agent's send_message_to_thread": {
    async before(life) {
      life.other = (await life.threads.create({ provider: "scripted" })).id;
    },
    ...calling("send_message_to_thread", ({ other }) => other),
    done: (view, { other }) => view.mailOf(other, ALL).rows.length === 1,
    none: (view, { other }) => view.mailOf(other, ALL).rows.length === 0,
  },
  "an agent's fork_thread": {
    before: (life) => life.talk("q1"),
    ...calling("fork_thread"),
    done: (view, life) => {
      const other = view.trees(ALL).rows.find(({ treeId }) => treeId !== life.thread);
      return trees(view) === 2 && view.pendingTransfersTo(other!.treeId).length === 1;
    },
    none: (view) => trees(view) === 1,
  },
  "an agent's merge_back": {
    before: forked,
    ...calling("merge_back", ({ other }) => other),
    done: (view, life) => merges(view, life) === 1,
    none: (view, life) => merges(view, life) === 0,
  },
};

describe.each(STORES)("crashes in commands on threads on %s", (store) => {
  test.for(Object.keys(COMMANDS))(
    "REC-1 C3.12 XTR-1 %s: at each of its writes, before and after it",
    { timeout: 120_000 },
    async (name) => {
      expect(await killedAtEachWrite(store, SCRIPTS, name, COMMANDS[name]!)).toBeGreaterThan(1);
    },
  );
});
