/** `coppice` without arguments: what is here, and what to do next. */
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { systemClock } from "../../platform/clock.ts";
import { provenDead } from "../../platform/process-identity.ts";
import { TreeReader, type UnreadableRow } from "../../runtime/tree-reader.ts";
import { listTrees, type TreeSummary } from "../../runtime/trees.ts";
import { commandLine } from "../screen/command-line.ts";
import { ago, counted } from "../screen/words.ts";
import { newStorePlace, openForReading, storePlace } from "../store-place.ts";
import { clean, fit, type Terminal, widthOf, wrap } from "../terminal.ts";
import { type StoreOptions, withStore } from "./options.ts";

const SHOWN_TREES = 5;

export function addHome(program: Command, terminal: Terminal, version: string): void {
  withStore(program, { json: "one object", example: "demo" }).action(async (options: StoreOptions) => {
    const found = storePlace(options.store);
    const place = existsSync(found.path) ? found : newStorePlace(options.store);
    const trees = existsSync(place.path) ? await readTrees(options) : [];
    if (options.json === true) {
      terminal.json({ version, store: place, trees });
      return;
    }
    const title = `Coppice ${version}: agents that are cut back to their record and grow again.`;
    for (const line of wrap(title, terminal.room))
      terminal.line(line.replace(/^Coppice/, terminal.paint("bold", "Coppice")));
    terminal.line();
    terminal.line(`Store  ${place.path}${existsSync(place.path) ? "" : " (none yet)"}`);
    for (const tree of trees)
      for (const line of wrap(`${tree.id}  ${described(tree)}`, terminal.room - 2, "  "))
        terminal.line(`  ${line}`);
    terminal.line();
    terminal.line("Next");
    const commands = next(trees, options);
    const columns = Math.max(32, ...commands.map(([command]) => widthOf(command)));
    const beside = commands.every(([, what]) => columns + widthOf(what) + 3 <= terminal.room);
    for (const [command, what] of commands) {
      if (beside) terminal.line(`  ${fit(command, columns)} ${terminal.paint("dim", what)}`);
      else for (const line of [`  ${command}`, terminal.paint("dim", `    ${what}`)]) terminal.line(line);
    }
  });
}

function described({ title, createdAt, counts, owner, unreadable }: ShownTree): string {
  const broken = counts === null || unreadable !== undefined;
  const size = broken ? "with rows that cannot be read" : counted(counts.registered, "agent");
  const age = createdAt === null ? [] : [`${ago(systemClock.now() - createdAt)} old`];
  const who = owner === null ? "no process runs it" : `run by process ${owner.pid}`;
  return [clean(title ?? "tree"), size, ...age, who].join(", ");
}

interface ShownTree extends TreeSummary {
  /** Absent where all can be read that a look at the tree needs. */
  readonly unreadable?: readonly UnreadableRow[];
}

async function readTrees(options: StoreOptions): Promise<readonly ShownTree[]> {
  const store = await openForReading(storePlace(options.store));
  try {
    const { rows } = await listTrees(store, { limit: SHOWN_TREES }, provenDead);
    return await Promise.all(
      rows.map(async (tree) => {
        const unreadable = await new TreeReader(store, tree.id).unreadable();
        return unreadable.length === 0 ? tree : { ...tree, unreadable };
      }),
    );
  } finally {
    await store.close();
  }
}

function next(
  trees: readonly TreeSummary[],
  { store }: StoreOptions,
): readonly (readonly [string, string])[] {
  if (trees.length === 0) {
    return [
      [commandLine("demo", { store }), "see a tree of agents at work; needs no key"],
      [commandLine("run", { store }, '"…"'), "give an agent a task of yours"],
      ["npx coppice doctor", "what is on this machine"],
      ["npx coppice --help", "all commands"],
    ];
  }
  const watched = trees[0]!.owner !== null;
  return [
    [commandLine("tree", { watch: watched, store }), watched ? "the newest tree, live" : "the newest tree"],
    [commandLine("log", { store }), "what happened in it"],
    [commandLine("why /root", { store }), "why an agent does what it does"],
    ["npx coppice --help", "all commands"],
  ];
}
