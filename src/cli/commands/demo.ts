/**
 * `coppice demo`, which `npm start` runs: a tree of agents looks through a folder and answers. It can be killed at any time;
 * `--resume` goes on with what is stored and ends with the same answer, each work done once.
 */
import { type Command, Option } from "commander";
import { systemClock } from "../../platform/clock.ts";
import { CoppiceError } from "../../protocol/errors.ts";
import type { WorkOutcome } from "../../protocol/work.ts";
import { loadModel } from "../../providers/model/load-model.ts";
import { TreeReader } from "../../runtime/tree-reader.ts";
import type { TreeHandle } from "../../runtime/tree-handle.ts";
import type { Store } from "../../store/port.ts";
import { openSqliteStore } from "../../store/sqlite.ts";
import { type FoundDemo, newestDemo } from "../demo/find-demo.ts";
import { Folder } from "../demo/folder.ts";
import { DEMO_ASK, DEMO_RESIDENTS, DEMO_TITLE, ROOT_INSTRUCTIONS } from "../demo/job.ts";
import { badUse } from "../failure.ts";
import { Host, MODEL } from "../run-tree.ts";
import { commandLine } from "../screen/command-line.ts";
import { createShow, type Show } from "../screen/show.ts";
import { newStorePlace } from "../store-place.ts";
import type { Terminal } from "../terminal.ts";
import { paceOption } from "./commanding.ts";
import { watchDemo } from "./demo-elsewhere.ts";
import { printEnd, printStart } from "./demo-report.ts";
import { notBlank, type StoreOptions, withStore } from "./options.ts";

export interface DemoOptions extends StoreOptions {
  readonly dir?: string;
  readonly resume?: boolean;
  readonly model?: string;
  readonly profile?: "default" | "codex";
  readonly pace: number;
}

/** Above what the job takes, below what a model could spend by mistake. */
const MOST_TOKENS = 2_000_000;

export function addDemo(program: Command, terminal: Terminal): void {
  withStore(program.command("demo"), {
    json: "NDJSON, an event a line; the first and the last are about the demo",
    example: "demo --dir ../elsewhere",
  })
    .description("watch a tree of agents look through a folder; scripted, needs no key and no network")
    .option("--dir <folder>", "the folder that it reads; nothing outside of it")
    .option("--resume", "go on with the newest one, after an interrupt or a crash")
    .option("--model <vendor/name>", "a real model, such as openai/gpt-5, through the AI SDK", notBlank)
    .addOption(new Option("--profile <name>", "the rules of the tree").choices(["default", "codex"]))
    .addOption(paceOption())
    .action((options: DemoOptions) => demo(terminal, options));
}

async function demo(terminal: Terminal, options: DemoOptions): Promise<void> {
  checkOptions(options);
  const folder = new Folder(options.dir ?? ".");
  if (options.model !== undefined) loadModel(options.model, process.env);
  const store = await openSqliteStore({ path: newStorePlace(options.store).path });
  try {
    const found = options.resume === true ? await newestDemo(store) : null;
    if (options.resume === true && found === null) {
      terminal.note("There is nothing to go on with in this store; a new one begins.");
    }
    const run: DemoRun = { terminal, store, options, dir: found?.dir ?? folder.path, found };
    const ended = (await alreadyEnded(run)) ?? (await runHere(run)) ?? (await runElsewhere(run));
    await printEnd(terminal, store, ended.reader, ended.outcome, ended.startedAt, options.json === true);
  } finally {
    await store.close();
  }
}

/** One call of the command. */
export interface DemoRun {
  readonly terminal: Terminal;
  readonly store: Store;
  readonly options: DemoOptions;
  readonly dir: string;
  readonly found: FoundDemo | null;
}

export interface DemoEnd {
  readonly reader: TreeReader;
  readonly outcome: WorkOutcome;
  readonly startedAt: number;
}

function checkOptions(options: DemoOptions): void {
  if (options.dir?.trim() === "") throw badUse("--dir is blank; give the folder to look through.");
  if (options.resume !== true) return;
  const given = (["dir", "model", "profile"] as const).filter((name) => options[name] !== undefined);
  if (given.length === 0) return;
  throw badUse(`--resume goes on as it was begun; leave out --${given.join(", --")}, or leave out --resume.`);
}

async function alreadyEnded({ terminal, store, options, dir, found }: DemoRun): Promise<DemoEnd | null> {
  const outcome = found?.asked?.outcome;
  if (outcome === undefined || outcome === null || outcome.ending !== "completed") return null;
  const reader = new TreeReader(store, found!.tree.treeId);
  printStart(terminal, store, reader.id, dir, options.json === true, "ended");
  return { reader, outcome, startedAt: systemClock.monotonic() };
}

/** Null when another process runs the tree already. */
async function runHere(run: DemoRun): Promise<DemoEnd | null> {
  const { terminal, store, options, found } = run;
  const host = new Host();
  if (found !== null) await host.requireRunnable(store, new TreeReader(store, found.tree.treeId));
  await using runtime = await host.runtime(store, { pace: options.pace, demo: true, model: options.model });
  const startedAt = systemClock.monotonic();
  let handle: TreeHandle;
  const reached = found === null ? 0 : await new TreeReader(store, found.tree.treeId).lastEvent();
  try {
    handle = await runtime.openTree(found === null ? newTree(run) : { id: found.tree.treeId });
  } catch (error) {
    if (CoppiceError.is(error) && error.code === "NOT_OWNER") return null;
    throw error;
  }
  printStart(terminal, store, handle.id, run.dir, options.json === true, found === null ? "new" : "resumed");
  const show = showOf(run, handle);
  const follow = followInto(show, handle, reached);
  try {
    const outcome = await askUntilKept(run, handle);
    await handle.idle({ signal: terminal.signal });
    return { reader: new TreeReader(store, handle.id), outcome, startedAt };
  } finally {
    await follow.end();
    await show.end();
    if (terminal.signal.aborted)
      terminal.note(
        `The tree is given back as it is. Go on with: ${commandLine("demo", { resume: true, store: options.store })}`,
      );
  }
}

/**
 * Asks for the job and waits for its outcome. The same key asks for the same work, so one that was begun is gone on with
 * (SPN-6). A work that has lost its runs to too many crashes has ended; it is asked for anew, and what its agents have
 * found since is still there.
 */
async function askUntilKept({ terminal, found }: DemoRun, handle: TreeHandle): Promise<WorkOutcome> {
  const { signal } = terminal;
  const open = found?.asked !== null && found?.asked?.state !== "ended";
  for (let asks = found === null ? 0 : found.times - (open ? 1 : 0); ; asks += 1) {
    const work = await handle.root.send(DEMO_ASK, { commandId: `demo-${asks}`, signal });
    const outcome = await work.outcome({ signal });
    if (outcome.ending !== "runtime_lost") return outcome;
    terminal.note("The root's run was lost to crashes too often; it is asked once more.");
  }
}

async function runElsewhere(run: DemoRun): Promise<DemoEnd> {
  const ended = await watchDemo(run);
  if (ended !== null) return ended;
  // Its owner is gone; what it has left is gone on with here.
  const found = await newestDemo(run.store);
  const again = { ...run, found };
  return (await alreadyEnded(again)) ?? (await runHere(again)) ?? runElsewhere(again);
}

function newTree({ options, dir }: DemoRun) {
  return {
    title: DEMO_TITLE,
    instructions: ROOT_INSTRUCTIONS,
    workspace: dir,
    effects: ["read"] as const,
    onLostRun: "retry" as const,
    budgets: { tokens: MOST_TOKENS },
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.model === undefined ? { provider: "scripted" } : { provider: MODEL, model: options.model }),
  };
}

function showOf({ terminal, options, dir }: DemoRun, handle: TreeHandle): Show {
  const look = {
    title: `A tree of agents looks through ${dir}`,
    agents: async () => (await handle.list({ limit: 30 })).agents,
    residents: DEMO_RESIDENTS,
  };
  return createShow(terminal, look, options.json === true);
}

/** Events into the show, until it is ended; then what was committed meanwhile. */
function followInto(show: Show, handle: TreeHandle, after: number) {
  const stop = new AbortController();
  let cursor = after;
  const following = (async () => {
    for await (const event of handle.events({ after, signal: stop.signal })) {
      cursor = event.seq;
      show.event(event);
    }
  })();
  return {
    async end(): Promise<void> {
      stop.abort();
      await following;
      for (const event of await handle.log(cursor)) show.event(event);
    },
  };
}
