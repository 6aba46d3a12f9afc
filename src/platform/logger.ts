/**
 * Logging with pino's shape; silent unless one is given. Never writes to standard output by itself.
 *
 * - G1 What the runtime logs is redacted before a logger gets it, whoever's it is (SEC-3).
 * - G2 A logger is an observer: when it throws, the line is lost and nothing else (OBS-4).
 */
import { pino } from "pino";
import { z } from "zod";
import { CoppiceError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";
import { check } from "./check.ts";
import { type Redact, redactJson } from "./redact.ts";

/** Where the runtime logs to, in pino's shape. */
export interface Logger {
  debug(object: object, message?: string): void;
  info(object: object, message?: string): void;
  warn(object: object, message?: string): void;
  error(object: object, message?: string): void;
}

export const silentLogger: Logger = pino({ enabled: false });

/** A logger that writes NDJSON to standard error. */
export function stderrLogger(level: "debug" | "info" | "warn" | "error"): Logger {
  check("stderrLogger", z.strictObject({ level: z.enum(["debug", "info", "warn", "error"]) }), { level });
  return pino({ level }, pino.destination({ fd: 2, sync: true }));
}

/** What the runtime logs through: the given logger, with secrets taken out before it and its faults kept from everybody. */
export function guardedLogger(logger: Logger, redact: Redact): Logger {
  if (logger === silentLogger) return logger;
  const write =
    (level: "debug" | "info" | "warn" | "error") =>
    (object: object, message?: string): void => {
      try {
        const clean = Object.entries(object).map(([key, value]) => [key, cleaned(value, redact)]);
        const said = message === undefined ? undefined : redact(message);
        logger[level](Object.fromEntries(clean) as object, said);
      } catch {
        // An observer's fault is its own.
      }
    };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
}

function cleaned(value: unknown, redact: Redact): unknown {
  if (value instanceof Error) return cleanedError(value, redact);
  if (typeof value === "string") return redact(value);
  return typeof value === "object" && value !== null ? redactJson(value as Json, redact) : value;
}

/** An error of its own, since the caught one belongs to whoever handles it. */
function cleanedError(error: Error, redact: Redact): Error {
  const clean = new Error(redact(error.message));
  clean.name = error.name;
  if (error.stack !== undefined) clean.stack = redact(error.stack);
  if (error.cause instanceof Error) clean.cause = cleanedError(error.cause, redact);
  if (!CoppiceError.is(error)) return clean;
  return Object.assign(clean, { code: error.code, details: redactJson(error.details, redact) });
}
