/**
 * What the commands to one agent share: the store opened for writing, the command carried out by the owner or here, and
 * `--run`, which runs the tree until nothing is left to do.
 */
import { buffer as readAll } from "node:stream/consumers";
import { type Command, Option } from "commander";
import type { AgentRecord } from "../../protocol/agent.ts";
import type { CommandVerb } from "../../protocol/command.ts";
import type { ThreadId } from "../../protocol/ids.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type CommandReceipt, commandTree } from "../../runtime/command-tree.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import type { Store } from "../../store/port.ts";
import { badUse } from "../failure.ts";
import { findTree } from "../find-tree.ts";
import { DEFAULT_PACE_MS, Host, hostOf } from "../run-tree.ts";
import { openForWriting, storePlace } from "../store-place.ts";
import type { Terminal } from "../terminal.ts";
import { type StoreOptions, type TreeOptions, wholeNumber, withConfig } from "./options.ts";
import { runUntilIdle } from "./run-until-idle.ts";
import { reportWorks } from "./wait-for-works.ts";

/** What `--json` prints of a command that may run the tree. */
export const RUN_JSON = "one object, with --run NDJSON: it and the works that have ended";

export interface RunOptions extends TreeOptions {
  readonly run?: boolean;
  readonly pace: number;
}

export function withRun(command: Command): Command {
  return withConfig(command)
    .option("--run", "when no process runs the tree: run it here until nothing is left to do")
    .addOption(paceOption().hideHelp());
}

export function paceOption(): Option {
  return new Option("--pace <ms>", "how long a response of the scripted model takes")
    .argParser(wholeNumber(0, 3_600_000))
    .default(DEFAULT_PACE_MS);
}

/** What a command to an agent is about. */
export interface Commanded {
  readonly store: Store;
  readonly tree: TreeReader;
  readonly agent: AgentRecord;
  /** What the tree runs on here: read and held against the tree once, and not before it is to run here. */
  readonly host: () => Promise<Host>;
}

/** @param named path or id of the agent, or how it is found in the store. */
export async function commanding(
  options: TreeOptions & { readonly run?: boolean },
  named: string | ((store: Store) => Promise<ThreadId>),
  use: (at: Commanded) => Promise<void>,
): Promise<void> {
  if (options.config !== undefined && options.run !== true)
    throw badUse("--config is of what runs the tree here; give --run, too, or leave it out.");
  const store = await openForWriting(storePlace(options.store));
  try {
    const target = typeof named === "string" ? named : await named(store);
    const tree = await findTree(store, options.tree, target);
    // Said before anything is stored: a wrong name, and a tree that cannot run here, are faults of the caller.
    const agent = await tree.agent(target);
    let checked: Promise<Host> | null = null;
    const host = (): Promise<Host> => (checked ??= checkedHost(options, store, tree));
    if (options.run === true && (await tree.owner()) === null) await host();
    await use({ store, tree, agent, host });
  } finally {
    await store.close();
  }
}

async function checkedHost(options: TreeOptions, store: Store, tree: TreeReader): Promise<Host> {
  const host = await hostOf(options);
  await host.requireRunnable(store, tree);
  return host;
}

export function act(terminal: Terminal, { store, tree }: Commanded, verb: CommandVerb, args: JsonObject) {
  return commandTree(store, tree.id, verb, args, { signal: terminal.signal, ...new Host().known });
}

export function tell(
  terminal: Terminal,
  options: StoreOptions,
  receipt: CommandReceipt,
  words: { readonly owner: string; readonly here: string },
): void {
  if (options.json === true) terminal.json({ applied_by: receipt.appliedBy, ...receipt.answer });
  else terminal.line(receipt.appliedBy === "owner" ? words.owner : words.here);
}

/**
 * Runs the tree here and tells how the work that was asked for has ended; without one, how that has ended which was open: the
 * root's, for which somebody waits, else the agent's.
 */
export async function runHere(
  terminal: Terminal,
  at: Commanded,
  options: RunOptions,
  receipt: CommandReceipt,
  asked?: string,
): Promise<void> {
  if (receipt.appliedBy === "owner") {
    // It does what there is to do.
    terminal.note("A process runs the tree already, and does it there.");
    return;
  }
  const open = await at.store.read((view) => {
    const works = view.openWorksOf(at.tree.id);
    return works.length > 0 ? works : view.openWorksOf(at.agent.threadId);
  });
  await runUntilIdle(terminal, at, options);
  if (asked !== undefined) return reportWorks(terminal, at.store, [asked], options);
  const ids = open.map(({ id }) => id);
  const ended = await at.store.read((view) => ids.filter((id) => view.work(id)?.state === "ended"));
  await reportWorks(terminal, at.store, ended, options);
}

export async function messageOf(argument: string | undefined): Promise<string> {
  if (argument === undefined && process.stdin.isTTY === true) {
    throw badUse("the message is missing; give it as the last argument, or on standard input.");
  }
  const message = argument === undefined || argument === "-" ? await readInput() : argument;
  if (message.trim() === "") throw badUse("the message is blank; say something.");
  return message;
}

async function readInput(): Promise<string> {
  const bytes = await readAll(process.stdin);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badUse("standard input is not UTF-8; send text in UTF-8.");
  }
}
