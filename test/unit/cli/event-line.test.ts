/** What a follower of a tree reads of one event. */
import { expect, test } from "vitest";
import type { RuntimeEvent } from "../../../src/protocol/events.ts";
import { eventLine } from "../../../src/cli/screen/event-line.ts";

const RETRYING: RuntimeEvent = {
  id: "evt_a",
  treeId: "thread_a",
  seq: 1,
  at: 0,
  type: "run.retrying",
  path: "/root",
  threadId: "thread_a",
  runId: "run_a",
  workId: null,
  data: {},
};

test.for([
  [{ attempt: 1, delayMs: 250, code: "PROVIDER_UNREACHABLE" }, "asks its model again"],
  [{ lostRuns: 1, of: 3, stopped: false }, "begins anew: its run was lost"],
  [{ lostRuns: 0, of: 3, stopped: true }, "begins anew: its run was stopped with its runtime"],
] as const)("REC-1 a run that is tried again says why: %j", ([data, what]) => {
  expect(eventLine({ ...RETRYING, data })?.what).toBe(what);
});

test("OBS-3 a run that fails says with which error", () => {
  const error = { code: "PROVIDER_REFUSED", message: "no.", status: 400 };
  const data = { status: "failed", reason: "provider_error", steps: 0, error };
  const line = eventLine({ ...RETRYING, type: "run.settled", data });
  expect(line?.what).toBe("ends failed: provider error: PROVIDER_REFUSED: no.");
});
