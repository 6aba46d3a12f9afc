/** Where the store is: `--store`, else `COPPICE_STORE`, else the newest in a `.coppice` folder here or above, else XDG's. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Store } from "../store/port.ts";
import { openSqliteStore } from "../store/sqlite.ts";
import { badUse, CommandError, EXIT } from "./failure.ts";
import { commandLine } from "./screen/command-line.ts";

/** The folder in a checkout that a demo leaves its store in; git does not look into it. */
const LOCAL_FOLDER = ".coppice";

export interface StorePlace {
  readonly path: string;
  readonly from: "--store" | "COPPICE_STORE" | "this folder" | "your data folder";
}

export function storePlace(option: string | undefined): StorePlace {
  if (option?.trim() === "") throw badUse("--store is blank; give the path of a store.");
  if (option !== undefined) return { path: resolve(option), from: "--store" };
  const named = process.env["COPPICE_STORE"] ?? "";
  if (named !== "") return { path: resolve(named), from: "COPPICE_STORE" };
  const local = newestLocal(process.cwd());
  if (local !== null) return { path: local, from: "this folder" };
  const data = process.env["XDG_DATA_HOME"] ?? "";
  const base = isAbsolute(data) ? data : join(homedir(), ".local", "share");
  return { path: join(base, "coppice", "store.db"), from: "your data folder" };
}

/** Where new trees and threads are kept when nothing else is said. @throws CommandError where a folder stands. */
export function newStorePlace(option: string | undefined): StorePlace {
  const place = storePlace(option);
  if (existsSync(place.path)) requireFile(place.path);
  if (place.from !== "your data folder") return place;
  return { path: resolve(LOCAL_FOLDER, "store.db"), from: "this folder" };
}

function newestLocal(start: string): string | null {
  for (let folder = start; ; folder = dirname(folder)) {
    const local = join(folder, LOCAL_FOLDER);
    const stores = storesIn(local).toSorted((a, b) => b.changedAt - a.changedAt);
    if (stores[0] !== undefined) return stores[0].path;
    if (folder === dirname(folder)) return null;
  }
}

function storesIn(folder: string): { path: string; changedAt: number }[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(".db"))
      .map((name) => join(folder, name))
      .map((path) => ({ path, changedAt: statSync(path).mtimeMs }));
  } catch {
    // No such folder, or not ours to read: there is no store in it.
    return [];
  }
}

/** @throws CommandError when there is none. */
export function requireStore(place: StorePlace): void {
  if (!existsSync(place.path)) {
    throw new CommandError(
      EXIT.store,
      "STORE_IO",
      `there is no store at ${place.path} (from ${place.from})${madeElsewhere(place)}. Make one with: ${makers(place)}. Or name another with --store.`,
    );
  }
  requireFile(place.path);
}

/** Where one is made is not where one was looked for last: what nobody names lies in this folder. */
function madeElsewhere({ from }: StorePlace): string {
  return from === "your data folder"
    ? `, and none in ${resolve(LOCAL_FOLDER)}, where one would be made, or in a ${LOCAL_FOLDER} above`
    : "";
}

function makers({ path, from }: StorePlace): string {
  const at = from === "--store" ? { store: path } : {};
  return [commandLine("run", at, '"…"'), commandLine("demo", at), commandLine("thread new", at)].join(
    ", or ",
  );
}

function requireFile(path: string): void {
  if (statSync(path).isDirectory()) {
    throw new CommandError(EXIT.store, "STORE_IO", `${path} is a folder; name the store's file in it.`);
  }
}

export async function openForReading(place: StorePlace): Promise<Store> {
  requireStore(place);
  return openSqliteStore({ path: place.path, readOnly: true });
}

export async function openForWriting(place: StorePlace): Promise<Store> {
  requireStore(place);
  return openSqliteStore({ path: place.path });
}
