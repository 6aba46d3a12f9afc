/** `coppice log`: what happened in a tree, from its durable event log, page by page or as it goes on. */
import type { Command } from "commander";
import { delay, systemClock } from "../../platform/clock.ts";
import type { RuntimeEvent } from "../../protocol/events.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import { allPages } from "../all-pages.ts";
import { badUse } from "../failure.ts";
import { commandLine } from "../screen/command-line.ts";
import { eventLine } from "../screen/event-line.ts";
import { nameCell } from "../screen/plain-line.ts";
import { counted, figure, type Names, namesAmong } from "../screen/words.ts";
import { clean, clip, fit, type Terminal, widthOf } from "../terminal.ts";
import { given, reading, type TreeOptions, wholeNumber, withTree } from "./options.ts";

interface Options extends TreeOptions {
  readonly after?: number;
  readonly limit: number;
  readonly all?: boolean;
  readonly follow?: boolean;
}

const EVENTS = 100;
const PAGE = 500;
const LOOK_MS = 100;
const NAME_COLUMNS = 12;

export function addLog(program: Command, terminal: Terminal): void {
  withTree(program.command("log"), {
    json: "NDJSON, an event a line",
    example: "log --after 0 --follow",
  })
    .description("show what happened, oldest first; the newest page unless --after is given")
    .option("--after <seq>", "only events after this number", wholeNumber(0, Infinity))
    .option("--limit <n>", "events a page", wholeNumber(1, 100_000), EVENTS)
    .option("--all", "every event, with as much of its data as fits; else those that tell a reader something")
    .option("--follow", "go on with what happens, until interrupted")
    .action(async (options: Options) => {
      await reading(options, undefined, (tree) => print(terminal, tree, options));
    });
}

async function print(terminal: Terminal, tree: TreeReader, options: Options): Promise<void> {
  const last = await tree.lastEvent();
  if (options.after !== undefined && options.after > last) {
    throw badUse(
      `--after ${options.after} is beyond the end of the log of ${tree.id}, which is ${last}; give a number up to that.`,
    );
  }
  const page = (after: number): string => {
    const { all, limit } = options;
    const again = { all, limit: limit === EVENTS ? undefined : limit, ...given(options) };
    return commandLine("log", { after, ...again });
  };
  const after = options.after ?? (await beforeNewest(tree, last, options));
  if (after > 0 && options.after === undefined && options.json !== true) {
    terminal.note(`${counted(after, "event")} before these; from the start: ${page(0)}`);
  }
  const printer = new Printer(terminal, options, await namesOf(tree));
  const most = options.follow === true ? Infinity : options.limit;
  let cursor = after;
  reading: for (;;) {
    const events = await tree.log(cursor, PAGE);
    for (const event of events) {
      if (shows(event, options)) {
        if (printer.printed === most) break reading;
        printer.print(event);
      }
      cursor = event.seq;
    }
    if (events.length > 0) continue;
    if (options.follow !== true) break;
    await delay(systemClock, LOOK_MS, terminal.signal);
  }
  if (options.json === true) return;
  if (cursor < last) terminal.note(`${figure(last - cursor)} more: ${page(cursor)}`);
  else if (printer.printed === 0) {
    const all = commandLine("log", { all: true, after: options.after, ...given(options) });
    const hidden = last - after;
    const kept = hidden === 0 ? "." : `; ${counted(hidden, "event")} that only the books keep: ${all}`;
    terminal.line(`Nothing has happened ${after === 0 ? "yet" : `after ${after}`}${kept}`);
  }
}

function shows(event: RuntimeEvent, { json, all }: Options): boolean {
  return json === true || all === true || eventLine(event) !== null;
}

/** The number before the newest page: a page counts what it shows. */
async function beforeNewest(tree: TreeReader, last: number, options: Options): Promise<number> {
  let left = options.limit;
  for (let end = last; end > 0;) {
    const start = Math.max(0, end - PAGE);
    for (const event of (await tree.log(start, end - start)).toReversed()) {
      if (shows(event, options)) left -= 1;
      if (left === 0) return event.seq - 1;
    }
    end = start;
  }
  return 0;
}

async function namesOf(tree: TreeReader): Promise<Names> {
  const paths: string[] = [];
  for await (const { agents } of allPages((after) => tree.agents({ closed: true, limit: PAGE, after }))) {
    paths.push(...agents.map(({ path }) => path));
  }
  return namesAmong(paths);
}

class Printer {
  printed = 0;
  readonly #terminal: Terminal;
  readonly #options: Options;
  readonly #names: Names;

  constructor(terminal: Terminal, options: Options, names: Names) {
    this.#terminal = terminal;
    this.#options = options;
    this.#names = names;
  }

  print(event: RuntimeEvent): void {
    this.printed += 1;
    if (this.#options.json === true) this.#terminal.json(event);
    else this.#terminal.line(this.#line(event));
  }

  #line(event: RuntimeEvent): string {
    const terminal = this.#terminal;
    const at = new Date(event.at).toISOString().slice(11, 23);
    const start = `${fit(String(event.seq), 5, "right")} ${terminal.paint("dim", at)} `;
    if (this.#options.all === true) {
      const who = nameCell(terminal, event.path ?? "tree", NAME_COLUMNS);
      const room = Math.max(20, terminal.room - 21 - widthOf(who) - event.type.length);
      const data = terminal.paint("dim", clip(clean(JSON.stringify(event.data)), room));
      return `${start}${who} ${event.type} ${data}`;
    }
    const { who, what, style } = eventLine(event, this.#names)!;
    const cell = nameCell(terminal, who, NAME_COLUMNS);
    const text = clip(what, Math.max(20, terminal.room - 20 - widthOf(cell)));
    return `${start}${cell} ${style === null ? text : terminal.paint(style, text)}`;
  }
}
