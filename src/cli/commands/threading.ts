/**
 * What the commands on threads share: the store with a runtime on it, the thread that is meant, and a command that is carried
 * out by the owner of its tree or here. A thread is always named: nothing is ever taken for "the newest one". The user's
 * module is read by what may change or run something, or ask a provider, and then before a store is opened, or made.
 */
import { type Command, InvalidArgumentError } from "commander";
import { type CommandVerb, isLong } from "../../protocol/command.ts";
import { CoppiceError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type CommandReceipt, commandTree } from "../../runtime/command-tree.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { type Owner, TreeReader } from "../../runtime/tree-reader.ts";
import type { Store } from "../../store/port.ts";
import type { ThreadDocument } from "../../threads/thread-view.ts";
import { DEFAULT_PACE_MS, Host, hostOf, isDemo } from "../run-tree.ts";
import { commandLine } from "../screen/command-line.ts";
import { openForReading, openForWriting, storePlace } from "../store-place.ts";
import type { Terminal } from "../terminal.ts";
import { type StoreOptions, type Told, withConfig, withStore } from "./options.ts";

export interface At {
  readonly store: Store;
  readonly threads: Runtime["threads"];
  readonly host: Host;
}

export const THREAD_ARGUMENT = "id of the thread, thread_…; `thread list` has them";

/** What a command that changes something takes beside the store. */
export interface ChangeOptions extends StoreOptions {
  readonly commandId?: string;
}

/** One that changes something, and may be given again (C3.12). */
export function changeCommand(parent: Command, name: string, told: Told): Command {
  return threadCommand(parent, name, told).option(
    "--command-id <id>",
    "the same id and command again: no second effect, and the same answer",
    commandIdOf,
  );
}

function commandIdOf(given: string): string {
  if (given.trim() !== "" && given.length <= 128) return given;
  throw new InvalidArgumentError("Give 1 to 128 characters that are not all blank.");
}

/** Of `changeThreads` and `reconcileThreads`; one that only looks has no `--config`. */
export function threadCommand(parent: Command, name: string, told: Told): Command {
  return withConfig(withStore(parent.command(name), told));
}

export function lookAtThreads<T>(options: StoreOptions, use: (at: At) => Promise<T>): Promise<T> {
  return withRuntime(new Host(), { thread: null }, () => openForReading(storePlace(options.store)), use);
}

/** `thread` is the one that may run on, or whose provider is asked: what its tree runs on is looked up then, and what a demo's needs. */
export async function changeThreads<T>(
  options: StoreOptions,
  thread: string | null,
  use: (at: At) => Promise<T>,
): Promise<T> {
  const open = () => openForWriting(storePlace(options.store));
  return withRuntime(await hostOf(options), { thread }, open, use);
}

/** For what settles or collects on its way where it can: a store that cannot be written is read as it is. */
export async function reconcileThreads<T>(
  options: StoreOptions,
  thread: string,
  use: (at: At) => Promise<T>,
): Promise<T> {
  const place = storePlace(options.store);
  const open = (): Promise<Store> =>
    openForWriting(place).catch((error: unknown) => {
      if (CoppiceError.is(error) && error.code === "STORE_IO") return openForReading(place);
      throw error;
    });
  return withRuntime(await hostOf(options), { thread }, open, use);
}

export async function withRuntime<T>(
  host: Host,
  { pace = DEFAULT_PACE_MS, thread }: { readonly pace?: number; readonly thread: string | null },
  open: () => Promise<Store>,
  use: (at: At & { readonly runtime: Runtime }) => Promise<T>,
): Promise<T> {
  const store = await open();
  try {
    const demo = thread !== null && (await isDemo(store, thread));
    if (thread !== null) await host.learn(store, thread);
    await using runtime = await host.runtime(store, { pace, demo });
    return await use({ store, threads: runtime.threads, host, runtime });
  } finally {
    await store.close();
  }
}

/** What goes on with a thread, on what it has been given. */
export function continueCommand(id: string, { config, store }: StoreOptions): string {
  return commandLine(`thread continue ${id}`, { config, store }, '-- "…"');
}

export function ownerOf({ store }: At, { treeId }: Pick<ThreadDocument, "treeId">): Promise<Owner | null> {
  return new TreeReader(store, treeId).owner();
}

/** Carries out one command on the thread's tree, whoever owns it. */
export function actOn(
  terminal: Terminal,
  { store, host }: At,
  { treeId }: Pick<ThreadDocument, "treeId">,
  verb: CommandVerb,
  args: JsonObject,
  { commandId }: ChangeOptions,
): Promise<CommandReceipt> {
  const timeoutMs = isLong(verb) ? LONG_MS : undefined;
  const wait = timeoutMs === undefined ? {} : { timeoutMs };
  const id = commandId === undefined ? {} : { commandId };
  return commandTree(store, treeId, verb, args, { signal: terminal.signal, ...host.known, ...wait, ...id });
}

/** For a command that asks a provider, or works on many files. */
const LONG_MS = 600_000;

/** One of those: by the owner where there is one, else by `here`, which opens the tree. */
export async function byOwnerOrHere(
  terminal: Terminal,
  at: At,
  thread: Pick<ThreadDocument, "treeId">,
  verb: CommandVerb,
  args: JsonObject,
  options: ChangeOptions,
  here: () => Promise<object>,
): Promise<CommandReceipt> {
  for (;;) {
    try {
      if ((await ownerOf(at, thread)) === null)
        return { appliedBy: "here", answer: (await here()) as JsonObject };
      return await actOn(terminal, at, thread, verb, args, options);
    } catch (error) {
      if (!CoppiceError.is(error) || error.code !== "NOT_OWNER" || error.details["timedOut"] === true)
        throw error;
      // It has changed hands meanwhile.
    }
  }
}

/** The result of a change: an object for programs, lines for people, the first of which says who has made it. */
export function tellChange(
  terminal: Terminal,
  options: StoreOptions,
  applied: CommandReceipt["appliedBy"] | null,
  result: object,
  lines: readonly string[],
): void {
  if (options.json === true) {
    terminal.json({ ...(applied === null ? {} : { applied_by: applied }), ...result });
    return;
  }
  for (const line of lines) terminal.line(line);
  if (applied === "owner") terminal.note("Done by the process that runs the thread's tree.");
}
