/** `coppice thread transcript` and `history`: what was said, and what happened as its providers tell it. */
import type { Command } from "commander";
import { commandLine } from "../screen/command-line.ts";
import { historyLine, transcriptLines } from "../screen/transcript-lines.ts";
import type { Terminal } from "../terminal.ts";
import { type StoreOptions, wholeNumber, withStore } from "./options.ts";
import { lookAtThreads, reconcileThreads, THREAD_ARGUMENT, threadCommand } from "./threading.ts";

interface TranscriptOptions extends StoreOptions {
  readonly before?: string;
  readonly limit: number;
  readonly full?: boolean;
}

interface HistoryOptions extends StoreOptions {
  readonly after?: string;
  readonly limit: number;
}

const ENTRIES = 50;
/** A page of another size goes on in that size. */
const asked = (limit: number): number | undefined => (limit === ENTRIES ? undefined : limit);

export function addThreadPast(thread: Command, terminal: Terminal): void {
  withStore(thread.command("transcript"), {
    json: "NDJSON, an entry a line",
    example: "thread transcript thread_… --limit 20",
  })
    .description("show the conversation, with what a fork has inherited; the newest page, oldest entry first")
    .argument("<thread>", THREAD_ARGUMENT)
    .option("--before <place>", "the page before this one; a page tells its place")
    .option("--limit <n>", "entries a page", wholeNumber(1, 10_000), ENTRIES)
    .option("--full", "each entry whole, however long")
    .action((id: string, options: TranscriptOptions) =>
      lookAtThreads(options, async ({ threads }) => {
        const { before, limit, full, store } = options;
        const page = await threads.transcript(id, { limit, ...(before === undefined ? {} : { before }) });
        if (page.before !== null) {
          const again = { before: page.before, limit: asked(limit), full, store };
          terminal.note(`before: ${commandLine(`thread transcript ${id}`, again)}`);
        }
        for (const entry of page.entries) {
          if (options.json === true) terminal.json(entry);
          else for (const line of transcriptLines(terminal, entry, full === true)) terminal.line(line);
        }
        if (page.entries.length === 0 && options.json !== true) terminal.line("Nothing has been said yet.");
        if (!page.complete)
          terminal.note("The line of forks is longer than this; see the oldest thread above.");
      }),
    );

  threadCommand(thread, "history", {
    json: "NDJSON, an entry a line",
    example: "thread history thread_… --after 40",
  })
    .description("show what happened, as its providers tell it; it is never what a run is told")
    .argument("<thread>", THREAD_ARGUMENT)
    .option("--after <cursor>", "the page after this one; a page tells its cursor")
    .option("--limit <n>", "entries a page", wholeNumber(1, 10_000), ENTRIES)
    .action((id: string, options: HistoryOptions) =>
      reconcileThreads(options, id, async ({ threads }) => {
        const { after = null, limit, config, store } = options;
        const { rows, next, level } = await threads.history(id, { limit, after });
        for (const entry of rows) {
          if (options.json === true) terminal.json(entry);
          else terminal.line(historyLine(terminal, entry));
        }
        if (options.json !== true) {
          if (rows.length === 0) terminal.line("Nothing has been collected yet.");
          else if (level !== null && level !== "complete") terminal.note(`This is not all: ${level}.`);
        }
        if (next === null) return;
        const again = { after: next, limit: asked(limit), config, store };
        terminal.note(`more: ${commandLine(`thread history ${id}`, again)}`);
      }),
    );
}
