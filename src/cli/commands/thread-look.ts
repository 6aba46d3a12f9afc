/** `coppice thread list`, `show` and `context`: which threads there are, and what one is. */
import type { Command } from "commander";
import { systemClock } from "../../platform/clock.ts";
import { isThreadId, type RunId, type ThreadId } from "../../protocol/ids.ts";
import type { SnapshotRecord } from "../../protocol/snapshot.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { TreeReader } from "../../runtime/tree-reader.ts";
import type { StoreView } from "../../store/port.ts";
import { badUse, CommandError, EXIT } from "../failure.ts";
import { commandLine } from "../screen/command-line.ts";
import {
  contextLines,
  listLines,
  type ShownRun,
  type ShownThread,
  threadLines,
} from "../screen/thread-lines.ts";
import type { Terminal } from "../terminal.ts";
import { type StoreOptions, wholeNumber, withStore } from "./options.ts";
import { type At, lookAtThreads, reconcileThreads, THREAD_ARGUMENT, threadCommand } from "./threading.ts";

/** What a shell may have been given to know which thread it belongs to: shown by `show`, and never acted on (S1-14). */
const LABEL = "COPPICE_THREAD_ID";
const SHOWN_RUNS = 10;
const SHOWN_THREADS = 20;

interface ListOptions extends StoreOptions {
  readonly all?: boolean;
  readonly limit: number;
  readonly after?: string;
}

export function addThreadLook(thread: Command, terminal: Terminal): void {
  withStore(thread.command("list"), { json: "NDJSON, a thread a line", example: "thread list --all" })
    .description("show the open threads of this folder, newest first")
    .option("--all", "those of every folder, and closed and archived ones")
    .option("--limit <n>", "threads a page", wholeNumber(1, 10_000), SHOWN_THREADS)
    .option("--after <cursor>", "the page after this one; a page tells its cursor")
    .action((options: ListOptions) => lookAtThreads(options, (at) => list(terminal, at, options)));

  threadCommand(thread, "show", {
    json: "one object",
    example: "thread show thread_…",
  })
    .description("show one thread: state, runs, what each provider knows of them, and its context")
    .argument("[thread]", `${THREAD_ARGUMENT}; default: $${LABEL}, which no other command looks at`)
    .option("--runs <n>", "how many runs, the newest", wholeNumber(1, 10_000), SHOWN_RUNS)
    .action((named: string | undefined, options: StoreOptions & { readonly runs: number }) => {
      const id = named ?? process.env[LABEL] ?? "";
      if (id === "") throw badUse(`which thread? Give its id, or set ${LABEL}.`, "thread list");
      return reconcileThreads(options, id, async (at) => {
        const shown = await shownThread(at, id, options.runs);
        if (options.json === true) terminal.json(asJson(shown));
        else for (const line of threadLines(terminal, shown, options)) terminal.line(line);
      });
    });

  withStore(thread.command("context"), {
    json: "one object, or null at revision 0",
    example: "thread context thread_…",
  })
    .description(
      "show the pinned context, each line with the run it comes from; who is told of the thread reads it",
    )
    .argument("<thread>", THREAD_ARGUMENT)
    .action((id: string, options: StoreOptions) =>
      lookAtThreads(options, async (at) => {
        const snapshot = await at.threads.context(id);
        if (options.json === true) {
          terminal.json(snapshot);
          return;
        }
        if (snapshot === null) {
          terminal.line("Revision 0: nothing has been pinned, and no run has ended.");
          return;
        }
        const ordinals = await at.store.read((view) => ordinalsOf(view, snapshot, snapshot.threadId));
        terminal.line(terminal.paint("bold", `Revision ${snapshot.revision}`));
        for (const line of contextLines(terminal, snapshot, ordinals)) terminal.line(line);
      }),
    );
}

async function list(terminal: Terminal, { store, threads }: At, options: ListOptions): Promise<void> {
  const { after } = options;
  if (after !== undefined) {
    const known = isThreadId(after) && (await store.read((view) => view.agent(after))) !== undefined;
    if (!known) {
      throw badUse(
        `--after \`${after.slice(0, 80)}\` is no cursor of threads; give the id that a page ends with, or leave out --after for the first page.`,
      );
    }
  }
  const folder = process.cwd();
  const filter = options.all === true ? ({ state: "any" } as const) : { workspace: folder };
  const page = await threads.list(filter, { limit: options.limit, after: after ?? null });
  if (options.json === true) {
    for (const one of page.rows) terminal.json(one);
  } else if (page.rows.length === 0 && page.unreadable.length === 0) {
    const none = options.all === true ? "There are no threads." : `There are no open threads of ${folder}.`;
    terminal.line(`${none} Start one with: ${commandLine("thread new", { store: options.store })}`);
  } else {
    const look = { now: systemClock.now(), folders: options.all === true };
    for (const one of page.rows) for (const line of listLines(terminal, one, look)) terminal.line(line);
  }
  if (page.next !== null) {
    const { all, store } = options;
    const limit = options.limit === SHOWN_THREADS ? undefined : options.limit;
    terminal.note(`more: ${commandLine("thread list", { all, after: page.next, limit, store })}`);
  }
  requireReadable(page.unreadable);
}

/** @throws CommandError `STORE_CORRUPT` naming them, when the others were printed (C19). */
function requireReadable(unreadable: readonly ThreadId[]): void {
  if (unreadable.length === 0) return;
  const [what, one] = unreadable.length === 1 ? ["a thread", "its row"] : ["threads", "their rows"];
  throw new CommandError(
    EXIT.store,
    "STORE_CORRUPT",
    `${what} of this store cannot be read, ${one} being damaged: ${unreadable.join(", ")}. Restore the store from a backup, or leave it be.`,
  );
}

async function shownThread({ store, threads }: At, id: string, most: number): Promise<ShownThread> {
  const { thread, context, history } = await threads.show(id, { limit: 1 });
  const [draft, requests] = await Promise.all([
    threads.draft(id),
    new TreeReader(store, thread.treeId).requests(thread.id),
  ]);
  return store.read((view) => {
    const runs: ShownRun[] = [];
    for (
      let ordinal = Math.max(1, thread.executions - most + 1);
      ordinal <= thread.executions;
      ordinal += 1
    ) {
      const run = view.runAt(thread.id, ordinal);
      if (run !== undefined) runs.push(shownRun(view, run));
    }
    const ordinals = ordinalsOf(view, context, thread.id);
    return { thread, runs, context, history, draft, requests, ordinals };
  });
}

function shownRun(view: StoreView, run: RunRecord): ShownRun {
  const asked = run.causes
    .map(({ mailId }) => view.mail(mailId)?.content.text)
    .find((text) => text !== undefined);
  return {
    ordinal: run.ordinal,
    provider: run.provider,
    model: run.model,
    outcome: run.status.replaceAll("_", " "),
    opened: run.binding?.contextRevision ?? null,
    projected: run.nextContextRevision,
    history: run.history?.level ?? null,
    asked: (asked ?? "").slice(0, 2000),
  };
}

/** Where each line of a snapshot comes from, in words: a fork's first ones come from another thread. */
function ordinalsOf(
  view: StoreView,
  snapshot: SnapshotRecord | null,
  thread: ThreadId,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  if (snapshot === null) return names;
  const { decisions, constraints, openItems, nextActions, outcomes, delegations = [] } = snapshot;
  for (const { sourceExecutionId: id } of [
    ...decisions,
    ...constraints,
    ...openItems,
    ...nextActions,
    ...outcomes,
    ...delegations,
  ]) {
    const run = view.run(id as RunId);
    if (run === undefined) continue;
    names.set(id, run.threadId === thread ? `run ${run.ordinal}` : `run ${run.ordinal} of ${run.threadId}`);
  }
  return names;
}

function asJson({ thread, runs, context, history, draft, requests }: ShownThread) {
  return { ...thread, runs, context, history, draft, requests };
}
