/** How a demo begins and ends on the screen: what runs where, the answer, and where to look. */
import { relative } from "node:path";
import { systemClock } from "../../platform/clock.ts";
import type { RuntimeEvent } from "../../protocol/events.ts";
import type { TreeId } from "../../protocol/ids.ts";
import { totalTokens } from "../../protocol/usage.ts";
import type { WorkOutcome } from "../../protocol/work.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import type { Store } from "../../store/port.ts";
import { allPages } from "../all-pages.ts";
import { CommandError, EXIT } from "../failure.ts";
import { counted, seconds, sentence } from "../screen/words.ts";
import { storePlace } from "../store-place.ts";
import { cleanLines, type Terminal, wrap } from "../terminal.ts";

const PAGE = 1_000;

export function printStart(
  terminal: Terminal,
  store: Store,
  tree: TreeId,
  dir: string,
  json: boolean,
  how: "new" | "resumed" | "watched" | "ended",
): void {
  if (json) terminal.json({ type: "demo.started", tree, store: store.name, dir, how });
  else if (how === "ended") terminal.line("It had come to its end before; this is what it answered.");
}

/** @throws CommandError when the job did not complete. */
export async function printEnd(
  terminal: Terminal,
  store: Store,
  reader: TreeReader,
  outcome: WorkOutcome,
  startedAt: number,
  json: boolean,
): Promise<void> {
  const figures = await figuresOf(reader);
  const ms = Math.round(systemClock.monotonic() - startedAt);
  if (json) {
    const tokens = totalTokens(outcome.usage.subtree);
    terminal.json({
      type: "demo.ended",
      tree: reader.id,
      store: store.name,
      ending: outcome.ending,
      answer: outcome.text,
      error: outcome.error,
      ...figures,
      tokens,
      ms,
    });
  } else {
    if (outcome.text !== "") printAnswer(terminal, outcome);
    terminal.line();
    const parts = [
      counted(figures.agents, "agent"),
      counted(figures.works, "work"),
      counted(figures.loads, "load"),
      counted(figures.unloads, "unload"),
      counted(totalTokens(outcome.usage.subtree), "token"),
      seconds(ms),
    ];
    terminal.line(terminal.paint("dim", parts.join(", ")));
    terminal.line(`Store: ${shortPath(store.name)}`);
    const found = storePlace(undefined).path === store.name;
    terminal.line(
      found
        ? `Look:  npx coppice tree, log, works, transfers, why ${figures.agents > 1 ? "/root/searcher" : "/root"}`
        : "Look:  npx coppice tree, log, works, transfers, each with the same --store",
    );
  }
  if (outcome.ending === "completed") return;
  throw new CommandError(
    EXIT.incomplete,
    "WORK_INCOMPLETE",
    `the job ended as ${outcome.ending}${outcome.error === null ? "." : `: ${sentence(outcome.error.message)}`} See: npx coppice why /root`,
  );
}

function printAnswer(terminal: Terminal, outcome: WorkOutcome): void {
  terminal.line();
  terminal.line(
    terminal.paint("bold", outcome.ending === "completed" ? "Answer" : "Answer, as far as it came"),
  );
  // On a terminal words are kept whole; elsewhere a line stays a line, for whoever reads it on.
  const columns = terminal.interactive ? terminal.columns : Infinity;
  for (const line of cleanLines(outcome.text)) {
    for (const part of wrap(line, columns, "  ")) terminal.line(part);
  }
}

async function figuresOf(reader: TreeReader) {
  let agents = 1;
  let works = 0;
  let loads = 0;
  let unloads = 0;
  const count: Partial<Record<RuntimeEvent["type"], () => void>> = {
    "agent.spawned": () => (agents += 1),
    "agent.loaded": () => (loads += 1),
    "agent.unloaded": () => (unloads += 1),
  };
  for (let after = 0; ;) {
    const events = await reader.log(after, PAGE);
    for (const event of events) count[event.type]?.();
    if (events.length < PAGE) break;
    after = events.at(-1)!.seq;
  }
  for await (const { rows } of allPages((after) => reader.works({ after, limit: PAGE })))
    works += rows.length;
  return { agents, works, loads, unloads };
}

/** From this folder, where it lies in it. */
export function shortPath(path: string): string {
  const near = relative(process.cwd(), path);
  return near === "" || near.startsWith("..") ? path : near;
}
