/** Answers to approvals, as people write them and as they are stored. */
import { expect, test } from "vitest";
import { type Decision, decisionText, readDecision } from "../../../src/protocol/decision.ts";

test.for([
  ["yes", "approved", null],
  [" Approved ", "approved", null],
  ["approved: once", "approved", "once"],
  ["denied", "denied", null],
  ["no", "denied", null],
  ["no, thanks", "denied", "no, thanks"],
  ["denied: not\nnow", "denied", "not\nnow"],
  ["yes, but not today", "denied", "yes, but not today"],
  ["", "denied", null],
] as const)("%j is read as %s", ([text, verdict, note]) => {
  expect(readDecision(text)).toEqual({ verdict, note });
});

test.for<Decision>([
  { verdict: "approved", note: null },
  { verdict: "approved", note: "once" },
  { verdict: "denied", note: null },
  { verdict: "denied", note: "yes" },
])("%j is read from its text as it was", (decision) => {
  expect(readDecision(decisionText(decision))).toEqual(decision);
});
