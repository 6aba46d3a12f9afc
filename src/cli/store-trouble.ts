/**
 * What keeps a store from being written while a tree runs here, such as a full disk. The runtime tries again for as long as it
 * takes; whoever waits is told why, once for each code.
 */
import type { Logger } from "../platform/logger.ts";
import { sentence } from "./screen/words.ts";

const NOTHING = (): void => undefined;

export function storeTroubleLogger(tell: (line: string) => void): Logger {
  const told = new Set<string>();
  const look = (object: object): void => {
    const { err } = object as { readonly err?: { readonly code?: unknown; readonly message?: unknown } };
    const code = err?.code;
    if (typeof code !== "string" || !code.startsWith("STORE_") || told.has(code)) return;
    told.add(code);
    const why = typeof err?.message === "string" ? sentence(err.message) : code;
    tell(`${code}: ${why} It is tried again until it works; Ctrl-C gives the tree back.`);
  };
  return { debug: NOTHING, info: NOTHING, warn: look, error: look };
}
