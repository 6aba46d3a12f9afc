/** `coppice log`: what happened in a tree, from its durable event log, page by page or as it goes on. */
import type { Command } from "commander";
import { delay, systemClock } from "../../platform/clock.ts";
import type { RuntimeEvent } from "../../protocol/events.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import { badUse } from "../failure.ts";
import { eventLine } from "../screen/event-line.ts";
import { clean, clip, fit, type Terminal } from "../terminal.ts";
import { reading, type TreeOptions, wholeNumber, withTree } from "./options.ts";

interface Options extends TreeOptions {
  readonly after?: number;
  readonly limit: number;
  readonly all?: boolean;
  readonly follow?: boolean;
}

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
    .option("--limit <n>", "events a page", wholeNumber(1, 100_000), 100)
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
  const after = options.after ?? Math.max(0, last - options.limit);
  if (after > 0 && options.after === undefined && options.json !== true) {
    terminal.note(`${after} events before these; from the start: npx coppice log --after 0`);
  }
  let cursor = after;
  let left = options.follow === true ? Infinity : options.limit;
  for (;;) {
    const events = await tree.log(cursor, Math.min(PAGE, left));
    for (const event of events) {
      cursor = event.seq;
      printEvent(terminal, event, options);
    }
    left -= events.length;
    if (left <= 0) break;
    if (events.length > 0) continue;
    if (options.follow !== true) break;
    await delay(systemClock, LOOK_MS, terminal.signal);
  }
  if (cursor < last && options.json !== true) {
    terminal.note(`${last - cursor} more: npx coppice log --after ${cursor}`);
  }
}

function printEvent(terminal: Terminal, event: RuntimeEvent, options: Options): void {
  if (options.json === true) {
    terminal.json(event);
    return;
  }
  const at = new Date(event.at).toISOString().slice(11, 23);
  const start = `${fit(String(event.seq), 5, "right")} ${terminal.paint("dim", at)} `;
  if (options.all === true) {
    const room = Math.max(20, terminal.room - 21 - NAME_COLUMNS - event.type.length);
    const data = terminal.paint("dim", clip(clean(JSON.stringify(event.data)), room));
    terminal.line(`${start}${fit(event.path ?? "tree", NAME_COLUMNS)} ${event.type} ${data}`);
    return;
  }
  const line = eventLine(event);
  if (line === null) return;
  const room = Math.max(20, terminal.room - 20 - NAME_COLUMNS);
  const what = clip(line.what, room);
  terminal.line(
    `${start}${fit(line.who, NAME_COLUMNS)} ${line.style === null ? what : terminal.paint(line.style, what)}`,
  );
}
