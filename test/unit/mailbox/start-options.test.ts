import { expect, test } from "vitest";
import { mergeStartOptions } from "../../../src/mailbox/start-options.ts";
import type { RunId } from "../../../src/protocol/ids.ts";
import type { StartOptions } from "../../../src/protocol/mail.ts";
import { mailOf } from "./fixtures.ts";

type Row = [trigger: boolean, parent: string | null, root: string | null];
const Q = false;
const T = true;

function start(parent: string | null, root: string | null, choice: Partial<StartOptions> = {}): StartOptions {
  return { parentRunId: parent as RunId | null, rootRunId: root as RunId | null, ...choice };
}

function batch(rows: readonly Row[]) {
  return rows.map(([trigger, parent, root], at) => mailOf(at + 1, { trigger, start: start(parent, root) }));
}

const table: [name: string, rows: Row[], parent: string | null, root: string | null][] = [
  ["no mail", [], null, null],
  ["queue-only mail alone", [[Q, "run_a", "run_r"]], null, null],
  ["one trigger", [[T, "run_a", "run_r"]], "run_a", "run_r"],
  ["one trigger without a parent", [[T, null, "run_r"]], null, null],
  ["one trigger with a blank parent", [[T, " ", "run_r"]], null, null],
  ["one trigger without a root", [[T, "run_a", null]], "run_a", null],
  [
    "triggers that agree",
    [
      [T, "run_a", "run_r"],
      [T, "run_a", "run_s"],
    ],
    "run_a",
    "run_r",
  ],
  [
    "triggers that differ",
    [
      [T, "run_a", "run_r"],
      [T, "run_b", "run_s"],
    ],
    null,
    "run_r",
  ],
  [
    "a later one without a parent",
    [
      [T, "run_a", "run_r"],
      [T, null, "run_s"],
    ],
    null,
    "run_r",
  ],
  [
    "a first one without a parent",
    [
      [T, null, "run_r"],
      [T, "run_a", "run_s"],
    ],
    null,
    null,
  ],
  [
    "queue-only mail before",
    [
      [Q, "run_b", "run_s"],
      [T, "run_a", "run_r"],
    ],
    "run_a",
    "run_r",
  ],
  [
    "queue-only mail after",
    [
      [T, "run_a", "run_r"],
      [Q, "run_b", "run_s"],
    ],
    "run_a",
    "run_r",
  ],
];

test.for(table)("U-6 MBX-14 parent and root run: %s", ([, rows, parentRunId, rootRunId]) => {
  expect(mergeStartOptions(batch(rows))).toMatchObject({ parentRunId, rootRunId });
});

test("U-7 MBX-14 the latest trigger chooses, and queue-only mail never does", () => {
  const merged = mergeStartOptions([
    mailOf(1, { trigger: true, start: start(null, null, { model: "small", effort: "low" }) }),
    mailOf(2, { trigger: true, start: start(null, null, { model: "large", effort: "high" }) }),
    mailOf(3, { start: start(null, null, { model: "other" }) }),
  ]);
  expect(merged).toMatchObject({ model: "large", effort: "high" });
});

test("U-7 MBX-14 a later choice left out overrides an earlier explicit one", () => {
  const merged = mergeStartOptions([
    mailOf(1, { trigger: true, start: start(null, null, { model: "small", effort: "low" }) }),
    mailOf(2, { trigger: true, start: start(null, null, { effort: "high" }) }),
  ]);
  expect(merged).not.toHaveProperty("model");
  expect(merged.effort).toBe("high");
});

test("MBX-14 a latest trigger without options clears all choices", () => {
  const merged = mergeStartOptions([
    mailOf(1, { trigger: true, start: start("run_a", "run_r", { model: "small", effort: "low" }) }),
    mailOf(2, { trigger: true }),
  ]);
  expect(merged).not.toHaveProperty("model");
  expect(merged).not.toHaveProperty("effort");
});

test("MBX-14 the causes are all trigger-turn mail, in order", () => {
  const merged = mergeStartOptions([
    mailOf(1, { trigger: true, workId: "wrk_1" }),
    mailOf(2),
    mailOf(3, { trigger: true, resultOf: "wrk_9" }),
  ]);
  expect(merged.causes).toEqual([
    { mailId: "msg_1", workId: "wrk_1" },
    { mailId: "msg_3", workId: null },
  ]);
});
