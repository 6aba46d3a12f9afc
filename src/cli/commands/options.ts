/** Options that commands share, and how their values are read. */
import { type Command, InvalidArgumentError } from "commander";
import type { Store } from "../../store/port.ts";
import type { GivenOptions } from "../screen/command-line.ts";
import { findTree } from "../find-tree.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import { openForReading, storePlace } from "../store-place.ts";

export interface StoreOptions {
  readonly store?: string;
  /** Of commands that can run something: a module of the user's (`withConfig`). */
  readonly config?: string;
  readonly json?: boolean;
}

export interface TreeOptions extends StoreOptions {
  readonly tree?: string;
}

/** What the help of a command tells beside its options. */
export interface Told {
  /** What `--json` prints: one object, or NDJSON and what its lines are. */
  readonly json: string;
  /** A call of the command, without `npx coppice`. */
  readonly example: string;
}

/** The option that names a store, with its words. */
export const STORE_OPTION = [
  "--store <file>",
  "the store; else COPPICE_STORE, the newest in .coppice here or in a folder above, or your data folder",
] as const;

export function withStore(command: Command, { json, example }: Told): Command {
  return command
    .option(...STORE_OPTION)
    .option("--json", `for programs: ${json}, and nothing else on standard output`)
    .addHelpText("after", `\nExample: npx coppice ${example}`.trimEnd());
}

export function withConfig(command: Command): Command {
  return command.option(
    "--config <file>",
    "a module of yours whose default export adds providers, tools and settings; else COPPICE_CONFIG",
    notBlank,
  );
}

export function withTree(command: Command, told: Told): Command {
  return withStore(command, told).option("--tree <id>", "the tree, by its id; default: the newest");
}

/** What a command on the same tree is to be given again. */
export function given({ store, tree }: TreeOptions): GivenOptions {
  return { tree, store };
}

/** Opens the store for reading, and closes it after. */
export async function reading<T>(
  options: TreeOptions,
  agent: string | undefined,
  use: (tree: TreeReader, store: Store) => Promise<T>,
): Promise<T> {
  const store = await openForReading(storePlace(options.store));
  try {
    return await use(await findTree(store, options.tree, agent), store);
  } finally {
    await store.close();
  }
}

/** A text that says something. */
export function notBlank(text: string): string {
  if (text.trim() !== "") return text;
  throw new InvalidArgumentError("It is blank; say something, or leave it out.");
}

/** A whole number within bounds; `Infinity` is none. */
export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const number = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number >= least && number <= most)
      return number;
    const bounds = most === Infinity ? `${least} or more` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`Give a whole number, ${bounds}.`);
  };
}
