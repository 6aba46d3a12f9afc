/** Logging with pino's shape; silent unless one is given. Never writes to standard output by itself. */
import { pino } from "pino";

export interface Logger {
  debug(object: object, message?: string): void;
  info(object: object, message?: string): void;
  warn(object: object, message?: string): void;
  error(object: object, message?: string): void;
  child(bindings: Record<string, unknown>): Logger;
}

export const silentLogger: Logger = pino({ enabled: false });

/** A logger that writes NDJSON to standard error; secrets are redacted before they get there (SEC-3). */
export function stderrLogger(level: "debug" | "info" | "warn" | "error"): Logger {
  return pino({ level }, pino.destination({ fd: 2, sync: true }));
}
