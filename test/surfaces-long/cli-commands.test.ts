import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EXIT } from "../../src/cli/failure.ts";
import { Place, type Row, rowsOf } from "../support/cli.ts";

/** A store in which a demo has come to its end. */
const place = new Place();

beforeAll(async () => {
  expect(await place.demo("--dir", place.dir).ended).toMatchObject({ code: 0 });
});
afterAll(() => place[Symbol.dispose]());

describe("what a tree has left", () => {
  test("`tree` shows each agent, for people and for programs", async () => {
    const [text, [tree]] = await Promise.all([place.run("tree"), place.rows("tree")]);
    expect(text).toMatchObject({ code: 0, stderr: "" });
    expect(text.stdout).toMatch(/^\/root +completed/m);
    expect(text.stdout).toMatch(/^└─ searcher completed/m);
    expect(text.stdout).not.toContain("\u001b");
    expect(tree.owner).toBeNull();
    const paths = tree.agents.map((agent: Row) => agent.path);
    expect(paths).toEqual(["/root", "/root/counter", "/root/reader", "/root/searcher"]);
  });

  test("`log` pages: what is left out is told, and the cursor goes on", async () => {
    const [first, rows] = await Promise.all([
      place.run("log", "--after", "0", "--limit", "5", "--all"),
      place.rows("log", "--after", "5", "--limit", "3"),
    ]);
    expect(first.stdout).toContain("tree.opened");
    expect(first.stdout.trim().split("\n")).toHaveLength(5);
    expect(first.stderr).toMatch(/more: npx coppice log --after 5/);
    expect(rows.map((row: Row) => row.seq)).toEqual([6, 7, 8]);
  });

  test("`works`, `transfers` and `owed` are the books", async () => {
    const [works, transfers, owed] = await Promise.all([
      place.run("works"),
      place.rows("transfers"),
      place.run("owed", "/root"),
    ]);
    expect(works.stdout).toContain("root → searcher  interrupted");
    const kinds = transfers.map((transfer: Row) => transfer.type);
    expect(kinds.filter((kind) => kind === "subagent_spawn")).toHaveLength(3);
    expect(kinds.filter((kind) => kind === "subagent_result")).toHaveLength(5);
    expect(owed.stdout).toContain("Others owe /root: nothing");
  });

  test("OBS-3 `why` explains an agent, and that nobody runs its tree", async () => {
    const [text, [explained]] = await Promise.all([
      place.run("why", "/root/searcher"),
      place.rows("why", "searcher"),
    ]);
    expect(text.stdout).toContain("No process owns this tree");
    expect(explained).toMatchObject({ path: "/root/searcher", status: "idle" });
  });

  test("without arguments it says what it found and what to do next; `doctor` what is there", async () => {
    const [home, doctor] = await Promise.all([place.run(), place.run("doctor", "--json")]);
    expect(home.code).toBe(0);
    expect(home.stdout).toContain(place.store);
    expect(home.stdout).toContain("npx coppice tree");
    const [row] = rowsOf(doctor.stdout);
    expect(row.store.state).toBe("in order, 1 tree");
    expect(row.vendors.map((vendor: Row) => vendor.vendor)).toContain("openai");
  });
});

describe("a tree that nobody runs", () => {
  test("a message is appended, and the command says that nobody reads it yet", async () => {
    const sent = await place.run("agent", "send", "/root/reader", "for later");
    expect(sent).toMatchObject({ code: 0 });
    expect(sent.stdout).toContain("No process runs the tree");
    const [tree] = await place.rows("tree");
    expect(tree.agents.find((agent: Row) => agent.path === "/root/reader").unread).toBe(1);
  });

  test("a task starts with --run, which runs the tree until it is idle and shows the result", async () => {
    const ran = await place.run(
      "agent",
      "followup",
      "reader",
      "Read `docs/guide.md`",
      "--run",
      "--pace",
      "0",
    );
    expect(ran.code).toBe(0);
    expect(ran.stdout).toContain('Read docs/guide.md: "Guide"');
    const waited = await place.run("agent", "wait", "/root/reader", "--json");
    expect(rowsOf(waited.stdout)[0].outcome.text).toContain("docs/guide.md");
    const [tree] = await place.rows("tree");
    expect(tree).toMatchObject({ owner: null });
    expect(tree.agents.find((agent: Row) => agent.path === "/root/reader").unread).toBe(0);
  });

  test("interrupting what rests says so; a closed agent takes nothing more", async () => {
    const idle = await place.run("agent", "interrupt", "/root/counter");
    expect(idle).toMatchObject({ code: 0, stdout: "There was nothing to interrupt.\n" });
    const closed = await place.run("agent", "close", "/root/counter", "--json");
    expect(rowsOf(closed.stdout)).toEqual([{ applied_by: "here", closed: ["/root/counter"] }]);
    const late = await place.run("agent", "send", "/root/counter", "hello", "--json");
    expect(late).toMatchObject({ code: 3, stdout: "" });
    expect(JSON.parse(late.stderr)).toMatchObject({ error: { code: "AGENT_CLOSED", exit: 3 } });
  });

  test("a task waits for a run: waiting for it without one is refused, not endless", async () => {
    const asked = await place.run("agent", "followup", "searcher", "-", "--json");
    expect(asked).toMatchObject({ code: 2, stdout: "" });
    const place2 = place.start(
      ["agent", "followup", "searcher", "-", "--store", place.store],
      {},
      "Search for `beta`",
    );
    expect((await place2.ended).stdout).toContain("No process runs the tree");
    const waited = await place.run("agent", "wait", "searcher");
    expect(waited.code).toBe(3);
    expect(waited.stderr).toContain("--run");
    const ran = await place.run("agent", "wait", "searcher", "--run", "--pace", "0");
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stdout).toContain('Searched "beta"');
  });
});

describe("bad use", () => {
  const foreign = `thread_${"0".repeat(21)}`;
  test.for([
    [2, ["tree", "--nonsense"], /unknown option '--nonsense'/],
    [2, ["nonsense"], /there is no command nonsense\. See: npx coppice --help/],
    [2, ["log", "--limit", "many"], /whole number, from 1 .*See: npx coppice log --help/],
    [2, ["log", "--after", "-1"], /whole number, 0 or more\./],
    [2, ["log", "--after", "9999"], /--after 9999 is beyond the end of the log of thread_/],
    [2, ["works", "--after", "garbage"], /--after `garbage` is no cursor of works; .*leave out --after/],
    [2, ["transfers", "--after", ""], /--after `` is no cursor of transfers/],
    [2, ["demo", "--dir", " "], /--dir is blank/],
    [2, ["why", ""], /agent is empty; give a path/],
    [2, ["agent", "nonsense"], /there is no command nonsense\. See: npx coppice agent --help/],
    [2, ["agent", "send"], /missing required argument.*npx coppice agent send --help/],
    [2, ["agent", "send", "/root", "   "], /blank/],
    [2, ["agent", "send", "/other", "x"], /must start with/],
    [2, ["agent", "send", "/root", "ab\uFFFD"], /an argument is not UTF-8/],
    [2, ["agent", "wait", "/root", "--timeout", "soon"], /whole number, from 0 to 86400/],
    [2, ["agent", "wait", "/root", "--timeout", "86401"], /whole number, from 0 to 86400/],
    [2, ["agent", "interrupt", "/root", "--pending", "all"], /choices/],
    [2, ["agent", "followup", "/root", "x", "--pace", "-1"], /whole number, from 0 to 3600000/],
    [2, ["tree", "--profile", "nonsense"], /choices/],
    [2, ["agent", "interrupt", "/root", "--cascade", "all"], /choices/],
    [2, ["tree", "--tree", "first"], /not the id of a tree/],
    [2, ["demo", "--dir", process.execPath], /is not a folder/],
    [2, ["demo", "--resume", "--dir", "."], /leave out --dir/],
    [2, ["demo", "--dir", "/nowhere/at/all"], /there is no folder/],
    [3, ["why", "/root/nobody"], /no agent is at/],
    [3, ["why", foreign], /no agent/],
    [3, ["tree", "--tree", foreign], /no tree/],
  ] as const)("exits %i for %j", async ([code, args, words]) => {
    const ended = await place.run(...args);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toMatch(words);
    expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  });
});

test.for(["send", "followup"])("`agent %s -` refuses input that is not UTF-8", async (verb) => {
  const sent = place.start(
    ["agent", verb, "/root", "-", "--store", place.store],
    {},
    Buffer.from("ab\xff", "latin1"),
  );
  const ended = await sent.ended;
  expect(ended).toMatchObject({ code: 2, stdout: "" });
  expect(ended.stderr).toMatch(/standard input is not UTF-8/);
});

test.for([["tree"], ["demo"], ["agent", "send", "/root", "hello"]])(
  "%j with a blank --store is refused, and nothing is made",
  async (args) => {
    const ended = await place.start([...args, "--store", " "]).ended;
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(/--store is blank; give the path of a store/);
  },
);

test.skipIf(!existsSync("/proc/self"))(
  "REC-3 a store below folders in which nothing can be made is refused, not tried for ever (needs /proc)",
  async ({ onTestFinished }) => {
    const running = place.start(["demo", "--dir", place.dir, "--store", "/proc/nope/deeper/store.db"]);
    onTestFinished(() => void running.child.kill("SIGKILL"));
    const ended = await running.ended;
    expect(ended).toMatchObject({ code: 5 });
    expect(ended.stderr).toContain("/proc/nope");
  },
);

test("a cursor of another tree is refused, and the text names its tree", async () => {
  using other = new Place();
  for (let demos = 0; demos < 2; demos += 1) await other.demo("--dir", other.dir).ended;
  const [home] = rowsOf((await other.run("--json")).stdout);
  const [newest, oldest] = home.trees.map((tree: Row) => tree.id);
  for (const list of ["works", "transfers"]) {
    const [row] = await other.rows(list, "--tree", oldest, "--limit", "1");
    const ended = await other.run(list, "--tree", newest, "--after", row.id);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toContain(`another tree; see that one with: npx coppice ${list} --tree ${oldest}`);
  }
});

test("a tree whose row cannot be read is listed beside the others, and `doctor` names it", async () => {
  using other = new Place();
  for (let demos = 0; demos < 2; demos += 1) await other.demo("--dir", other.dir).ended;
  const [{ trees }] = rowsOf((await other.run("--json")).stdout);
  const [broken, whole] = trees.map((tree: Row) => tree.id);
  {
    using database = new DatabaseSync(other.store);
    database.prepare("UPDATE trees SET body = 'nonsense' WHERE id = ?").run(broken);
  }
  const home = await other.run();
  expect(home).toMatchObject({ code: 0, stderr: "" });
  expect(home.stdout).toMatch(new RegExp(`${broken}  tree, with rows that cannot be read`));
  expect(home.stdout).toMatch(new RegExp(`${whole}  .*, \\d+ agents, `));
  const doctor = await other.run("doctor");
  expect(doctor.code).toBe(5);
  expect(doctor.stdout).toContain(`1 of 2 trees with rows that cannot be read: ${broken}`);
  expect(await other.run("tree", "--tree", whole)).toMatchObject({ code: 0 });
});

describe("help", () => {
  const told = [[], ["demo"], ["tree"], ["log"], ["works"], ["transfers"], ["owed"], ["why"], ["doctor"]];
  const agent = ["send", "followup", "answer", "interrupt", "close", "wait"];

  test.for([...told, ...agent.map((name) => ["agent", name])])(
    "of %j says what --json prints, and has one example",
    async (command) => {
      const { code, stdout } = await place.start([...command, "--help"]).ended;
      expect(code).toBe(0);
      expect(stdout.replaceAll(/\s+/g, " ")).toMatch(/--json for programs: (one object|NDJSON)/);
      expect(stdout.match(/^Example: npx coppice /gm)).toHaveLength(1);
      for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    },
  );

  test("names the exit codes that there are", async () => {
    const { stdout } = await place.start(["--help"]).ended;
    const codes = stdout.match(/^ {2}\d+ /gm)!.map(Number);
    expect(codes).toEqual(Object.values(EXIT));
  });
});

describe("a store that cannot be used", () => {
  const at = (name: string): string => join(place.path, name);

  beforeAll(() => {
    writeFileSync(at("garbage.db"), "this is no database, whatever its name says. ".repeat(50));
    mkdirSync(at("folder.db"));
    using newer = new DatabaseSync(at("newer.db"));
    newer.exec("PRAGMA application_id = 1668247664; PRAGMA user_version = 9999; CREATE TABLE t (x)");
  });

  test.for([
    ["missing.db", /there is no store at .*npx coppice demo/],
    ["garbage.db", /not a database/],
    ["folder.db", /is a folder/],
    ["newer.db", /has version 9999 .* Update Coppice/],
  ] as const)("%s: one line says what is wrong, exit 5, and nothing is made", async ([name, words]) => {
    const before = existsSync(at(name));
    const read = place.start(["tree", "--store", at(name)]).ended;
    const write = place.start(["agent", "send", "/root", "x", "--json", "--store", at(name)]).ended;
    expect(await read).toMatchObject({ code: 5, stdout: "", stderr: expect.stringMatching(words) });
    expect(await write).toMatchObject({ code: 5, stdout: "" });
    expect(JSON.parse((await write).stderr)).toMatchObject({ error: { exit: 5 } });
    expect(existsSync(at(name))).toBe(before);
  });

  test("a reader that goes away ends the command quietly", async () => {
    const running = place.start(["log", "--follow", "--json", "--after", "0", "--store", place.store]);
    await running.line(() => true);
    running.child.stdout!.destroy();
    // What is written next finds nobody.
    await place.run("agent", "send", "/root", "one more line in the log");
    const { code, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 141, stderr: "" });
  });
});
