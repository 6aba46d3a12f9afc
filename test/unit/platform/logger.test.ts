/** What the runtime hands to a logger (SEC-3, OBS-4). */
import { expect, test } from "vitest";
import { guardedLogger } from "../../../src/platform/logger.ts";
import { createRedactor } from "../../../src/platform/redact.ts";
import { warningsTo } from "../../support/logger.ts";

test("SEC-3 neither a field nor the message of a line holds a secret", () => {
  const said: [object, string][] = [];
  const logger = guardedLogger(
    warningsTo((fields, message) => void said.push([fields, message])),
    createRedactor(["open sesame"]),
  );
  logger.warn({ word: "open sesame", err: new Error("open sesame!") }, "it was open sesame");
  expect(JSON.stringify(said)).toContain("it was");
  expect(JSON.stringify([said, String((said[0]![0] as { err: Error }).err)])).not.toContain("open sesame");
});
