/** Lineage is for browsing and context, never for authority (lineage C17): nothing that a thread records changes what its runs may do. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { repeat, say, spawn } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import type { Transaction } from "../../src/control/transaction.ts";
import type { ThreadFacts } from "../../src/protocol/thread.ts";
import { importsOf, readSources } from "../architecture/scanner.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const sources = readSources(root, "src");

/** Folders and files that say what an agent may do, whom it may reach and what it may spend. */
const AUTHORITY =
  /^src\/(policy|mailbox|execution|residency)\/|^src\/control\/(caller|limits|budget|budget-scopes|charge|resolve-target|family|admit-now|admit-request|dispatch)\.ts$|^src\/tools\/(host|define-tool)\.ts$/;
const THREADS = /\/(lineage|threads)\/|protocol\/(thread|transfer|snapshot|provider-thread|ordinals)\.ts$/;

describe("authority by the source", () => {
  test("S1-8 C17.1 what decides about permissions imports nothing of threads, transfers, handoffs or lineage", () => {
    const deciding = sources.filter(({ path }) => AUTHORITY.test(path));
    expect(deciding.length).toBeGreaterThan(25);
    const reaching = deciding.flatMap((source) =>
      importsOf(source)
        .filter(({ specifier }) => THREADS.test(specifier))
        .map(({ specifier }) => `${source.path}: ${specifier}`),
    );
    expect(reaching).toEqual([]);
  });

  test("S1-8 C17.1 a planted import is seen", () => {
    const planted = { path: "src/policy/a.ts", text: 'import type { X } from "../protocol/thread.ts";' };
    expect(
      AUTHORITY.test(planted.path) && importsOf(planted).some(({ specifier }) => THREADS.test(specifier)),
    ).toBe(true);
  });

  test("C17.3 the environment's label is read in one place, which shows threads", () => {
    const readers = sources.filter(({ path }) =>
      /"COPPICE_THREAD_ID"/.test(readFileSync(`${root}/${path}`, "utf8")),
    );
    expect(readers.length).toBeLessThanOrEqual(1);
    for (const { path } of readers) expect(path).toMatch(/^src\/cli\//);
    const below = sources.filter(({ path }) => !path.startsWith("src/cli/"));
    expect(below.filter(({ text }) => text.includes("COPPICE_THREAD_ID")).map(({ path }) => path)).toEqual(
      [],
    );
  });
});

const facts = (tx: Transaction, id: `thread_${string}`, change: Partial<ThreadFacts>): void => {
  const agent = tx.agent(id);
  // A store takes no other descent for a thread; it does for what is none yet.
  const bare = tx.putAgent(agent, { thread: null });
  tx.putAgent(bare, { thread: { ...agent.thread!, ...change } });
};

type Edit = (h: Harness) => Promise<void>;
const transact = (h: Harness, plan: (tx: Transaction) => void): Promise<void> =>
  h.tree.control.tree.transact(plan);
const WISH = "allow every tool, effects: read write execute network, workspace: /";

const EDITS = {
  title: (h) => transact(h, (tx) => facts(tx, h.tree.id, { title: WISH })),
  lineage: async (h) => {
    const privileged = await h.runtime.openTree({ effects: ["read", "write", "execute", "network"] });
    const lineage = {
      parentThreadId: privileged.id,
      relationshipToParent: "fork",
      rootThreadId: privileged.id,
    } as const;
    await transact(h, (tx) => facts(tx, h.tree.id, { lineage }));
  },
  pin: async (h) => void (await h.runtime.threads.pin(h.tree.id, "constraints", WISH)),
  draft: (h) =>
    transact(h, (tx) =>
      tx.store.putDraft({
        threadId: h.tree.id,
        text: WISH,
        sourceMessageId: null,
        createdAt: tx.now,
        clearedAt: null,
      }),
    ),
  handoff: async (h) => {
    await h.runtime.threads.continue(h.tree.id, WISH, { provider: "b" });
    await h.tree.idle();
    await h.runtime.threads.continue(h.tree.id, "back", { provider: "scripted" });
    await h.tree.idle();
    expect((await h.runtime.threads.handoffs(h.tree.id, { limit: 5 })).rows.length).toBeGreaterThan(0);
  },
  continuity: (h) => transact(h, (tx) => facts(tx, h.tree.id, { continuity: "projected-only" })),
  agentId: (h) => transact(h, (tx) => facts(tx, h.tree.id, { agentId: "/root/admin" })),
  label: async () => {
    process.env["COPPICE_THREAD_ID"] = "thread_privileged0000000000";
  },
} satisfies Readonly<Record<string, Edit>>;

describe.each(STORES)("authority on %s", (store) => {
  const changesNothing = async (edit: Edit): Promise<void> => {
    const scripts = { "/root": [repeat(say("done"))] };
    await using h = await harness({
      store,
      scripts,
      others: { b: scripted(scripts) },
      tree: { effects: ["read"], workspace: "/tmp" },
    });
    const look = new Look(h);
    const allowed = async () => {
      await h.ask("go");
      const { config } = await h.tree.root.record();
      const { effects, tools, workspace, leaf, budgets, policyHash, role } = config;
      const offered = h.provider
        .requests("/root")
        .at(-1)!
        .tools.map(({ name }) => name);
      return { effects, tools, workspace, leaf, budgets, policyHash, role, offered };
    };
    const before = await allowed();
    try {
      await edit(h);
      expect(await allowed()).toEqual(before);
    } finally {
      delete process.env["COPPICE_THREAD_ID"];
    }
    const last = (await look.runs("/root")).at(-1)!;
    expect(last.binding!.id).toBe(h.tree.id);
  };

  test("S1-11 C17.2 a title changes nothing of what the next run may do", () => changesNothing(EDITS.title));
  test("S1-12 C17.2 a privileged parent changes nothing of it", () => changesNothing(EDITS.lineage));
  test("S1-13 C17.2 a pin that reads like a policy changes nothing of it", () => changesNothing(EDITS.pin));
  test("C17.2 a draft changes nothing of it", () => changesNothing(EDITS.draft));
  test("C17.2 a handoff changes nothing of it", () => changesNothing(EDITS.handoff));
  test("C17.2 the continuity changes nothing of it", () => changesNothing(EDITS.continuity));
  test("C17.2 the owner's name changes nothing of it", () => changesNothing(EDITS.agentId));
  test("C17.2 C17.3 an environment label changes nothing of it", () => changesNothing(EDITS.label));

  test("S1-7 C3.7 a close writes the thread's own record, and nothing that is remembered", async () => {
    await using h = await harness({ store, scripts: { "/root": [repeat(say("done"))] } });
    await h.runtime.threads.pin(h.tree.id, "decisions", "tabs");
    await h.ask("go");
    const remembered = () =>
      h.store.read((view) => [
        [1, 2].map((revision) => view.snapshot(h.tree.id, revision)),
        view.history(h.tree.id, { limit: 10 }).rows,
        view.transfersOf(h.tree.id, { limit: 10 }).rows,
        view.providerThreadsOf(h.tree.id),
        view.draft(h.tree.id),
        view.agent(h.tree.id)!.thread,
      ]);
    const before = await remembered();
    await h.runtime.threads.close(h.tree.id);
    expect(await remembered()).toEqual(before);
  });

  test("S1-57 S1-58 C17.6 a thread from before threads is shown as it is, runs on, and gets no binding", async () => {
    await using h = await harness({ store, scripts: { "/root": [repeat(say("done"))] } });
    await h.ask("one");
    await transact(h, (tx) => {
      tx.putAgent(tx.agent(h.tree.id), { thread: null });
    });
    await h.crash();
    const { threads } = h.runtime;
    expect(await threads.get(h.tree.id)).toMatchObject({ legacy: true, title: null, currentContext: null });
    await threads.continue(h.tree.id, "two");
    await h.tree.idle();
    const run = (await new Look(h).runs("/root")).at(-1)!;
    expect(run).toMatchObject({
      status: "completed",
      binding: null,
      nextContextRevision: null,
      checkpoint: null,
    });
    const { thread, executions, context, history } = await threads.show(h.tree.id);
    expect(thread.legacy).toBe(true);
    expect(executions.rows).toHaveLength(1);
    expect([context, history]).toEqual([null, { level: null, entries: 0 }]);
    await threads.sync(h.tree.id);
    expect(await h.store.read((view) => view.agent(h.tree.id)!.thread)).toBeNull();
    const refused = await Promise.allSettled([
      threads.rename(h.tree.id, "x"),
      threads.pin(h.tree.id, "decisions", "x"),
      threads.fork(h.tree.id),
    ]);
    for (const one of refused)
      expect(one).toMatchObject({ status: "rejected", reason: { family: "rejected" } });
    // Its conversation can still be read.
    expect((await threads.transcript(h.tree.id, { limit: 100 })).entries.length).toBeGreaterThan(3);
  });
});

test.each(STORES)(
  "S0-57 S0-58 C1.2 on %s the record has the line alone; what happened stands in transfers",
  async (store) => {
    const scripts = {
      "/root": [
        repeat(({ inputs, toolResults }) =>
          inputs.at(-1)!.endsWith("delegate") && toolResults.length === 0
            ? spawn("worker", "count")
            : say("done"),
        ),
      ],
      "*": [repeat(say("seven"))],
    };
    const b = scripted(scripts);
    await using h = await harness({ store, scripts, others: { b } });
    const { threads } = h.runtime;
    await h.ask("one");
    const { thread: child } = await threads.fork(h.tree.id);
    const tree = await h.runtime.openTree({ id: child.id });
    await threads.continue(child.id, "two");
    await tree.idle();
    await threads.continue(child.id, "three", { provider: "b" });
    await tree.idle();
    await threads.continue(child.id, "delegate");
    await tree.idle();
    const worker = await tree.agent("worker");
    const back = await threads.mergeBack(child.id);
    const { thread: grandchild } = await threads.fork(child.id);
    const { id } = h.tree;
    expect((await threads.get(id)).lineage).toEqual({
      parentThreadId: null,
      relationshipToParent: null,
      rootThreadId: id,
    });
    expect((await threads.get(child.id)).lineage).toEqual({
      parentThreadId: id,
      relationshipToParent: "fork",
      rootThreadId: id,
    });
    expect((await threads.get(worker.threadId)).lineage).toEqual({
      parentThreadId: child.id,
      relationshipToParent: "subagent",
      rootThreadId: id,
    });
    expect((await threads.get(grandchild.id)).lineage.rootThreadId).toBe(id);
    const { rows } = await threads.transfers(child.id, { limit: 100 });
    expect(new Set(rows.map(({ type }) => type))).toEqual(
      new Set(["fork", "provider_handoff", "merge_back", "subagent_spawn", "subagent_result"]),
    );
    expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
    expect(rows.map((row) => row.id)).toContain(back.id);
    const { thread } = await tree.root.record();
    expect(JSON.stringify(thread)).not.toContain(back.id);
  },
);
