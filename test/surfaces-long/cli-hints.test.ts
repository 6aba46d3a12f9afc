/** Commands that are printed to be typed next, options before the command, and the log as one reads it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place, rowsOf } from "../support/cli.ts";

const LONG = "an_agent_of_a_long_name";
const place = new Place();
let thread = "";

beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store });
  await using runtime = await createRuntime({
    store,
    providers: { echo: scripted({ "*": [repeat(say("an answer"))] }) },
  });
  const { threads } = runtime;
  ({ id: thread } = await threads.create({ provider: "echo", workspace: place.path }));
  await threads.continue(thread, "one");
  const tree = await runtime.openTree({ id: (await threads.get(thread)).treeId });
  await tree.idle();
  for (const name of [LONG, "parent"]) await tree.root.spawn(name, "Go.");
  await tree.idle();
  await (await tree.agent("/root/parent")).spawn(LONG, "Go.");
  await tree.idle();
});
afterAll(() => place[Symbol.dispose]());

describe("a command that is printed to be typed next", () => {
  test.for([
    ["log", "--limit", "2"],
    ["works", "--limit", "1"],
    ["transfers", "--limit", "1"],
  ] as const)("names the store, the tree and the page of %j again, and leads on", async (args) => {
    const { stderr, stdout } = await place.run(...args, "--tree", thread);
    const [, command] = /npx coppice (.*)/.exec(stderr)!;
    expect(command).toContain(`--limit ${args[2]}`);
    expect(command).toContain(`--tree ${thread} --store ${place.store}`);
    const next = await place.start(command!.split(" "), { COPPICE_STORE: join(place.path, "no.db") }).ended;
    expect(next.code).toBe(0);
    expect(next.stdout).not.toBe(stdout);
  });

  test("names the thread and the store", async () => {
    const { stdout } = await place.run("thread", "new");
    expect(stdout).toMatch(/Next: npx coppice thread continue thread_\S+ --store \S+ -- "…"/);
    const home = await place.run();
    expect(home.stdout).toContain(`npx coppice log --store ${place.store}`);
  });
});

describe("an option before the command", () => {
  test("is the command's", async () => {
    const store = join(place.path, "own.db");
    const made = await place.start(["--store", store, "--json", "thread", "new"]).ended;
    expect(made.code).toBe(0);
    expect(rowsOf(made.stdout)).toMatchObject([{ path: "/root" }]);
    expect(existsSync(store)).toBe(true);
    expect(existsSync(join(place.path, ".coppice"))).toBe(false);
  });

  test("gives way to the one after it, and is refused where no command takes it", async () => {
    const before = await place.start(["--store", "no.db", "tree", "--store", place.store]).ended;
    expect(before.code).toBe(0);
    const { code, stderr } = await place.start(["--config", "x.mjs", "thread", "list"]).ended;
    expect(code).toBe(2);
    expect(stderr).toContain("--config");
  });
});

describe("the log", () => {
  test("is whole in a pipe, and tells agents of one name apart", async () => {
    const { stdout } = await place.run("log", "--tree", thread);
    expect(stdout).toContain(` /root/${LONG} `);
    expect(stdout).toContain(` /root/parent/${LONG} `);
    expect(stdout).toContain(" parent ");
    expect(stdout).not.toContain("…");
  });

  test("has pages of as many lines as it shows", async () => {
    for (const limit of [1, 3, 5]) {
      const { stdout } = await place.run("log", "--tree", thread, "--limit", String(limit));
      expect(stdout.trimEnd().split("\n")).toHaveLength(limit);
    }
    const last = (await place.rows("log", "--tree", thread)).at(-1).seq as number;
    const none = await place.run("log", "--tree", thread, "--after", String(last));
    expect(none.stdout).toBe(`Nothing has happened after ${last}.\n`);
  });
});
