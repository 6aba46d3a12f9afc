import { describe, expect, test } from "vitest";
import { type DrainRequest, joining, selectBatch } from "../../../src/mailbox/drain.ts";
import type { MailRecord } from "../../../src/protocol/mail.ts";
import { mailOf, payload } from "./fixtures.ts";

const sized = (seq: number, bytes: number, overrides: Partial<MailRecord> = {}) =>
  mailOf(seq, { ...payload("x".repeat(bytes)), ...overrides });

function drain(unread: readonly MailRecord[], overrides: Partial<DrainRequest> = {}) {
  const batch = selectBatch({ unread, runId: "run_1", phase: "boundary", budgetBytes: 1_000, ...overrides });
  const seqs = (mail: readonly MailRecord[]) => mail.map(({ seq }) => seq);
  return { mail: seqs(batch.mail), stubs: seqs(batch.stubs), leftOut: seqs(batch.leftOut), more: batch.more };
}

test("U-5 mail drains in order of delivery, then nothing is left", () => {
  const unread = [mailOf(1), mailOf(2)];
  expect(drain(unread)).toMatchObject({ mail: [1, 2], more: false });
  expect(drain(unread.map((mail) => ({ ...mail, state: "delivered" as const })))).toMatchObject({ mail: [] });
});

describe("the budget", () => {
  test("takes the oldest up to it and leaves the rest for the next boundary", () => {
    expect(drain([sized(1, 400), sized(2, 600), sized(3, 1)])).toMatchObject({ mail: [1, 2], more: true });
  });

  test("always takes one message, however large", () => {
    expect(drain([sized(1, 5_000), sized(2, 1)])).toMatchObject({ mail: [1], more: true });
  });

  test("never lets a small message overtake a large one", () => {
    expect(drain([sized(1, 900), sized(2, 900), sized(3, 10)]).mail).toEqual([1]);
  });
});

describe("what does not join", () => {
  test("mail that a wait of this run handed out; for another run it is mail", () => {
    const unread = [mailOf(1, { boundRunId: "run_1" }), mailOf(2, { boundRunId: "run_0" })];
    expect(drain(unread).mail).toEqual([2]);
  });

  test.each(["first", "boundary"] as const)(
    "mail for the next run that came after this one was reserved: %s",
    (phase) => {
      const unread = [mailOf(1), mailOf(2, { kind: "user", nextRun: true, trigger: true }), mailOf(3)];
      expect(drain(unread, { phase, reservedSeq: 1 }).mail).toEqual([1, 3]);
      expect(drain(unread, { phase, reservedSeq: 2 }).mail).toEqual([1, 2, 3]);
    },
  );

  test("anything but the user's input in the late-draining first request", () => {
    const unread = [mailOf(1), mailOf(2, { kind: "user", trigger: true }), mailOf(3)];
    expect(drain(unread, { phase: "first", lateAfter: 0 }).mail).toEqual([2]);
    expect(drain(unread, { phase: "first", lateAfter: 1 }).mail).toEqual([1, 2]);
    expect(drain(unread, { phase: "boundary", lateAfter: 0 }).mail).toEqual([1, 2, 3]);
  });

  test("queue-only mail after refusals, save results as stubs", () => {
    const unread = [
      mailOf(1),
      mailOf(2, { trigger: true }),
      mailOf(3, { kind: "final_answer", resultOf: "wrk_1" }),
      mailOf(4, { kind: "final_answer", resultOf: "wrk_2", trigger: true }),
    ];
    expect(drain(unread, { withoutQueueOnly: true })).toEqual({
      mail: [2, 4],
      stubs: [3],
      leftOut: [1, 3],
      more: false,
    });
  });
});

test("what a run could still take is what holds its end up", () => {
  const unread = [
    mailOf(1, { trigger: true, boundRunId: "run_1" }),
    mailOf(2, { trigger: true }),
    mailOf(3, { steer: true }),
    mailOf(4, { nextRun: true }),
  ];
  const seqs = joining(unread, { id: "run_1", reservedSeq: 1 }).map(({ seq }) => seq);
  expect(seqs).toEqual([2, 3]);
});
