/**
 * What keeps a store from being written while a tree runs here, such as a full disk. The runtime tries again for as long as it
 * takes; whoever waits is told why, once for each code.
 */
import type { Logger } from "../platform/logger.ts";
import { TransientError } from "../protocol/errors.ts";
import { sentence } from "./screen/words.ts";

const NOTHING = (): void => undefined;

export function storeTroubleLogger(tell: (line: string) => void): Logger {
  const told = new Set<string>();
  const look = (object: object): void => {
    const { err } = object as { readonly err?: unknown };
    // A store that is damaged is not tried again: whoever asked is refused.
    if (!(err instanceof TransientError) || !err.code.startsWith("STORE_") || told.has(err.code)) return;
    told.add(err.code);
    tell(
      `${err.code}: ${sentence(err.message)} It is tried again until it works; Ctrl-C gives the tree back.`,
    );
  };
  return { debug: NOTHING, info: NOTHING, warn: look, error: look };
}
