import { expect, test } from "vitest";
import {
  type DeliveryEvent,
  type DeliveryPhase,
  FIRST_PHASE,
  nextPhase,
  takesMail,
} from "../../../src/mailbox/delivery-phase.ts";

const after = (...events: DeliveryEvent[]): DeliveryPhase => events.reduce(nextPhase, FIRST_PHASE);

test("U-9 queue-only mail waits for the next run after the answer", () => {
  expect(takesMail(after("composed"))).toBe(true);
  expect(takesMail(after("composed", "answered"))).toBe(false);
  // The next run begins anew.
  expect(takesMail(FIRST_PHASE)).toBe(true);
});

test("U-10 trigger-turn mail after the answer does not prolong the run", () => {
  expect(takesMail(after("composed", "answered", "trigger_pending"))).toBe(false);
  expect(takesMail(after("composed", "answered", "trigger_pending", "answered"))).toBe(false);
});

test("U-11 a steer opens the run to mail again", () => {
  expect(takesMail(after("composed", "answered", "steered"))).toBe(true);
});

test("U-12 a late report of the answer does not undo a steer", () => {
  expect(takesMail(after("composed", "answered", "steered", "answered"))).toBe(true);
  expect(takesMail(after("composed", "steered", "answered"))).toBe(true);
  expect(takesMail(after("composed", "answered", "steered", "answered", "composed", "answered"))).toBe(false);
});

test("U-13 a tool call opens the run to mail again", () => {
  expect(takesMail(after("composed", "answered", "tool_called"))).toBe(true);
  expect(takesMail(after("composed", "answered", "tool_called", "composed", "answered"))).toBe(false);
});

test("trigger-turn mail that came before the answer keeps the run open for one more request", () => {
  expect(takesMail(after("composed", "trigger_pending", "answered"))).toBe(true);
  expect(takesMail(after("composed", "trigger_pending", "answered", "composed", "answered"))).toBe(false);
});

test("a request of the runtime after the answer, such as a repair, does not open it", () => {
  expect(takesMail(after("composed", "answered", "composed"))).toBe(false);
});
