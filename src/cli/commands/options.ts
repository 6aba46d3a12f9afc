/** Options that commands share, and how their values are read. */
import { type Command, InvalidArgumentError } from "commander";
import type { Store } from "../../store/port.ts";
import { findTree } from "../find-tree.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import { openForReading, storePlace } from "../store-place.ts";

export interface StoreOptions {
  readonly store?: string;
  readonly json?: boolean;
}

export interface TreeOptions extends StoreOptions {
  readonly tree?: string;
}

export function withStore(command: Command): Command {
  return command
    .option("--store <file>", "the store; else COPPICE_STORE, the newest in ./.coppice, or your data folder")
    .option("--json", "JSON for programs on standard output, and nothing else there");
}

export function withTree(command: Command): Command {
  return withStore(command).option("--tree <id>", "the tree, by its id; default: the newest");
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

/** A whole number within bounds. */
export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
