/**
 * A second shell beside a running demo: the owner is spoken to through the store. The demo is held in its root's first
 * response, which takes longer than any test, so nothing here depends on who is faster.
 */
import { expect, test } from "vitest";
import { answerOf, Place, type Row, type Running, rowsOf } from "../support/cli.ts";

async function heldDemo(place: Place): Promise<Running> {
  const demo = place.demo("--dir", place.dir, "--pace", "60000");
  await demo.event("run.accepted", "/root");
  return demo;
}

test("REC-2 commands of another process are applied once, by the owner", async () => {
  using place = new Place();
  const demo = await heldDemo(place);
  const [tree, sent, short] = await Promise.all([
    place.rows("tree"),
    place.run("agent", "send", "/root", "a word from outside", "--json"),
    place.run("agent", "wait", "/root", "--timeout", "0", "--json"),
  ]);
  expect(tree[0].owner.pid).toBe(demo.child.pid);
  expect(rowsOf(sent.stdout)[0]).toMatchObject({ applied_by: "owner", agent: "/root" });
  expect(short).toMatchObject({ code: 124, stdout: "" });
  expect(JSON.parse(short.stderr)).toMatchObject({ error: { exit: 124 } });

  const waiting = place.start(["agent", "wait", "/root", "--store", place.store]);
  const watching = place.demo("--resume");
  expect(JSON.parse(await watching.line(() => true))).toMatchObject({ how: "watched" });
  const cut = await place.run("agent", "interrupt", "/root", "--json");
  expect(rowsOf(cut.stdout)[0]).toMatchObject({ applied_by: "owner", touched: [{ path: "/root" }] });

  // Who runs it, who watches it and who waits for it learn the same.
  const [ended, watched, waited] = await Promise.all([demo.ended, watching.ended, waiting.ended]);
  for (const one of [ended, watched]) {
    expect(one.code).toBe(1);
    expect(rowsOf(one.stdout).at(-1)).toMatchObject({ type: "demo.ended", ending: "interrupted" });
    expect(one.stderr).toContain("WORK_INCOMPLETE");
  }
  expect(waited).toMatchObject({ code: 1, stdout: expect.stringContaining("/root: interrupted") });
  const applied = rowsOf(ended.stdout).filter((row: Row) => row.type === "command.applied");
  expect(applied.map((row: Row) => row.data.verb)).toEqual(["send", "interrupt"]);
});

test("whoever watches takes the tree over when its owner dies, and brings it to its end", async () => {
  using place = new Place();
  const demo = await heldDemo(place);
  const watching = place.demo("--resume");
  await watching.line(() => true);
  await demo.kill();
  const ended = await watching.ended;
  expect(ended.code).toBe(0);
  expect(answerOf(ended)).toContain("src/longest.ts 30 lines");
  const endings = (await place.rows("works")).map((work: Row) => work.outcome.ending as string);
  expect(endings.filter((ending) => ending === "completed")).toHaveLength(5);
  expect(endings.filter((ending) => ending === "interrupted")).toHaveLength(1);
});
