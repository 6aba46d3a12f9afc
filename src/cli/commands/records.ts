/** `coppice works`, `transfers` and `owed`: the books of a tree, a row a record. */
import type { Command } from "commander";
import type { TransferId, TreeId, WorkId } from "../../protocol/ids.ts";
import type { TransferRecord } from "../../protocol/transfer.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { OwedWork, TreeReader } from "../../runtime/tree-reader.ts";
import { unlessCorrupt } from "../../store/corrupt-row.ts";
import type { Page, Store, StoreView } from "../../store/port.ts";
import { allPages } from "../all-pages.ts";
import { badUse } from "../failure.ts";
import { commandLine } from "../screen/command-line.ts";
import { beginning, opening, requesterOf, shortName, statusWord, workState } from "../screen/words.ts";
import { clean, clip, fit, type Style, type Terminal, widthOf, wrap } from "../terminal.ts";
import { requireReadable } from "../unreadable.ts";
import { printWork } from "./one-work.ts";
import { given, reading, type Told, type TreeOptions, wholeNumber, withTree } from "./options.ts";
import { lookAtThreads } from "./threading.ts";

interface Options extends TreeOptions {
  readonly limit: number;
  readonly after?: string;
}

const ID_COLUMNS = 25;
const ROWS = 100;

export function addRecords(program: Command, terminal: Terminal): void {
  paged(program.command("works"), { json: "NDJSON, a work a line", example: "works --limit 20" })
    .description("show every request: who asked whom for what, and how it ended")
    .argument("[work]", "one alone, by its id, with its request and its answer whole")
    .action(async (id: string | undefined, options: Options) => {
      if (id !== undefined) return printWork(terminal, id, options);
      await reading(options, undefined, async (tree, store) => {
        await requireCursor(store, tree, options, "works", (view, id) => view.work(id as WorkId));
        const page = await tree.works(pageOf(options));
        const owned = (await tree.owner()) !== null;
        table(terminal, page, options, "works", () => {
          for (const work of page.rows)
            for (const line of workLines(terminal, work, owned)) terminal.line(line);
          if (page.rows.length > 0)
            terminal.line(
              terminal.paint(
                "dim",
                `One of them whole: ${commandLine("works wrk_…", { store: options.store })}`,
              ),
            );
        });
        requireReadable((page.unreadable ?? []).map((id) => ({ table: "works", id, path: null })));
      });
    });
  paged(program.command("transfers"), {
    json: "NDJSON, a transfer a line",
    example: "transfers --limit 20",
  })
    .description("show why and from where context moved: spawns, results, forks, switches, merges")
    .argument("[thread]", "those out of one thread and into it, by its id; default: of a whole tree")
    .action(async (thread: string | undefined, options: Options) => {
      if (thread !== undefined) return ofThread(terminal, thread, options);
      await reading(options, undefined, async (tree, store) => {
        await requireCursor(store, tree, options, "transfers", (view, id) => view.transfer(id as TransferId));
        const page = await tree.transfers(pageOf(options));
        const names = await namesOf(tree);
        table(terminal, page, options, "transfers", () => {
          for (const transfer of page.rows)
            for (const line of transferLines(terminal, transfer, names)) terminal.line(line);
        });
      });
    });
  withTree(program.command("owed"), { json: "NDJSON, a work a line", example: "owed /root/searcher" })
    .description("show open requests: what others owe to an agent, and what it owes")
    .argument("[agent]", "path or id of the agent", "/root")
    .action(async (agent: string, options: TreeOptions) => {
      await reading(options, agent, async (tree) => {
        const debts = await tree.debts(agent);
        if (options.json === true) {
          for (const one of debts.owed) terminal.json({ direction: "owed", ...one });
          for (const one of debts.owes) terminal.json({ direction: "owes", ...one });
          return;
        }
        const owned = (await tree.owner()) !== null;
        const print = (title: string, works: readonly OwedWork[], whom: (one: OwedWork) => string): void =>
          printDebts(terminal, title, works, whom, owned);
        print(`Others owe ${agent}`, debts.owed, ({ work }) => `from ${work.executorPath}`);
        print(`${agent} owes`, debts.owes, ({ work }) => `to ${requesterOf(work)}`);
      });
    });
}

function paged(command: Command, told: Told): Command {
  return withTree(command, told)
    .option("--limit <n>", "rows a page", wholeNumber(1, 10_000), ROWS)
    .option("--after <cursor>", "the page after this one; a page tells its cursor");
}

function pageOf(options: Options) {
  return { limit: options.limit, after: options.after ?? null };
}

/** @throws CommandError for a cursor that no page of this list has told. */
async function requireCursor(
  store: Store,
  tree: TreeReader,
  { after, store: place }: Options,
  name: "works" | "transfers",
  rowOf: (view: StoreView, id: string) => { readonly treeId: TreeId } | undefined,
): Promise<void> {
  if (after === undefined) return;
  // One that a page has passed over may be the last of it.
  const row = await store.read((view) => unlessCorrupt(() => rowOf(view, after), { treeId: tree.id }));
  if (row?.treeId === tree.id) return;
  const command = `npx coppice ${name}`;
  throw badUse(
    row === undefined
      ? `--after \`${after}\` is no cursor of ${name}; give the id that a page ends with ("more: ${command} --after …"), or leave out --after for the first page.`
      : `--after ${after} is a cursor of another tree; see that one with: ${commandLine(name, { tree: row.treeId, after, store: place })}`,
  );
}

function table<T>(
  terminal: Terminal,
  page: Page<T>,
  options: Options,
  command: string,
  print: () => void,
): void {
  if (options.json === true) {
    for (const row of page.rows) terminal.json(row);
  } else if (page.rows.length === 0 && page.unreadable === undefined) {
    terminal.line(`There are no ${command.replace(" ", " of ")}.`);
  } else {
    print();
  }
  if (page.next === null) return;
  const limit = options.limit === ROWS ? undefined : options.limit;
  terminal.note(`more: ${commandLine(command, { after: page.next, limit, ...given(options) })}`);
}

function workLines(terminal: Terminal, work: WorkRecord, owned: boolean): string[] {
  const from = requesterOf(work);
  const state = terminal.paint(styleOf(work), workState(work, owned));
  const detached = work.detached ? ", detached" : "";
  const way = `${shortName(from)} → ${shortName(work.executorPath)}`;
  const narrow = terminal.room < ID_COLUMNS + 15 + widthOf(`${state}${detached}`);
  const wayColumns = Math.max(12, terminal.room - ID_COLUMNS - 3 - widthOf(`${state}${detached}`));
  const asked = beginning(work.objective);
  const answer =
    work.outcome === null ? "" : beginning(work.outcome.text || (work.outcome.error?.message ?? ""));
  const room = terminal.room - 4;
  const head = narrow
    ? [work.id, `    ${state}${detached}`, `    ${clip(way, room)}`]
    : [`${fit(work.id, ID_COLUMNS)} ${clip(way, wayColumns)}  ${state}${detached}`];
  return [
    ...head,
    `    ${clip(asked, room)}`,
    ...(answer === "" ? [] : [terminal.paint("dim", `  → ${clip(answer, room)}`)]),
  ];
}

function styleOf(work: WorkRecord): Style {
  if (work.outcome === null) return "yellow";
  return work.outcome.ending === "completed" ? "green" : "red";
}

/** Of one thread, whatever tree the other end is in. */
async function ofThread(terminal: Terminal, id: string, options: Options): Promise<void> {
  if (options.tree !== undefined) throw badUse("give either a thread or --tree.");
  await lookAtThreads(options, async ({ store, threads }) => {
    const { after } = options;
    const { id: thread } = await threads.get(id);
    const row =
      after === undefined ? undefined : await store.read((view) => view.transfer(after as TransferId));
    if (after !== undefined && row?.sourceThreadId !== thread && row?.targetThreadId !== thread) {
      throw badUse(
        `--after \`${after.slice(0, 80)}\` is no cursor of the transfers of ${thread}; leave out --after for the first page.`,
      );
    }
    const page = await threads.transfers(id, pageOf(options));
    table(terminal, page, options, `transfers ${thread}`, () => {
      for (const transfer of page.rows)
        for (const line of switchLines(terminal, transfer, thread)) terminal.line(line);
    });
  });
}

/** What has moved, between whom, how, and by which text. */
function switchLines(terminal: Terminal, transfer: TransferRecord, thread: string): string[] {
  const { resolution, sourceProvider, targetProvider, sourcePoint, basePoint, requestedStrategy } = transfer;
  const name = (id: string): string => (id === thread ? "this thread" : id);
  const way =
    transfer.sourceThreadId === transfer.targetThreadId
      ? `${clean(sourceProvider ?? "–")} → ${clean(targetProvider ?? "–")}`
      : `${name(transfer.sourceThreadId)} → ${name(transfer.targetThreadId)}`;
  const since =
    transfer.type === "merge_back" ? "what came after the fork" : `after run ${basePoint?.ordinal}`;
  const from = basePoint === null ? toldFrom(transfer) : since;
  const how =
    resolution === null
      ? `asked for: ${clean(requestedStrategy)}`
      : resolution.strategy === "native_fork"
        ? "native fork"
        : `${resolution.strategy.replaceAll("_", " ")}  ${resolution.contextHandoffId}`;
  const stale = transfer.staleness.length === 0 ? "" : `  stale: ${transfer.staleness.join(", ")}`;
  const failed = transfer.error === null ? "" : `  ${opening(transfer.error)}`;
  return [
    ...transferHead(terminal, transfer),
    ...wrap(way, terminal.room - 4).map((line) => `    ${line}`),
    ...wrap(`${from}, up to ${placeOf(sourcePoint)}, ${how}${stale}${failed}`, terminal.room - 4).map(
      (line) => `    ${line}`,
    ),
  ];
}

function toldFrom({ type, note }: TransferRecord): string {
  if (type === "subagent_result") return `the result (${opening(note)})`;
  if (type !== "subagent_spawn" || note === "all") return "all";
  return note === "none" ? "nothing" : `the last ${note} turns`;
}

/** A run, or the step of it at which it was cut. */
function placeOf({ ordinal, turnItemId, cut }: TransferRecord["sourcePoint"]): string {
  return turnItemId === null || cut === "inclusive"
    ? `run ${ordinal}`
    : `item ${turnItemId} in run ${ordinal}`;
}

/** Its id, kind and state; on two lines where there is no room for one. */
function transferHead(terminal: Terminal, { id, type, status }: TransferRecord): string[] {
  const state = terminal.paint(status === "failed" ? "red" : "dim", status);
  const one = `${fit(id, ID_COLUMNS)} ${fit(type, 16)} ${state}`;
  return widthOf(one) <= terminal.room ? [one] : [id, `    ${type} ${state}`];
}

async function namesOf(tree: TreeReader): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for await (const { agents } of allPages((after) => tree.agents({ closed: true, limit: 500, after }))) {
    for (const agent of agents) names.set(agent.threadId, shortName(agent.path));
  }
  return names;
}

function transferLines(
  terminal: Terminal,
  transfer: TransferRecord,
  names: ReadonlyMap<string, string>,
): string[] {
  const name = (thread: string): string => names.get(thread) ?? thread;
  const way = `${name(transfer.sourceThreadId)} → ${name(transfer.targetThreadId)}`;
  // Names may be cut off, ids never.
  const known = names.has(transfer.sourceThreadId) && names.has(transfer.targetThreadId);
  const start = `${fit(transfer.id, ID_COLUMNS)} ${fit(transfer.type, 16)} ${known && terminal.room < Infinity ? fit(way, 20) : way.padEnd(20)}`;
  const room = terminal.room - widthOf(start) - transfer.status.length - 2;
  const told = transfer.note === "" ? "" : `(${opening(transfer.note)})`;
  if (room < 0) {
    const below = [way, told].filter((text) => text !== "");
    return [
      ...transferHead(terminal, transfer),
      ...below.flatMap((text) => wrap(text, terminal.room - 4).map((line) => `    ${line}`)),
    ];
  }
  const note = told === "" ? "" : ` ${clip(told, room)}`;
  const state = terminal.paint(transfer.status === "failed" ? "red" : "dim", transfer.status);
  return [`${start} ${state}${note}`];
}

function printDebts(
  terminal: Terminal,
  title: string,
  works: readonly OwedWork[],
  whom: (one: OwedWork) => string,
  owned: boolean,
): void {
  terminal.line(terminal.paint("bold", works.length === 0 ? `${title}: nothing` : `${title}:`));
  for (const one of works) {
    const { work } = one;
    const line = `${work.id} ${whom(one)}, ${workState(work, owned)} (the agent: ${statusWord(one.status, owned)})`;
    for (const part of wrap(`  ${line}`, terminal.columns, "    ")) terminal.line(part);
    terminal.line(terminal.paint("dim", `    ${clip(opening(work.objective), terminal.room - 4)}`));
  }
}
