/** `coppice thread transcript` (`agent transcript`) and `history`: what was said, and what happened as its providers tell it. */
import type { Command } from "commander";
import { findTree } from "../find-tree.ts";
import { commandLine, type GivenOptions } from "../screen/command-line.ts";
import { historyLine, transcriptLines } from "../screen/transcript-lines.ts";
import type { Terminal } from "../terminal.ts";
import { given, type StoreOptions, type TreeOptions, wholeNumber, withStore, withTree } from "./options.ts";
import { type At, lookAtThreads, reconcileThreads, THREAD_ARGUMENT, threadCommand } from "./threading.ts";

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
  withTranscript(
    withStore(thread.command("transcript"), {
      json: "NDJSON, an entry a line",
      example: "thread transcript thread_… --limit 20",
    }),
  )
    .argument("<thread>", THREAD_ARGUMENT)
    .action((id: string, options: TranscriptOptions) =>
      lookAtThreads(options, (at) =>
        transcript(terminal, at, id, options, (again) =>
          commandLine(`thread transcript ${id}`, { ...again, store: options.store }),
        ),
      ),
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

/** `agent transcript`: the same of an agent, by its path. */
export function addAgentTranscript(agent: Command, terminal: Terminal): void {
  withTranscript(
    withTree(agent.command("transcript"), {
      json: "NDJSON, an entry a line",
      example: "agent transcript /root/reader --full",
    }),
  )
    .argument("<agent>", "path or id of the agent")
    .action((target: string, options: TranscriptOptions & TreeOptions) =>
      lookAtThreads(options, async (at) => {
        const tree = await findTree(at.store, options.tree, target);
        const { threadId } = await tree.agent(target);
        await transcript(terminal, at, threadId, options, (again) =>
          commandLine(`agent transcript ${target}`, { ...again, ...given(options) }),
        );
      }),
    );
}

function withTranscript(command: Command): Command {
  return command
    .description("show the conversation, with what a fork has inherited; the newest page, oldest entry first")
    .option("--before <place>", "the page before this one; a page tells its place")
    .option("--limit <n>", "entries a page", wholeNumber(1, 10_000), ENTRIES)
    .option("--full", "each entry whole, however long");
}

async function transcript(
  terminal: Terminal,
  { threads }: At,
  id: string,
  { before, limit, full, json }: TranscriptOptions,
  command: (again: GivenOptions) => string,
): Promise<void> {
  const page = await threads.transcript(id, { limit, ...(before === undefined ? {} : { before }) });
  if (page.before !== null)
    terminal.note(`before: ${command({ before: page.before, limit: asked(limit), full })}`);
  for (const entry of page.entries) {
    if (json === true) terminal.json(entry);
    else for (const line of transcriptLines(terminal, entry, full === true)) terminal.line(line);
  }
  if (page.entries.length === 0 && json !== true) terminal.line("Nothing has been said yet.");
  if (!page.complete) terminal.note("The line of forks is longer than this; see the oldest thread above.");
}
