/**
 * Threads: what must not grow with how long a thread is, how many there are, or how often it has changed its provider. Each
 * scene is the same work over few and over many; long threads are rows that are put straight into the store.
 */
import { type Coppice, coppice, type StoreKind } from "../contenders/coppice.ts";
import type { Metrics } from "../lib/measure.ts";
import { costRatio } from "../lib/growth.ts";
import { newAgent } from "../../src/control/new-agent.ts";
import { createIds, systemRandom } from "../../src/platform/ids.ts";
import { ROOT_PATH } from "../../src/protocol/agent-path.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import type { RunRecord } from "../../src/protocol/run.ts";
import type { ItemBody } from "../../src/protocol/transcript.ts";

/** The same work over few and over many. */
export interface Scene extends AsyncDisposable {
  readonly few: () => Promise<void>;
  readonly many: () => Promise<void>;
}

const ids = createIds(systemRandom);
const PORTION = 1000;
const ITEMS_A_RUN = 2;

/** A thread that has one run, and more runs like it as rows, so that it has so many items. */
async function longThread(c: Coppice, items: number): Promise<ThreadId> {
  const tree = await c.runtime.openTree({});
  await (await tree.root.send("be there")).outcome();
  await lengthen(c, tree.id, items);
  return tree.id;
}

/** Runs as rows at the end of a thread that has one already; a fork gets its first from the thread it was forked from. */
async function lengthen(c: Coppice, threadId: ThreadId, items: number, like = threadId): Promise<void> {
  const { lease } = c.tree.control.tree;
  const pattern = (await c.store.read((view) => view.runAt(like, 1)))!;
  for (;;) {
    const left = await c.store.commit(lease, (tx) => {
      const agent = tx.agent(threadId)!;
      const runs = Math.min(PORTION, Math.ceil((items - agent.items) / ITEMS_A_RUN));
      for (let at = 0; at < runs; at += 1) {
        const firstItem = agent.items + at * ITEMS_A_RUN;
        const run = runLike(pattern, { threadId, ordinal: agent.runs + at + 1, firstItem });
        tx.putRun(run);
        tx.appendItems(
          threadId,
          firstItem,
          said(firstItem).map((body) => ({ ...body, runId: run.id, step: 1, at: firstItem })),
        );
      }
      const all = agent.runs + runs;
      tx.putAgent({
        ...agent,
        runs: all,
        items: agent.items + runs * ITEMS_A_RUN,
        revision: agent.revision + 1,
        currentRun: null,
      });
      const active = tx.providerThreadsOf(threadId)[0];
      if (active !== undefined) tx.putProviderThread({ ...active, nativeRunOrdinals: [[1, all]] });
      return items - agent.items - runs * ITEMS_A_RUN;
    });
    if (left <= 0) return;
  }
}

function runLike(pattern: RunRecord, more: Pick<RunRecord, "threadId" | "ordinal" | "firstItem">): RunRecord {
  const id = ids.mint("run");
  const checkpoint = { ...pattern.checkpoint!, id: `ckp_${id.slice("run_".length)}` as const };
  return { ...pattern, ...more, treeId: more.threadId, id, checkpoint };
}

function said(at: number): readonly ItemBody[] {
  return [
    { kind: "user", text: `question ${at}`, mailId: null, workId: null, inherited: false },
    {
      kind: "assistant",
      phase: "answer",
      parts: [{ type: "text", text: `answer ${at}` }],
      model: null,
      inherited: false,
    },
  ];
}

const FEW_ITEMS = 10;
const MANY_ITEMS = 10_000;
const FORKS = 150;

/** Forks of a thread with ten items and of one with ten thousand: at its newest run, and before a message in its middle. */
export async function forkScene(store: StoreKind): Promise<Scene> {
  const c = await coppice({ store });
  const short = await longThread(c, FEW_ITEMS);
  const long = await longThread(c, MANY_ITEMS);
  const fork = async (id: ThreadId, items: number): Promise<void> => {
    for (let at = 0; at < FORKS; at += 1) {
      await c.runtime.threads.fork(id);
      await c.runtime.threads.fork(id, { at: { kind: "message", seq: items / 2 } });
    }
  };
  return {
    few: () => fork(short, FEW_ITEMS),
    many: () => fork(long, MANY_ITEMS),
    [Symbol.asyncDispose]: () => c[Symbol.asyncDispose](),
  };
}

const ANCESTORS = 25;
const TRANSCRIPT_ITEMS = 5200;
const PAGE = 50;
const FIRST_PAGES = 2000;
const WALKS = 15;

/** The same number of items behind one fork, and behind a line of twenty-five. */
export async function transcriptScene(store: StoreKind, read: "first page" | "all"): Promise<Scene> {
  const c = await coppice({ store });
  const near = await lineOf(c, 1);
  const far = await lineOf(c, ANCESTORS);
  const page = async (id: ThreadId): Promise<void> => {
    for (let at = 0; at < FIRST_PAGES; at += 1) await c.runtime.threads.transcript(id, { limit: PAGE });
  };
  const walk = async (id: ThreadId, ancestors: number): Promise<void> => {
    let before: string | null = null;
    let items = 0;
    do {
      const found: Awaited<ReturnType<typeof c.runtime.threads.transcript>> =
        await c.runtime.threads.transcript(id, { limit: PAGE, ...(before === null ? {} : { before }) });
      items += found.entries.filter(({ kind }) => kind === "item").length;
      ({ before } = found);
    } while (before !== null);
    const expected = Math.floor(TRANSCRIPT_ITEMS / (ancestors + 1) / ITEMS_A_RUN) * ITEMS_A_RUN;
    if (items < expected * (ancestors + 1)) throw new Error(`a walk has seen ${items} items`);
  };
  const walks = async (id: ThreadId, ancestors: number): Promise<void> => {
    for (let at = 0; at < WALKS; at += 1) await walk(id, ancestors);
  };
  return {
    few: () => (read === "all" ? walks(near, 1) : page(near)),
    many: () => (read === "all" ? walks(far, ANCESTORS) : page(far)),
    [Symbol.asyncDispose]: () => c[Symbol.asyncDispose](),
  };
}

/** The last fork of a line; each thread of it has an equal part of the items. */
async function lineOf(c: Coppice, ancestors: number): Promise<ThreadId> {
  const each = Math.ceil(TRANSCRIPT_ITEMS / (ancestors + 1) / ITEMS_A_RUN) * ITEMS_A_RUN;
  const first = await longThread(c, each);
  let last = first;
  for (let at = 0; at < ancestors; at += 1) {
    const { thread } = await c.runtime.threads.fork(last);
    last = thread.id;
    await lengthen(c, last, each, first);
  }
  return last;
}

const LISTS = 400;
const LISTED = 100;

/** The first page of a list of threads, of a thousand and of so many more. */
export async function listScene(store: StoreKind, more: number, count = 1000): Promise<Scene> {
  const few = await coppice({ store });
  const many = await coppice({ store });
  await registerThreads(few, count);
  await registerThreads(many, count * more);
  const list = async (c: Coppice): Promise<void> => {
    for (let at = 0; at < LISTS; at += 1) {
      const filter = at % 2 === 0 ? {} : { workspace: "/work/a" };
      const { rows } = await c.runtime.threads.list(filter, { limit: LISTED });
      if (rows.length !== LISTED) throw new Error(`a page has ${rows.length} threads`);
    }
  };
  return {
    few: () => list(few),
    many: () => list(many),
    async [Symbol.asyncDispose]() {
      await few[Symbol.asyncDispose]();
      await many[Symbol.asyncDispose]();
    },
  };
}

/** Threads that never had a run, as rows; every other one in a workspace of its own. */
async function registerThreads(c: Coppice, count: number): Promise<void> {
  const { tree } = c.tree.control;
  const { config } = await c.tree.root.record();
  const known = await c.store.read((view) => view.tree(tree.treeId)!);
  for (let from = 0; from < count; from += PORTION) {
    await c.store.commit(tree.lease, (tx) => {
      for (let at = from; at < Math.min(from + PORTION, count); at += 1) {
        const threadId = ids.mint("thread");
        const lineage = { parentThreadId: null, relationshipToParent: null, rootThreadId: threadId };
        tx.putTree({ ...known, treeId: threadId, createdAt: at });
        tx.putAgent(
          newAgent({
            threadId,
            treeId: threadId,
            path: ROOT_PATH,
            parent: null,
            depth: 0,
            config: { ...config, workspace: at % 2 === 0 ? "/work/a" : "/work/b" },
            tokenDigest: threadId,
            createdAt: at,
            createdBy: "user",
            thread: { lineage },
          }),
        );
      }
    });
  }
}

const RUNS = 1000;
const COMPARED = 100;

/** One thread, one run after the other: the last hundred of a thousand beside the first hundred of others. */
export async function runScene(store: StoreKind, runs = RUNS): Promise<Scene> {
  const c = await coppice({ store });
  const ask = async (agent: typeof c.tree.root, count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1) await (await agent.send(`question ${at}`)).outcome();
  };
  const { root } = await c.runtime.openTree({});
  await ask(root, runs - COMPARED);
  return {
    async few() {
      await ask((await c.runtime.openTree({})).root, COMPARED);
    },
    many: () => ask(root, COMPARED),
    [Symbol.asyncDispose]: () => c[Symbol.asyncDispose](),
  };
}

const OTHERS = ["b", "c", "d", "e"];
const ROUND = 50;

/** As `runScene`, with every run on the next of five providers: each is told what it has missed. */
export async function switchScene(store: StoreKind, runs: number): Promise<Scene> {
  const c = await coppice({ store, others: OTHERS });
  const names = ["scripted", ...OTHERS];
  const ask = async (agent: typeof c.tree.root, count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1)
      await (await agent.send(`question ${at}`, { provider: names[at % names.length]! })).outcome();
  };
  const { root } = await c.runtime.openTree({});
  await ask(root, runs - ROUND);
  return {
    async few() {
      await ask((await c.runtime.openTree({})).root, ROUND);
    },
    many: () => ask(root, ROUND),
    [Symbol.asyncDispose]: () => c[Symbol.asyncDispose](),
  };
}

/** What a scene costs over many, relative to over few. */
export async function compare(scene: Scene | Promise<Scene>): Promise<Metrics> {
  await using opened = await scene;
  return { ratio: await costRatio(opened.few, opened.many) };
}
