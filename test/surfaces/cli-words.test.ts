/** What commands say, with the command line in this process: no two lines contradict each other, and none is too long. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Place, rowsOf } from "../support/cli.ts";
import { ended } from "../support/cli-here.ts";

const place = new Place();
let thread = "";
let fork = "";
const run = (...args: readonly string[]) => ended([...args, "--store", place.store]);

beforeAll(async () => {
  const [made] = rowsOf((await run("thread", "new", "--title", "one", "--json")).out);
  thread = made.id;
  await run("thread", "continue", thread, "port 8080", "--pace", "0");
  const [forked] = rowsOf((await run("thread", "fork", thread, "--json")).out);
  fork = forked.thread.id;
  await run("thread", "continue", fork, "tabs", "--pace", "0");
  await run("thread", "merge", fork);
});
afterAll(() => place[Symbol.dispose]());

test("C6.7 a dry run with a fork that comes back says that this is all that is told, and of which thread", async () => {
  const { exit, out } = await run("thread", "switch", thread, "--provider", "echo", "--dry-run");
  expect(exit).toBe(0);
  const said = out.replaceAll(/\s+/g, " ");
  expect(said).toContain(
    "strategy it goes on, told of nothing but what comes back, in the conversation it has",
  );
  expect(said).toContain(`is told run 1 of ${fork}, which comes back: `);
  expect(said).not.toContain("told nothing");
});

test("`run` says where its store is, and that the user has asked", async () => {
  const { exit, out, aside } = await run("run", "hello", "--pace", "0");
  expect([exit, out]).toEqual([0, expect.stringMatching(/^echo heard "hello"/)]);
  expect(aside).toContain(`\nStore: ${place.store}\n`);
  expect(aside).toContain("gets input from the user");
  expect((await run("works")).out).toContain("user → root");
});

test.for([80, 40])("`coppice` and `doctor` fit in %i columns, but for what is copied", async (columns) => {
  const before = process.env["COLUMNS"];
  process.env["COLUMNS"] = String(columns);
  try {
    for (const command of [[], ["doctor"]]) {
      const { out } = await run(...command);
      const long = out
        .split("\n")
        .filter((line) => line.length > columns && !/npx coppice|^ *\S+$|^Store {2}\S+$/.test(line));
      expect(long).toEqual([]);
    }
  } finally {
    if (before === undefined) delete process.env["COLUMNS"];
    else process.env["COLUMNS"] = before;
  }
});
