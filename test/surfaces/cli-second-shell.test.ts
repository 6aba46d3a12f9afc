/** A second shell beside a running demo: the owner is spoken to through the store. */
import { expect, test } from "vitest";
import { answerOf, Place, type Row, rowsOf } from "../support/cli.ts";

test("REC-2 commands of another process are applied once by the owner, which goes on to its end", async () => {
  using place = new Place();
  const demo = place.demo("--dir", place.dir, "--pace", "700");
  await demo.event("run.accepted", "/root/reader");

  // All at once: they are rows of one inbox.
  const [tree, sent, followed, watched] = await Promise.all([
    place.rows("tree"),
    place.run("agent", "send", "/root/searcher", "a word from outside", "--json"),
    place.run("agent", "followup", "/root/reader", "Read `docs/guide.md`", "--json"),
    place.demo("--resume").ended,
  ]);
  expect(tree[0].owner.pid).toBe(demo.child.pid);
  expect(rowsOf(sent.stdout)[0]).toMatchObject({ applied_by: "owner", agent: "/root/searcher" });
  const work = rowsOf(followed.stdout)[0].work_id as string;

  // `--resume` while it runs watches, and ends with the same answer.
  const ended = await demo.ended;
  expect(ended.code).toBe(0);
  expect(watched.code).toBe(0);
  expect(watched.stderr).toContain(`Process ${demo.child.pid} still runs it`);
  expect(answerOf(watched)).toBe(answerOf(ended));

  const applied = rowsOf(ended.stdout).filter((row: Row) => row.type === "command.applied");
  expect(applied.map((row: Row) => row.data.verb).toSorted()).toEqual(["followup", "send"]);
  const works = await place.rows("works");
  expect(works.find((row: Row) => row.id === work)).toMatchObject({ outcome: { ending: "completed" } });
});

test("INT-1 an interrupt from a second shell cuts the root off, and the demo says how far it came", async () => {
  using place = new Place();
  const demo = place.demo("--dir", place.dir, "--pace", "700");
  await demo.event("run.accepted", "/root/counter");
  const cut = await place.run("agent", "interrupt", "/root", "--cascade", "subtree", "--json");
  const touched = rowsOf(cut.stdout)[0].touched.map((one: Row) => one.path);
  expect(touched).toContain("/root");
  expect(touched).toContain("/root/counter");
  const ended = await demo.ended;
  expect(ended.code).toBe(1);
  expect(JSON.parse(ended.stderr)).toMatchObject({ error: { code: "WORK_INCOMPLETE", exit: 1 } });
  expect(rowsOf(ended.stdout).at(-1)).toMatchObject({ type: "demo.ended", ending: "interrupted" });
});

test("`agent wait` ends with the result, or with 124 when its time is over", async () => {
  using place = new Place();
  const demo = place.demo("--dir", place.dir, "--pace", "500");
  await demo.event("run.accepted", "/root/reader");
  const [short, long] = await Promise.all([
    place.run("agent", "wait", "/root", "--timeout", "0", "--json"),
    place.run("agent", "wait", "/root"),
  ]);
  expect(short).toMatchObject({ code: 124, stdout: "" });
  expect(JSON.parse(short.stderr)).toMatchObject({ error: { exit: 124 } });
  expect(long.code).toBe(0);
  expect(long.stdout).toContain("/root: completed");
  expect((await demo.ended).code).toBe(0);
});
