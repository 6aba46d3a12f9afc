/**
 * `coppice run --resume`: the newest tree that `run` has made, or the one that is named, is run on until its task has an answer.
 * A task that was lost to too many crashes has ended; it is asked for anew, once, and what its agents have found is still there.
 */
import { ROOT_PATH } from "../../protocol/agent-path.ts";
import { CoppiceError } from "../../protocol/errors.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { TreeHandle } from "../../runtime/tree-handle.ts";
import { TreeReader } from "../../runtime/tree-reader.ts";
import type { Work } from "../../runtime/work.ts";
import type { Store } from "../../store/port.ts";
import { allPages } from "../all-pages.ts";
import { CommandError, EXIT } from "../failure.ts";
import { findTree } from "../find-tree.ts";
import { hostOf, isDemo } from "../run-tree.ts";
import { openForWriting, storePlace } from "../store-place.ts";
import type { Terminal } from "../terminal.ts";
import { answerOf, type AnswerOptions, printAnswer } from "./run-answer.ts";
import { waitForWorks, worksToWaitFor } from "./wait-for-works.ts";

const PAGE = 100;
const LOST = "runtime_lost";

interface Options extends AnswerOptions {
  readonly tree?: string;
}

export async function resumeRun(terminal: Terminal, options: Options): Promise<void> {
  const host = await hostOf(options);
  const store = await openForWriting(storePlace(options.store));
  await using _closed = { [Symbol.asyncDispose]: () => store.close() };
  const tree = options.tree === undefined ? await newestRun(store) : await findTree(store, options.tree);
  const [id] = await worksToWaitFor(store, await tree.agent(ROOT_PATH));
  const work = (await store.read((view) => view.work(id!)))!;
  if (work.outcome !== null && work.outcome.ending !== LOST) {
    if (options.json !== true) terminal.note("It had come to its end before; this is its answer.");
    return printAnswer(terminal, store, work.id, options);
  }
  await host.requireRunnable(store, tree);
  const demo = await isDemo(store, tree.id);
  const after = await tree.lastEvent();
  await using runtime = await host.runtime(store, { pace: options.pace, demo });
  const handle = await openedHere(runtime, tree);
  if (handle === null) {
    const owner = await tree.owner();
    terminal.note(`Process ${owner?.pid ?? "?"} runs it already; its answer is awaited here.`);
    await waitForWorks(terminal, store, tree, [work.id], { timeoutMs: Infinity, config: options.config });
    return printAnswer(terminal, store, work.id, options);
  }
  await answerOf(terminal, store, handle, after, options, () => askUntilKept(terminal, store, handle, work));
}

/** Null when another process runs it. */
async function openedHere(runtime: Runtime, { id }: TreeReader): Promise<TreeHandle | null> {
  try {
    return await runtime.openTree({ id });
  } catch (error) {
    if (CoppiceError.is(error) && error.code === "NOT_OWNER") return null;
    throw error;
  }
}

async function askUntilKept(
  terminal: Terminal,
  store: Store,
  tree: TreeHandle,
  { id, requestMailId }: WorkRecord,
): Promise<Work> {
  const { signal } = terminal;
  const work = tree.work(id);
  if ((await work.outcome({ signal })).ending !== LOST) return work;
  terminal.note("It was lost to crashes too often; it is asked for once more.");
  const request = await store.read((view) => view.mail(requestMailId));
  return tree.root.send(request!.content.text, { signal });
}

/** Those that begin their runs anew are of `run` and of the demo, which has a `--resume` of its own. */
async function newestRun(store: Store): Promise<TreeReader> {
  const pages = allPages((after) => store.read((view) => view.treeIds({ limit: PAGE, after })));
  for await (const { rows } of pages) {
    for (const id of rows) {
      const root = await store.read((view) => view.agent(id));
      if (root?.config.onLostRun === "retry" && !(await isDemo(store, id))) return new TreeReader(store, id);
    }
  }
  throw new CommandError(
    EXIT.notFound,
    "AGENT_NOT_FOUND",
    `there is no tree of \`run\` in ${store.name} to go on with; begin one.`,
    'run "…"',
  );
}
