/** What a command that runs a tree says of a store that is in the way. */
import { expect, test } from "vitest";
import { guardedLogger } from "../../../src/platform/logger.ts";
import { storeTroubleLogger } from "../../../src/cli/store-trouble.ts";
import { RejectedError, TransientError } from "../../../src/protocol/errors.ts";

test("REC-3 a store that cannot be written is told once, with what to do, and nothing else is", () => {
  const lines: string[] = [];
  // As the runtime logs: without secrets, which makes another error of it.
  const logger = guardedLogger(
    storeTroubleLogger((line) => lines.push(line)),
    (text) => text,
  );
  const full = { err: new TransientError("STORE_FULL", "the store has no space left; free some") };
  logger.warn(full, "the store failed; trying again");
  logger.warn(full, "the store failed; trying again");
  logger.error({ err: new Error("something else") }, "a run was dropped");
  logger.warn(
    { err: new RejectedError("STORE_CORRUPT", "a row cannot be read") },
    "a thread was passed over",
  );
  logger.info({}, "a tree is opened");
  expect(lines).toEqual([
    "STORE_FULL: the store has no space left; free some. It is tried again until it works; Ctrl-C gives the tree back.",
  ]);
});
