/**
 * The user's own module, by `--config` or COPPICE_CONFIG: its default export is what `createRuntime` takes, but for the store.
 * It is code and is run, so nothing is looked for where it was not named.
 */
import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { RuntimeOptions } from "../runtime/options.ts";
import { badUse } from "./failure.ts";

export interface Config extends Omit<RuntimeOptions, "store"> {
  readonly providers: NonNullable<RuntimeOptions["providers"]>;
}

/** @throws CommandError `INVALID_ARGUMENT`. What it holds beside is for others to check. */
export async function loadConfig(option: string | undefined, taken: readonly string[]): Promise<Config> {
  const named = option ?? process.env["COPPICE_CONFIG"] ?? "";
  if (named === "") return { providers: {} };
  const path = resolve(named);
  if (!existsSync(path)) throw badUse(`there is no file ${path}; --config names a module of your own.`);
  if (statSync(path).isDirectory())
    throw badUse(`${path} is a folder; --config names a module of your own, such as a file in it.`);
  const given = await importOf(path);
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw badUse(
      `${path} has no default export that holds options; write: export default { providers: { … } }`,
    );
  }
  const { providers = {}, ...rest } = given as Partial<RuntimeOptions>;
  if (rest.store !== undefined) throw badUse(`${path} holds a store; leave it out, and give --store.`);
  const names = typeof providers === "object" && providers !== null ? Object.keys(providers) : [];
  const again = names.filter((name) => taken.includes(name));
  if (again.length > 0) {
    throw badUse(
      `${path} calls a provider ${again[0]}, as the command line calls one of its own; give it another name.`,
    );
  }
  return { ...rest, providers };
}

async function importOf(path: string): Promise<unknown> {
  try {
    return ((await import(pathToFileURL(path).href)) as { readonly default?: unknown }).default;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw badUse(`${path} cannot be loaded: ${why}`);
  }
}
