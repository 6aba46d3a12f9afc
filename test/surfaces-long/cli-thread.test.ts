/** Threads on the command line, one command a process: A → B → A, a fork and its merge, rollbacks, and what is shown of it all. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ended, Place, type Row, rowsOf } from "../support/cli.ts";

const place = new Place();
const told: Record<string, Ended> = {};
let thread = "";
let fork = "";
let begun = "";

const say = (id: string, message: string, ...more: string[]): Promise<Ended> =>
  place.run("thread", "continue", id, "--pace", "0", ...more, "--", message);

async function made(...args: string[]): Promise<string> {
  const ended = await place.run(...args, "--json");
  const [row] = rowsOf(ended.stdout) as [Row];
  return (row.thread ?? row).id;
}

beforeAll(async () => {
  told["new"] = await place.run("thread", "new", "--title", "Port the parser");
  thread = told["new"].stdout.split("\n")[0]!;
  told["first"] = await say(thread, "We use port 8080");
  await say(thread, "and Postgres", "--provider", "parrot");
  told["recall"] = await say(thread, "recall port");
  told["pin"] = await place.run("context", "pin", "decision", "--thread", thread, "--", "port 8080");
  told["dry"] = await place.run("thread", "switch", thread, "--provider", "echo", "--dry-run");
  told["switch"] = await place.run("thread", "switch", thread, "--provider", "echo");
  told["back"] = await say(thread, "recall Postgres");
  told["shown"] = await place.run("thread", "show", thread);
  fork = await made("thread", "fork", thread);
  await say(fork, "Try tabs");
  told["merge"] = await place.run("thread", "merge", fork);
  told["merged"] = await say(thread, "recall tabs");
  told["transcript"] = await place.run("thread", "transcript", thread);
  told["transfers"] = await place.run("transfers", thread);
  told["history"] = await place.run("thread", "history", thread);
  told["rollback"] = await place.run("thread", "rollback", thread, "--to", "2");
  told["undo"] = await place.run("thread", "rollback", thread, "--undo");
  told["before"] = await place.run("thread", "rollback", thread, "--before-message", "1");
  begun = await made("thread", "fork", fork, "--at", "message:2");
}, 300_000);
afterAll(() => place[Symbol.dispose]());

const lines = (ended: Ended | undefined): string[] => ended!.stdout.trimEnd().split("\n");

describe("A → B → A", () => {
  test("every command has ended well, with nothing beside its result", () => {
    for (const [name, { code, stderr }] of Object.entries(told))
      expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: "" });
  });

  test("S1-17 S1-70 `new` makes a thread with a title, on a provider, in this folder", async () => {
    expect(thread).toMatch(/^thread_[A-Za-z0-9]{21}$/);
    expect(lines(told["new"])).toContain(`Its store is new: ${place.store}`);
    const [shown] = await place.rows("thread", "show", thread);
    expect(shown).toMatchObject({
      title: "Port the parser",
      workspace: place.path,
      context: { objective: "Port the parser" },
    });
  });

  test("S3-23 the answer is printed, and B was handed what A had", () => {
    expect(lines(told["first"])).toEqual([
      'echo heard "We use port 8080". It has had 0 turns here before and was handed nothing.',
    ]);
    expect(lines(told["recall"])).toEqual(['parrot knows: "We use port 8080".']);
    expect(lines(told["back"])).toEqual(['echo knows: "and Postgres".']);
  });

  test("S3-11 a dry run says what it knows, what it would be told, in how many tokens, and why", () => {
    const text = told["dry"]!.stdout;
    expect(text).toMatch(/^strategy  a delta of what it does not know, into the conversation it has$/m);
    expect(text).toMatch(/^why {7}\S/m);
    expect(text).toMatch(/^knows     run 1$/m);
    expect(text).toMatch(
      /^is told   runs 2 to 3, as delta context: \d+ tokens at most \([\d,]+ bytes\), nothing/m,
    );
    expect(text).toMatch(/^ {2}echo +1 +– +2 to 3$/m);
    expect(text).toMatch(/^● parrot +2 to 3 +1 +–$/m);
  });

  test("S3-16 the coverage is a table", () => {
    expect(told["switch"]!.stdout).toContain("Nothing is sent before its message");
    expect(lines(told["shown"])).toContain("● echo              1, 4                2 to 3              –");
    expect(lines(told["shown"])).toContain("  parrot            2 to 3              1                   4");
  });

  test("S1-61 S1-62 `show` and `context` tell runs, revisions, and where each line comes from", async () => {
    expect(told["shown"]!.stdout).toMatch(/^ {4}4 {2}echo {5}completed {3}3 → 4/m);
    expect(told["shown"]!.stdout).toContain("  - port 8080 (run 4)");
    const { stdout } = await place.run("thread", "context", fork);
    expect(stdout).toContain(`port 8080 (run 4 of ${thread})`);
  });

  test("S0-58 the transfers of a thread are told with both ends and the text", () => {
    const text = told["transfers"]!.stdout;
    expect(text).toMatch(
      /provider_handoff consumed\n {4}parrot → echo\n {4}after run 1, up to run 3, delta context {2}hnd_/,
    );
    expect(text).toContain(`this thread → ${fork}`);
    expect(text).toMatch(
      new RegExp(`merge_back +consumed\n {4}${fork} → this thread\n {4}what came after the fork`),
    );
  });

  test("S3-20 a handoff is shown with its text; one that was delivered stays as it is", async () => {
    const [id] = /hnd_\w+/.exec(told["transfers"]!.stdout)!;
    const { stdout } = await place.run("handoff", "show", id);
    expect(stdout).toContain("We use port 8080");
    expect(stdout).toMatch(/^\d+ tokens at most \(\d+ bytes\), nothing left out$/m);
  });
});

describe("forks, merges and rollbacks", () => {
  test("S2-7 S2-38 a fork before a message has that message as its draft", async () => {
    const [shown] = await place.rows("thread", "show", begun);
    expect(shown).toMatchObject({
      executions: 0,
      draft: { text: "Try tabs" },
      title: "Port the parser (fork 2)",
    });
    const { stdout } = await place.run("thread", "show", begun);
    expect(stdout).toMatch(/^forked from {2}thread_/m);
  });

  test("S0-12 what the fork came to is told with the next message", () => {
    expect(told["merge"]!.stdout).toContain("up to run 1 is told with the next message there");
    expect(lines(told["merged"])).toEqual(['echo knows: "Try tabs".']);
  });

  test("S3-57 S2-41 a rollback says what is taken back, who knows what then, and how to undo it", () => {
    const text = told["rollback"]!.stdout;
    expect(text).toMatch(/^Runs 3 to 5 are taken back; run 2 is the last one\.$/m);
    expect(text).toMatch(/^● echo +1 +– +2$/m);
    expect(text).toContain(`npx coppice thread rollback ${thread} --undo`);
    expect(told["undo"]!.stdout).toMatch(/^● echo +1 +– +2 to 5$/m);
    expect(told["before"]!.stdout).toMatch(/no run is left\.\nDraft:\n {2}We use port 8080$/m);
  });

  test("S2-42 what was rolled back stays in the transcript, marked", async () => {
    const before = told["transcript"]!.stdout;
    expect(before).toMatch(/^ {4}1 {2}you {9}We use port 8080$/m);
    expect(before).toMatch(/^ {4}3 {2}handoff {5}portable context of run 1: hnd_/m);
    const { stdout } = await place.run("thread", "transcript", thread);
    expect(stdout).toMatch(/^ {4}1 {2}you {9}\(rolled back\) We use port 8080$/m);
  });

  test("S2-5 S2-33 a fork's transcript has what it inherits, read-only, behind a divider; pages fit together", async () => {
    const rows = await place.rows("thread", "transcript", fork);
    expect(rows.find((row: Row) => row.kind === "divider")).toMatchObject({ parent: thread, child: fork });
    const page = await place.run("thread", "transcript", fork, "--limit", "3", "--json");
    const [, before] = /--before (\S+)/.exec(page.stderr)!;
    const older = await place.rows("thread", "transcript", fork, "--limit", "100", "--before", before!);
    expect([...older, ...rowsOf(page.stdout)].map((row) => row.id)).toEqual(rows.map((row: Row) => row.id));
  });

  test("S1-39 the history is mirrored, with how much of it there is", () => {
    expect(told["history"]!.stdout).toMatch(/^ {4}1 {2}user {8}We use port 8080$/m);
    expect(told["history"]!.stdout).toMatch(/boundary {4}complete: 2 entries$/m);
  });
});

describe("lists, names and labels", () => {
  test("S1-60 `list` has the open ones of this folder; --all those of every folder; both are paged", async () => {
    const other = join(place.path, "other");
    mkdirSync(other);
    const elsewhere = await made("thread", "new", "--workspace", other);
    const ids = (rows: Row[]): string[] => rows.map((row) => row.id);
    expect(ids(await place.rows("thread", "list"))).toEqual([begun, fork, thread]);
    expect(ids(await place.rows("thread", "list", "--all"))).toEqual([elsewhere, begun, fork, thread]);
    const page = await place.run("thread", "list", "--limit", "2");
    expect(page.stdout.match(/^thread_/gm)).toHaveLength(2);
    const [, after] = /more: npx coppice thread list --after (\S+)/.exec(page.stderr)!;
    expect(ids(await place.rows("thread", "list", "--after", after!))).toEqual([thread]);
  });

  test("S1-14 S1-15 C17.3 the label is shown by `show` without an argument, and is nothing to any other command", async () => {
    const env = { COPPICE_THREAD_ID: thread, COPPICE_STORE: place.store };
    const [shown, context, label] = await Promise.all([
      place.start(["thread", "show", "--json"], env).ended,
      place.start(["thread", "context"], env).ended,
      place.start(["thread", "new", "--json"], env).ended,
    ]);
    expect(rowsOf(shown.stdout)[0].id).toBe(thread);
    expect(context).toMatchObject({ code: 2, stdout: "" });
    expect(rowsOf(label.stdout)[0].id).not.toBe(thread);
    const pin = await place.start(["context", "pin", "open", "--", "later"], env).ended;
    expect(pin).toMatchObject({ code: 2, stdout: "" });
    expect(pin.stderr).toContain("--thread");
  });

  test("S1-20 S1-21 closed, archived, renamed while archived; each says what can be done then", async () => {
    const id = await made("thread", "new", "--title", "short");
    expect((await place.run("thread", "close", id)).stdout).toContain(`npx coppice thread fork ${id}`);
    const [again] = await place.rows("thread", "close", id);
    expect(again.status).toBe("closed");
    await place.run("thread", "archive", id);
    const renamed = await place.run("thread", "rename", id, "shorter");
    expect(renamed.stdout).toBe(`${id} is called shorter.\n`);
    const [untitled] = await place.rows("thread", "rename", id, "--untitled");
    expect(untitled).toMatchObject({ title: null, status: "archived", applied_by: "here" });
  });

  test("control characters of titles and messages never reach the terminal, not even as JSON", async () => {
    const wicked = "red\u001b[31m\u009b2J\u0007bell\r\nnext";
    const id = await made("thread", "new", "--title", wicked);
    await say(id, wicked);
    const commands = [["show", id], ["list"], ["transcript", id], ["history", id], ["context", id]];
    for (const command of commands) {
      for (const json of [[], ["--json"]]) {
        const { stdout } = await place.run("thread", ...command, ...json);
        // oxlint-disable-next-line no-control-regex -- those are what is looked for
        expect(stdout.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      }
    }
    expect((await place.rows("thread", "show", id))[0].title).toBe(wicked);
  }, 120_000);

  test("a message of 10 MB is taken, and shown in part", async () => {
    const id = await made("thread", "new");
    const megabytes = "a long word ".repeat(900_000);
    const ended = await place.start(
      ["thread", "continue", id, "--pace", "0", "--store", place.store, "--", "-"],
      {},
      megabytes,
    ).ended;
    expect(ended).toMatchObject({ code: 0 });
    const { stdout } = await place.run("thread", "transcript", id);
    expect(stdout.length).toBeLessThan(5_000);
    expect(stdout).toContain("see them with --full");
  });
});

describe("help", () => {
  const threads =
    "new list show continue switch fork merge rollback rename close archive context history transcript reconcile sync";
  const commands = [
    ...threads.split(" ").map((name) => ["thread", name]),
    ["context", "pin"],
    ...["show", "edit", "regenerate"].map((name) => ["handoff", name]),
  ];

  test.for(commands)("of %s %s says what --json prints, and has one example", async (command) => {
    const { code, stdout } = await place.start([...command, "--help"]).ended;
    expect(code).toBe(0);
    expect(stdout.replaceAll(/\s+/g, " ")).toMatch(/--json for programs: (one object|NDJSON)/);
    expect(stdout.match(/^Example: npx coppice /gm)).toHaveLength(1);
    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });
});

const root = fileURLToPath(new URL("../..", import.meta.url));
const noTerminals = spawnSync("script", ["--version"]).status !== 0;

describe.skipIf(noTerminals)("on a terminal", () => {
  function onTerminal(keys: string, ...args: string[]): string {
    const command = [
      join(root, "node_modules/.bin/node"),
      join(root, "src/cli/bin.ts"),
      ...args,
      "--store",
      place.store,
    ];
    return execFileSync("script", ["-qec", `stty cols 80 rows 24; ${command.join(" ")}`, "/dev/null"], {
      input: keys,
      env: { ...process.env, TERM: "xterm", NO_COLOR: "1" },
      encoding: "utf8",
      timeout: 50_000,
    });
  }

  test("S2-14 S2-15 S2-17 C5.12 the strategy is asked for before anything is made; only what is possible is offered", async () => {
    const before = (await place.rows("thread", "list", "--all")).length;
    const asked = onTerminal("9\n3\n", "thread", "fork", fork);
    expect(asked).toContain("1  auto: natively if the provider can, else by replay");
    expect(asked).toContain("2  replay: what was said is told as text");
    expect(asked).not.toMatch(/\d {2}native:/);
    expect(asked).toContain("Give a number, 1 to 3 [1]");
    expect(asked).toContain("No fork is made.");
    expect(asked).toContain(`${fork}, after run 1`);
    expect((await place.rows("thread", "list", "--all")).length).toBe(before);
    expect(onTerminal("\n", "thread", "fork", fork)).toMatch(/Next: npx coppice thread continue thread_/);
    const [newest] = await place.rows("thread", "list", "--all", "--limit", "1");
    expect(newest.lineage.parentThreadId).toBe(fork);
  });
});
