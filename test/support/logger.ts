/** A logger for tests of what is said: each warning is handed on, and nothing else. */
import type { Logger } from "../../src/platform/logger.ts";

export function warningsTo(take: (fields: object, message: string) => void): Logger {
  const ignore = (): void => undefined;
  return {
    debug: ignore,
    info: ignore,
    error: ignore,
    warn: (fields, message = "") => take(fields, message),
  };
}

/** The messages of the warnings. */
export function loggerTo(said: string[]): Logger {
  return warningsTo((_fields, message) => void said.push(message));
}
