/**
 * What keeps a store from being written while a tree runs here, such as a full disk. The runtime tries again for as long as it
 * takes; whoever waits is told why, once for each code.
 */
import type { Logger } from "../platform/logger.ts";
import { ERROR_TABLE, type ErrorCode } from "../protocol/errors.ts";
import { sentence } from "./screen/words.ts";

const NOTHING = (): void => undefined;

export function storeTroubleLogger(tell: (line: string) => void): Logger {
  const told = new Set<string>();
  const look = (object: object): void => {
    const { err } = object as { readonly err?: unknown };
    // What a logger gets is a copy without secrets: no longer of its class, but with its code.
    if (!(err instanceof Error) || !("code" in err) || !isTrouble(err.code) || told.has(err.code)) return;
    told.add(err.code);
    tell(
      `${err.code}: ${sentence(err.message)} It is tried again until it works; Ctrl-C gives the tree back.`,
    );
  };
  return { debug: NOTHING, info: NOTHING, warn: look, error: look };
}

/** A store that is damaged is not tried again: whoever asked is refused. */
function isTrouble(code: unknown): code is ErrorCode {
  if (typeof code !== "string" || !code.startsWith("STORE_") || !Object.hasOwn(ERROR_TABLE, code))
    return false;
  return ERROR_TABLE[code as ErrorCode].family === "transient";
}
