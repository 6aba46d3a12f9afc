/** What `signal` means, of every call of the library that is waited for: one meaning everywhere. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import * as index from "../../src/index.ts";
import { ask, fail, repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import type { CallOptions } from "../../src/platform/abortable.ts";
import type { Profile } from "../../src/protocol/profile.ts";
import type { BuiltIn } from "../../src/tools/built-in.ts";
import { followupTask } from "../../src/tools/followup-task.ts";
import { interruptAgent } from "../../src/tools/interrupt-agent.ts";
import { sendMessage } from "../../src/tools/send-message.ts";
import { spawnAgent } from "../../src/tools/spawn-agent.ts";
import { everything } from "../support/everything.ts";
import { type Harness, harness, STORES, type StoreKind } from "../support/harness.ts";
import { look } from "../support/look.ts";

/** What the calls are made on. */
interface Given {
  readonly h: Harness;
  readonly child: index.Agent;
  readonly asking: index.TreeHandle;
  readonly request: index.RequestId;
  readonly hosted: index.TreeHandle;
  readonly token: string;
  readonly work: index.Work;
  readonly connection: index.Connection;
  /** Threads by what is the matter with them. */
  readonly plain: string;
  readonly closed: string;
  readonly fork: string;
  readonly rolled: string;
  readonly drafted: string;
  readonly handoff: string;
}

type Call = (given: Given, options: CallOptions) => Promise<unknown>;
type Calls = Readonly<Record<string, Call>>;

async function prepare(store: StoreKind): Promise<Given> {
  const answers = repeat(({ inputs }: { readonly inputs: readonly string[] }) =>
    inputs.at(-1) === "ask me" ? ask("which one?") : say("ok"),
  );
  const refuses = repeat(() => fail({ code: "PROVIDER_REFUSED", accepted: false }));
  const h = await harness({
    store,
    scripts: { "*": [answers] },
    others: { parrot: scripted({ "*": [refuses] }) },
  });
  const { runtime, tree } = h;
  const { threads } = runtime;
  const { agent: child, work } = await tree.root.spawn("child", "look");
  await work.outcome();
  const asking = await runtime.openTree();
  await asking.root.send("ask me");
  await look(h).until("the question is asked", async () => (await asking.requests()).length === 1);
  const hosted = await runtime.openTree({ hostDriven: true });
  await (await hosted.root.spawn("helper", "look")).work.outcome();
  const token = await hosted.root.token();
  const thread = async (...messages: string[]): Promise<string> => {
    const { id } = await threads.create({ provider: "scripted" });
    for (const message of messages) await (await threads.continue(id, message)).outcome();
    return id;
  };
  const plain = await thread("one", "two");
  const closed = await thread("one");
  await threads.close(closed);
  const fork = (await threads.fork(plain)).thread.id;
  await (await threads.continue(fork, "three")).outcome();
  const rolled = await thread("one", "two");
  await threads.rollBack(rolled, { to: { kind: "ordinal", ordinal: 1 } });
  const items = await (await runtime.openTree({ id: plain })).root.transcript();
  const seq = items.findLast(({ kind }) => kind === "user")!.index + 1;
  const drafted = (await threads.fork(plain, { at: { kind: "message", seq } })).thread.id;
  const refused = await thread("one");
  await (await threads.continue(refused, "two", { provider: "parrot" })).outcome();
  const handoff = (await threads.handoffs(refused)).rows.at(-1)!.id;
  await h.clock.settle();
  const connection = await runtime.actAs(token, { host: "one" });
  const requests = await asking.requests();
  const request = requests[0]!.id;
  const found = { h, child, asking, request, hosted, token, work, connection };
  return { ...found, plain, closed, fork, rolled, drafted, handoff };
}

const USER = { kind: "user", name: "library" } as const;

/** A tool's call by a root that its host drives. */
function called(tool: (profile: Profile) => BuiltIn, input: object): Call {
  return async ({ hosted }, { signal = new AbortController().signal }) => {
    const { control } = hosted;
    const { threadId } = hosted.root;
    const caller = { kind: "agent", threadId, runId: null, step: 0, callId: null } as const;
    await tool(control.tree.profile).call(input, { control, caller, signal, longestWaitMs: null });
  };
}

/** Commands: what they do is stored. */
const COMMANDS: Readonly<Record<string, Calls>> = {
  AgentControl: {
    followUp: ({ h }, options) =>
      h.tree.control.followUp(USER, { target: "/root/child", message: "more" }, options),
  },
  BuiltIn: {
    spawn_agent: called(spawnAgent, { task_name: "new", message: "look", fork_turns: "none" }),
    send_message: called(sendMessage, { target: "helper", message: "a note" }),
    followup_task: called(followupTask, { target: "helper", message: "more" }),
  },
  Runtime: {
    openTree: ({ h }, options) => h.runtime.openTree(options),
  },
  TreeHandle: {
    answer: ({ asking, request }, options) => asking.answer(request, "this one", options),
  },
  Agent: {
    send: ({ h }, options) => h.tree.root.send("hello", options),
    tell: ({ h }, options) => h.tree.root.tell("hello", options),
    spawn: ({ h }, options) => h.tree.root.spawn("other", "look", options),
    token: ({ h }, options) => h.tree.root.token(options),
    interrupt: ({ asking }, options) => asking.root.interrupt(options),
    close: ({ child }, options) => child.close(options),
    raiseBudget: ({ child }, options) => child.raiseBudget("tokens", 5, options),
    usage: ({ hosted }, options) => hosted.root.usage({ inputTokens: 1, outputTokens: 1 }, options),
  },
  Connection: {
    usage: ({ connection }, options) => connection.usage({ inputTokens: 1, outputTokens: 1 }, options),
  },
  Threads: {
    create: ({ h }, options) => h.runtime.threads.create({ title: "new", ...options }),
    editHandoff: ({ h, handoff }, options) => h.runtime.threads.editHandoff(handoff, "text", options),
    regenerateHandoff: ({ h, handoff }, options) => h.runtime.threads.regenerateHandoff(handoff, options),
    continue: ({ h, plain }, options) => h.runtime.threads.continue(plain, "more", options),
    select: ({ h, plain }, options) => h.runtime.threads.select(plain, { provider: "parrot" }, options),
    discardDraft: ({ h, drafted }, options) => h.runtime.threads.discardDraft(drafted, options),
    rename: ({ h, plain }, options) => h.runtime.threads.rename(plain, "other", options),
    close: ({ h, plain }, options) => h.runtime.threads.close(plain, options),
    archive: ({ h, closed }, options) => h.runtime.threads.archive(closed, options),
    pin: ({ h, plain }, options) => h.runtime.threads.pin(plain, "decisions", "line", options),
    fork: ({ h, plain }, options) => h.runtime.threads.fork(plain, options),
    mergeBack: ({ h, fork }, options) => h.runtime.threads.mergeBack(fork, options),
    rollBack: ({ h, plain }, options) =>
      h.runtime.threads.rollBack(plain, { to: { kind: "ordinal", ordinal: 1 }, ...options }),
    undoRollback: ({ h, rolled }, options) => h.runtime.threads.undoRollback(rolled, options),
  },
  functions: {
    commandTree: ({ h, fork }, options) =>
      index.commandTree(
        h.runtime.store,
        fork as index.TreeId,
        "rename",
        { thread: fork, title: "other" },
        {
          clock: h.clock,
          provenDead: () => true,
          claim: false,
          forward: true,
          ...options,
        },
      ),
  },
};

/** None is there; nothing was captured of its workspace. */
const RUN = `run_${"a".repeat(21)}`;

/** All else that is waited for. */
const OTHERS: Readonly<Record<string, Calls>> = {
  BuiltIn: {
    interrupt_agent: called(interruptAgent, { target: "helper" }),
  },
  Runtime: {
    trees: ({ h }, options) => h.runtime.trees(options),
    openPending: ({ h }, options) => h.runtime.openPending(options),
    actAs: ({ h, token }, options) => h.runtime.actAs(token, { host: "one", ...options }),
    close: ({ h }, options) => h.runtime.close(options),
  },
  TreeHandle: {
    agent: ({ h }, options) => h.tree.agent("/root", options),
    list: ({ h }, options) => h.tree.list(options),
    works: ({ h }, options) => h.tree.works(options),
    receipt: ({ h }, options) => h.tree.receipt(`msg_${"a".repeat(21)}`, options),
    inbox: ({ h }, options) => h.tree.inbox(options),
    counts: ({ h }, options) => h.tree.counts(options),
    snapshot: ({ h }, options) => h.tree.snapshot(options),
    log: ({ h }, options) => h.tree.log(0, 500, options),
    idle: ({ h }, options) => h.tree.idle(options),
    requests: ({ h }, options) => h.tree.requests(undefined, options),
    records: ({ h }, options) => h.tree.records(options),
    close: ({ h }, options) => h.tree.close(options),
  },
  Agent: {
    injectMail: ({ hosted }, options) => hosted.root.injectMail(options),
    summary: ({ child }, options) => child.summary(options),
    status: ({ child }, options) => child.status(options),
    record: ({ child }, options) => child.record(options),
    transcript: ({ child }, options) => child.transcript(0, 10, options),
    mail: ({ child }, options) => child.mail(options),
    runs: ({ child }, options) => child.runs(options),
    owed: ({ child }, options) => child.owed(options),
    owes: ({ child }, options) => child.owes(options),
    why: ({ child }, options) => child.why(options),
  },
  Work: {
    record: ({ work }, options) => work.record(options),
    outcome: ({ work }, options) => work.outcome(options),
  },
  Connection: {},
  Threads: {
    preview: ({ h, plain }, options) => h.runtime.threads.preview(plain, { provider: "parrot" }, options),
    planFork: ({ h, plain }, options) => h.runtime.threads.planFork(plain, options),
    reference: ({ h, plain }, options) =>
      h.runtime.threads.reference(plain, { kind: "latest_stable" }, options),
    inject: ({ h }, options) => h.runtime.threads.inject(`xfr_${"a".repeat(21)}`, options),
    checkpoints: ({ h, plain }, options) => h.runtime.threads.checkpoints(plain, options),
    diffCheckpoints: ({ h, plain }, options) =>
      h.runtime.threads.diffCheckpoints(plain, { run: RUN, ...options }),
    restoreCheckpoint: ({ h, plain }, options) =>
      h.runtime.threads.restoreCheckpoint(plain, { run: RUN, ...options }),
    removeCheckpoint: ({ h, plain }, options) => h.runtime.threads.removeCheckpoint(plain, RUN, options),
    list: ({ h }, options) => h.runtime.threads.list({}, options),
    reconcile: ({ h, plain }, options) => h.runtime.threads.reconcile(plain, options),
    show: ({ h, plain }, options) => h.runtime.threads.show(plain, options),
    sync: ({ h, plain }, options) => h.runtime.threads.sync(plain, options),
    history: ({ h, plain }, options) => h.runtime.threads.history(plain, options),
    mirror: ({ h, plain }, options) => h.runtime.threads.mirror(plain, options),
    transcript: ({ h, plain }, options) => h.runtime.threads.transcript(plain, options),
    get: ({ h, plain }, options) => h.runtime.threads.get(plain, options),
    executions: ({ h, plain }, options) => h.runtime.threads.executions(plain, options),
    context: ({ h, plain }, options) => h.runtime.threads.context(plain, options),
    draft: ({ h, plain }, options) => h.runtime.threads.draft(plain, options),
    transfers: ({ h, plain }, options) => h.runtime.threads.transfers(plain, options),
    handoffs: ({ h, plain }, options) => h.runtime.threads.handoffs(plain, options),
    handoff: ({ h, handoff }, options) => h.runtime.threads.handoff(handoff, options),
  },
  functions: {
    openSqliteStore: (_, options) => index.openSqliteStore({ path: "/nowhere/at/all.db", ...options }),
  },
};

/** What waits for nothing that a caller could give up, is a tool's call, or has a signal in another form. */
const WITHOUT = {
  Runtime: [],
  TreeHandle: ["work", "events"],
  Agent: ["tools"],
  Work: [],
  Connection: ["tools", "close"],
  Threads: [],
  functions: [
    "createRuntime",
    "readRoleFolder",
    "answerOpenAICall",
    "answerAnthropicToolUse",
    "answerMcpCall",
  ],
} as const;

const named = (table: Readonly<Record<string, Calls>>): (readonly [string, Call])[] =>
  Object.entries(table).flatMap(([kind, calls]) =>
    Object.entries(calls).map(([name, call]) => [`${kind}.${name}`, call] as const),
  );

describe.each(STORES)("signals of callers on %s", (store) => {
  test("WAI-6 each call that is waited for takes a signal; aborted before, nothing is asked of the store", async () => {
    const given = await prepare(store);
    await using h = given.h;
    const subjects: Record<string, object> = {
      Runtime: h.runtime,
      TreeHandle: h.tree,
      Agent: h.tree.root,
      Work: given.work,
      Connection: given.connection,
    };
    const methodsOf = (prototype: object): string[] =>
      Object.getOwnPropertyNames(prototype).filter(
        (name) =>
          name !== "constructor" &&
          typeof Object.getOwnPropertyDescriptor(prototype, name)!.value === "function",
      );
    const threads = Object.getPrototypeOf(h.runtime.threads) as object;
    const there: Record<string, string[]> = {
      ...Object.fromEntries(
        Object.entries(subjects).map(([kind, of]) => [kind, methodsOf(Object.getPrototypeOf(of) as object)]),
      ),
      Threads: [...methodsOf(threads), ...methodsOf(Object.getPrototypeOf(threads) as object)],
      functions: Object.entries(index).flatMap(([name, value]) =>
        Object.prototype.toString.call(value) === "[object AsyncFunction]" ? [name] : [],
      ),
    };
    for (const [kind, names] of Object.entries(there)) {
      const listed = [COMMANDS[kind] ?? {}, OTHERS[kind]!].flatMap((calls) => Object.keys(calls));
      const without: readonly string[] = WITHOUT[kind as keyof typeof WITHOUT];
      expect([kind, ...[...listed, ...without].toSorted()]).toEqual([kind, ...names.toSorted()]);
    }
    const { writes } = h.faulty;
    const reason = new index.RejectedError("FENCED", "the caller's own words");
    for (const [name, call] of [...named(COMMANDS), ...named(OTHERS)]) {
      const told = await call(given, { signal: AbortSignal.abort(reason) }).catch((error: unknown) => error);
      expect([name, told]).toEqual([name, reason]);
    }
    expect(h.faulty.writes).toBe(writes);
    expect(h.tree.owned).toBe(true);
  });

  test("WAI-6 no call leaves a listener at a signal that lives on", async () => {
    const given = await prepare(store);
    await using _ = given.h;
    const { signal } = new AbortController();
    for (const [name, call] of [...named(COMMANDS), ...named(OTHERS)]) {
      if (name.endsWith(".close") || name.startsWith("functions.")) continue;
      const refused = await call(given, { signal }).then(
        () => null,
        (error: { readonly code: string }) => error.code,
      );
      // It was taken, whatever was thought of the rest.
      expect([name, refused]).not.toEqual([name, "INVALID_ARGUMENT"]);
      expect([name, getEventListeners(signal, "abort").length]).toEqual([name, 0]);
    }
  });

  test("MBX-1 WAI-6 a command whose caller leaves before its commit rejects at once, and nothing is done", async () => {
    const given = await prepare(store);
    await using h = given.h;
    const before = await everything(h.store);
    for (const [name, call] of named(COMMANDS)) {
      // Its row is what it asks of the store, and is in it then.
      if (name === "functions.commandTree") continue;
      const asked = Promise.withResolvers<void>();
      h.onWrite = () => {
        asked.resolve();
        return { kind: "hang" };
      };
      const caller = new AbortController();
      const calling = call(given, { signal: caller.signal }).catch((error: unknown) => error);
      await asked.promise;
      caller.abort(name);
      expect(await calling).toBe(name);
      h.onWrite = () => null;
      h.faulty.resume();
      await h.clock.settle();
      expect([name, await everything(h.store)]).toEqual([name, before]);
    }
    expect(h.tree.owned).toBe(true);
  });

  test.each(named(COMMANDS))(
    "MBX-1 WAI-6 a caller who leaves after the commit waits no more, and what was committed holds: %s",
    async (name, call) => {
      const given = await prepare(store);
      await using h = given.h;
      const before = await everything(h.store);
      const committed = Promise.withResolvers<void>();
      let held = false;
      h.onWrite = (_, kind) => {
        if (held || (kind !== "commit" && kind !== "command")) return null;
        held = true;
        committed.resolve();
        return { kind: "hang_after" };
      };
      const caller = new AbortController();
      const calling = call(given, { signal: caller.signal }).catch((error: unknown) => error);
      await committed.promise;
      await h.clock.settle();
      caller.abort(name);
      expect(await calling).toBe(name);
      h.faulty.resume();
      await h.clock.settle();
      expect(await everything(h.store)).not.toEqual(before);
      expect(h.tree.owned).toBe(true);
    },
  );
});
