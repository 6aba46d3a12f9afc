/** The newest step of a run where its transcript cannot be read: whoever begins something on it is told. */
import { expect, test } from "vitest";
import { newestStep } from "../../../src/control/thread-point.ts";
import { RejectedError } from "../../../src/protocol/errors.ts";
import type { RunRecord } from "../../../src/protocol/run.ts";
import type { StoreView } from "../../../src/store/port.ts";

test("a transcript that cannot be read is no transcript without steps", () => {
  const view = {
    items: () => {
      throw new RejectedError("STORE_CORRUPT", "a row cannot be read", {});
    },
  } as unknown as StoreView;
  const run = { id: "run_a", firstItem: 0 } as unknown as RunRecord;
  expect(() => newestStep(view, { threadId: "thread_a", items: 3 }, run)).toThrow(
    expect.objectContaining({ code: "STORE_CORRUPT" }),
  );
});
