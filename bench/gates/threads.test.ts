/** Long threads, many threads and many switches cost what a short thread costs, or as much more as there is more to tell. */
import { describe, expect, test } from "vitest";
import { ABOUT_THE_SAME, costRatio, growth, WITHIN } from "../lib/growth.ts";
import * as lineage from "../workloads/lineage.ts";
import { forkScene, listScene, runScene, type Scene, transcriptScene } from "../workloads/threads.ts";

async function expectAboutTheSame(scene: Scene | Promise<Scene>): Promise<void> {
  await using opened = await scene;
  expect(await costRatio(opened.few, opened.many, ABOUT_THE_SAME)).toBeLessThanOrEqual(ABOUT_THE_SAME);
}

describe.each(["memory", "sqlite"] as const)("threads on %s", (store) => {
  test("a fork of ten thousand items, and of ten", () => expectAboutTheSame(forkScene(store)));

  test("a page of a transcript across twenty-five ancestors, and across one", () =>
    expectAboutTheSame(transcriptScene(store, "all")));

  test("the first page of twenty thousand threads, and of a thousand", () =>
    expectAboutTheSame(listScene(store, 20)));
});

test("runs of a thread that has had six hundred, and of a new one", () =>
  expectAboutTheSame(runScene("memory", 600)));

test("the start of a run after ten runs, and after a thousand that five providers had one after the other", () =>
  expectAboutTheSame(lineage.startScene()));

test("a line of a snapshot at its cap, and of a small one", () =>
  expectAboutTheSame(lineage.snapshotScene()));

test("growth of the start of a run with the runs that five providers had in turn", async () => {
  const ratio = await growth(200, (runs) => lineage.starts(runs, "one by one", 40)());
  expect(ratio).toBeLessThanOrEqual(WITHIN);
});

test("growth of a handoff with the items that it tells of", async () => {
  const ratio = await growth(1000, (items) => lineage.handoffs(items, 4)());
  expect(ratio).toBeLessThanOrEqual(WITHIN);
});
