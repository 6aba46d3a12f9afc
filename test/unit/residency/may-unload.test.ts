import { expect, test } from "vitest";
import { mayUnload, type UnloadFacts, unloadRank } from "../../../src/residency/may-unload.ts";

const idle: UnloadFacts = {
  lastRunSettled: true,
  inParkableWait: false,
  reserved: false,
  triggerMailPending: false,
  queueOnlyMailPending: false,
  requestPending: false,
  pinPendingMail: false,
};
const running = { ...idle, lastRunSettled: false };
const parked = { ...running, inParkableWait: true };

test.for([
  ["an idle agent may", idle, true],
  ["a running one may not", running, false],
  ["one in a wait that can be parked may", parked, true],
  ["a reserved one may not", { ...idle, reserved: true }, false],
  ["one with trigger-turn mail may not", { ...idle, triggerMailPending: true }, false],
  ["one with trigger-turn mail may when parked in a wait", { ...parked, triggerMailPending: true }, true],
  ["one with queue-only mail may", { ...idle, queueOnlyMailPending: true }, true],
  ["one with a question open may not", { ...idle, requestPending: true }, false],
  ["one with a question open may not, though it waits", { ...parked, requestPending: true }, false],
] as const)("RES-3 %s", ([, facts, may]) => {
  expect(mayUnload(facts)).toBe(may);
});

test.for([
  ["without mail", idle, "no_mail"],
  ["with mail", { ...idle, queueOnlyMailPending: true }, "mail"],
  ["pinned by its mail", { ...idle, queueOnlyMailPending: true, pinPendingMail: true }, "pinned"],
  ["pinned, but without mail", { ...idle, pinPendingMail: true }, "no_mail"],
  ["pinned in a wait", { ...parked, triggerMailPending: true, pinPendingMail: true }, "pinned"],
  ["not at all", running, null],
] as const)("RES-3 the rank of one %s", ([, facts, rank]) => {
  expect(unloadRank(facts)).toBe(rank);
});
