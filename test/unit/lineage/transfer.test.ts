/** The moves of transfers and handoffs, and what is left of a run without text. */
import { describe, expect, test } from "vitest";
import { salvageSteps, textlessResult } from "../../../src/lineage/salvage.ts";
import { deliverHandoff, readyHandoff, supersedeHandoff } from "../../../src/lineage/handoff-record.ts";
import {
  consume,
  fail,
  intendNative,
  resolvePortable,
  resultTransfer,
  spawnTransfer,
  supersede,
  wholePoint,
} from "../../../src/lineage/transfer.ts";
import { redact } from "../../../src/platform/redact.ts";
import type { ItemBody } from "../../../src/protocol/transcript.ts";
import type { TransferRecord } from "../../../src/protocol/transfer.ts";
import { WORK_ENDINGS } from "../../../src/protocol/work.ts";

const input = {
  id: "xfr_1",
  treeId: "thread_root",
  workId: "wrk_1",
  source: "thread_root",
  target: "thread_child",
  sourcePoint: wholePoint("thread_root", { items: 4, ordinal: 1, runId: "run_1" }),
  sourceProvider: "near",
  targetProvider: "far",
  at: 10,
} as const;
const handoff = { id: "hnd_1", kind: "portable_context" } as const;
const spawn = (carries: boolean) =>
  spawnTransfer({ ...input, turns: carries ? "all" : "none", carries, createdBy: "agent" });
const result = resultTransfer({ ...input, ending: "interrupted" });
const illegal = expect.objectContaining({ code: "ILLEGAL_TRANSITION" }) as Error;

describe("a transfer", () => {
  test("begins pending, with nothing resolved", () => {
    expect(spawn(true)).toMatchObject({
      type: "subagent_spawn",
      status: "pending",
      note: "all",
      resolution: null,
      targetRunId: null,
      consumedAt: null,
      createdBy: "agent",
    });
    expect(result).toMatchObject({ type: "subagent_result", note: "interrupted", createdBy: "system" });
  });

  test("C5.19 that has moved on asks for no fork any more", () => {
    const asked = intendNative(spawn(true), "int_1", 15);
    expect(asked).toMatchObject({ status: "pending", intent: { id: "int_1", at: 15 } });
    const moved = [fail(asked, "refused", 20), supersede(asked, 20), resolvePortable(asked, handoff, 20)];
    expect(moved.map(({ intent }) => intent)).toEqual([null, null, null]);
  });

  test("that carries context is resolved, then consumed by a run", () => {
    const resolved = resolvePortable(spawn(true), handoff, 20);
    expect(resolved).toMatchObject({
      status: "resolved_portable",
      resolution: { strategy: "portable_context", contextHandoffId: "hnd_1" },
      updatedAt: 20,
    });
    expect(consume(resolved, { runId: "run_2" }, 30)).toMatchObject({
      status: "consumed",
      consumedAt: 30,
      targetRunId: "run_2",
      resolution: { contextHandoffId: "hnd_1" },
    });
  });

  test("that carries nothing is consumed without a resolution, and never resolved", () => {
    expect(consume(spawn(false), { runId: "run_2" }, 30)).toMatchObject({
      status: "consumed",
      resolution: null,
    });
    expect(() => resolvePortable(spawn(false), handoff, 20)).toThrow(illegal);
  });

  test("that carries context is not consumed unresolved", () => {
    expect(() => consume(spawn(true), { runId: "run_2" }, 30)).toThrow(illegal);
    expect(() => consume(result, { runId: "run_2" }, 30)).toThrow(illegal);
  });

  test("to a host-driven root has no run, and only a result may", () => {
    const resolved = resolvePortable(result, handoff, 20);
    expect(consume(resolved, { hostDriven: true }, 30)).toMatchObject({ consumedAt: 30, targetRunId: null });
    expect(() => consume(spawn(false), { hostDriven: true }, 30)).toThrow(illegal);
  });

  const ends: Readonly<Record<string, TransferRecord>> = {
    consumed: consume(spawn(false), { runId: "run_2" }, 30),
    failed: fail(spawn(true), "no room", 30),
    superseded: supersede(resolvePortable(spawn(true), handoff, 20), 30),
  };
  test.for(Object.keys(ends))("stays %s", (status) => {
    const record = ends[status]!;
    expect(record.status).toBe(status);
    expect(() => resolvePortable(record, handoff, 40)).toThrow(illegal);
    expect(() => consume(record, { runId: "run_3" }, 40)).toThrow(illegal);
    expect(() => fail(record, "x", 40)).toThrow(illegal);
    expect(() => supersede(record, 40)).toThrow(illegal);
  });

  test("is resolved once", () => {
    expect(() =>
      resolvePortable(resolvePortable(spawn(true), handoff, 20), { ...handoff, id: "hnd_2" }, 30),
    ).toThrow(illegal);
  });

  test("keeps its digest through every move, and has another for other content", () => {
    const first = spawn(true);
    expect(consume(resolvePortable(first, handoff, 20), { runId: "run_2" }, 30).digest).toBe(first.digest);
    expect(spawn(false).digest).not.toBe(first.digest);
  });
});

describe("a handoff", () => {
  const ready = (text: string) =>
    readyHandoff({
      id: "hnd_1",
      transfer: {
        id: "xfr_1",
        treeId: "thread_root",
        sourceThreadId: "thread_root",
        targetThreadId: "thread_child",
      },
      text,
      coveredRanges: [[0, 2]],
      redact,
      at: 10,
    });

  test("is redacted before it is stored", () => {
    expect(ready("password=hunter2 ä")).toMatchObject({
      summaryText: "password=*** ä",
      bytes: 15,
      status: "ready",
    });
  });

  test("is delivered once and may then be superseded, its text unchanged", () => {
    const delivered = deliverHandoff(ready("text"), "run_2", 20);
    expect(delivered).toMatchObject({ deliveredAt: 20, targetRunId: "run_2", digest: ready("text").digest });
    expect(() => deliverHandoff(delivered, "run_3", 30)).toThrow(illegal);
    const gone = supersedeHandoff(delivered, 30, "hnd_2");
    expect(gone).toMatchObject({
      status: "superseded",
      supersededBy: "hnd_2",
      summaryText: "text",
      deliveredAt: 20,
      updatedAt: 30,
    });
    expect(() => supersedeHandoff(gone, 40)).toThrow(illegal);
    expect(() => deliverHandoff(supersedeHandoff(ready("text"), 20), "run_2", 30)).toThrow(illegal);
  });

  test("has another digest for another text", () => {
    expect(ready("a").digest).not.toBe(ready("b").digest);
  });
});

describe("salvage", () => {
  const call = (input_: string): ItemBody => ({
    kind: "assistant",
    phase: "tools",
    parts: [
      { type: "reasoning", text: "hidden" },
      { type: "text", text: "I look\n  first" },
      { type: "tool_call", callId: "c", name: "look", input: input_ },
    ],
    model: null,
    inherited: false,
  });
  const returned = (output: string, isError: boolean): ItemBody => ({
    kind: "tool_result",
    callId: "c",
    name: "look",
    output,
    isError,
    mailIds: [],
    waitId: null,
    elapsedMs: 0,
  });
  const items = (...bodies: readonly ItemBody[]) =>
    bodies.map((body, index) => ({ ...body, index, runId: "run_1" as const, step: index + 1, at: index }));

  test("tells the last steps in order, without reasoning", () => {
    expect(
      salvageSteps(
        items(call('{"path":"a"}'), returned("12345", false), returned("no such file", true)),
        redact,
      ),
    ).toEqual([
      "step 1: wrote: I look first",
      'step 1: called look with {"path":"a"}',
      "step 2: look returned 5 bytes",
      "step 3: look failed: no such file",
    ]);
  });

  test("redacts before it cuts, and bounds lines and their number", () => {
    const secret = `${"x".repeat(195)} sk-${"a".repeat(300)}`;
    const lines = salvageSteps(items(...Array.from({ length: 30 }, () => call(secret))), redact);
    expect(lines).toHaveLength(8);
    for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(240);
    expect(lines.join("\n")).not.toContain("aaa");
    expect(lines.at(-1)).toMatch(/^step 30: called/);
  });

  test("never reads as success", () => {
    for (const ending of WORK_ENDINGS) {
      for (const lastSteps of [[], ["step 1: called look"]]) {
        expect(textlessResult(ending, { lastSteps })).toMatch(
          new RegExp(`No text came back.*\`${ending}\`.*Do not take this for success`),
        );
      }
    }
  });
});
