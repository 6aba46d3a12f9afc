/** Stores that cannot be used, by each kind of command: what is wrong, what to do, exit code 5, and nothing half done. */
import { copyFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { Place } from "../support/cli.ts";
import { rowsIn } from "../support/rows.ts";

const place = new Place();
let thread = "";

/** A thread with a run, whose tree is also the one that `tree` and `agent` are about. */
beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store });
  {
    await using runtime = await createRuntime({
      store,
      providers: { echo: scripted({ "*": [repeat(say("an answer"))] }) },
    });
    const created = await runtime.threads.create({ title: "one", workspace: place.path });
    thread = created.id;
    await (await runtime.threads.continue(thread, "hello")).outcome();
  }
  await store.close();
});
afterAll(() => place[Symbol.dispose]());

/** More than is free in any file. */
const LONG = "x".repeat(100_000);

const LOOKS = [
  "tree",
  "log",
  "works",
  "owed /root",
  "why /root",
  "transfers",
  "thread list",
  "thread show :t",
];
const WRITES = [
  "agent send /root :long",
  "agent followup /root :long",
  "agent interrupt /root --pending cancel",
  "agent close /root",
  "agent budget /root --tokens 100000000",
  "thread rename :t other",
  "thread pin decision --thread :t line",
  "thread fork :t",
  "thread rollback :t --to 0",
  "thread close :t",
  "thread new --title :title",
];
const RUNS = ["agent followup /root :long --run", "thread continue :t -- :long", "demo --pace 0"];

/** One of each kind: what cannot be opened fails before the command begins. */
const ONE_OF_EACH = ["tree", "thread show :t", "agent send /root hello", "thread fork :t", "demo --pace 0"];

/** The places of the words that stand for something longer. */
const argumentsOf = (command: string): string[] =>
  command
    .replace("thread pin", "context pin")
    .split(" ")
    .map((word) => ({ ":t": thread, ":long": LONG, ":title": "t".repeat(200) })[word] ?? word);

interface Broken {
  /** Makes the file what it is; what is answered ends it. */
  readonly make: (path: string) => Disposable | void;
  readonly code: string;
  readonly words: RegExp;
  readonly commands: readonly string[];
  readonly pragma?: (path: string) => string;
}

function raw(path: string, ...statements: readonly string[]): Disposable {
  const database = new DatabaseSync(path);
  for (const sql of statements) database.exec(sql);
  return { [Symbol.dispose]: () => database.close() };
}

function cut(bytes: (size: number) => number): Pick<Broken, "make" | "code" | "words" | "commands"> {
  return {
    make: (path) => truncateSync(path, bytes(readFileSync(path).length)),
    code: "STORE_CORRUPT",
    words: /is damaged or is not a database.*restore it from a copy or use another store/,
    commands: ONE_OF_EACH,
  };
}

const STATES: Readonly<Record<string, Broken>> = {
  "of a newer version": {
    make: (path) => raw(path, "PRAGMA user_version = 999", "PRAGMA journal_mode = DELETE")[Symbol.dispose](),
    code: "STORE_VERSION",
    words: /has version 999 and this program knows .*Update Coppice, or use another store/,
    commands: ONE_OF_EACH,
  },
  "no database": {
    make: (path) => writeFileSync(path, "this is not a database. ".repeat(500)),
    code: "STORE_CORRUPT",
    words: /is not a database.*use another store/,
    commands: ONE_OF_EACH,
  },
  "of another program": {
    make(path) {
      writeFileSync(path, "");
      raw(path, "CREATE TABLE songs (title TEXT)")[Symbol.dispose]();
    },
    code: "STORE_CORRUPT",
    words: /another program.*give the store a file of its own/,
    commands: ONE_OF_EACH,
  },
  "cut in half": cut((size) => Math.floor(size / 2)),
  "cut to its head": cut(() => 700),
  "held by one process alone": {
    make: (path) => raw(path, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "PRAGMA user_version"),
    code: "STORE_BUSY",
    words: /is locked by another connection.*try again, or close the process that holds it/,
    commands: [...LOOKS, ...ONE_OF_EACH.slice(2)],
  },
  "written by another process": {
    make: (path) => raw(path, "BEGIN EXCLUSIVE"),
    code: "STORE_BUSY",
    words: /is locked by another connection.*try again, or close the process that holds it/,
    commands: [...WRITES, ...RUNS],
  },
  full: {
    make: () => undefined,
    pragma: (path) => `PRAGMA max_page_count = ${pagesOf(path)}`,
    code: "STORE_FULL",
    words: /has no space left.*nothing was stored. Free some space and try again/,
    commands: [...WRITES, ...RUNS].filter((command) => command.includes(":long")),
  },
  "read-only": {
    make: () => undefined,
    pragma: () => "PRAGMA query_only = 1",
    code: "STORE_IO",
    words: /for reading only.*open it with the right to write/,
    commands: [...WRITES, ...RUNS],
  },
};

function pagesOf(path: string): number {
  using database = new DatabaseSync(path, { readOnly: true });
  return Number(Object.values(database.prepare("PRAGMA page_count").get()!)[0]);
}

const PRELOAD = pathToFileURL(join(import.meta.dirname, "../support/sqlite-pragma.mjs")).href;

describe.each(Object.entries(STATES))(
  "a store that is %s",
  (state, { make, code, words, commands, pragma }) => {
    const path = join(place.path, `${state.replaceAll(" ", "-")}.db`);
    let held: Disposable | void;
    let before: unknown;
    const readable = (): boolean => pragma !== undefined || code === "STORE_BUSY";
    // A lock is let go of before the rows are looked at: nobody else can read what one process holds alone.
    const content = (): unknown => (readable() ? rowsIn(path) : readFileSync(path));

    beforeAll(() => {
      copyFileSync(place.store, path);
      before = readable() ? content() : null;
      held = make(path);
      before ??= content();
    });
    afterAll(() => {
      held?.[Symbol.dispose]();
      expect(content()).toEqual(before);
      if (!readable()) expect(existsSync(`${path}-wal`)).toBe(false);
    });

    test.for(commands)("REC-3 %s", { concurrent: true }, async (command) => {
      const env =
        pragma === undefined
          ? {}
          : { NODE_OPTIONS: `--import ${PRELOAD}`, TEST_PRAGMA: pragma(join(place.store)) };
      const [given, message] = argumentsOf(command).join("\n").split("\n--\n");
      const args = [
        ...given!.split("\n"),
        "--store",
        path,
        "--json",
        ...(message === undefined ? [] : ["--", message]),
      ];
      const { stdout, stderr, code: exit } = await place.start(args, env).ended;
      expect([exit, stdout]).toEqual([5, ""]);
      const { error } = JSON.parse(stderr);
      expect(error).toMatchObject({ code, exit: 5, message: expect.stringMatching(words) });
      expect(error.message).toContain(path);
    });
  },
);

describe("a demo on a disk without space", () => {
  test("REC-3 says so once, is given back by an interrupt, and goes on where there is space again", async () => {
    const path = join(place.path, "demo.db");
    copyFileSync(place.store, path);
    const args = ["--store", path, "--pace", "0"];
    const full = {
      NODE_OPTIONS: `--import ${PRELOAD}`,
      // Enough for it to begin.
      TEST_PRAGMA: `PRAGMA max_page_count = ${pagesOf(path) + 12}`,
    };
    const running = place.start(["demo", "--dir", place.dir, ...args], full);
    let said = "";
    await new Promise<void>((resolve) => {
      running.child.stderr!.on("data", (text: string) => {
        said += text;
        if (said.includes("STORE_FULL")) resolve();
      });
      void running.ended.then(() => resolve());
    });
    const { code, stderr } = await running.kill("SIGINT");
    expect(code).toBe(130);
    expect(stderr.match(/has no space left/g)).toHaveLength(1);
    expect(stderr).toMatch(/It is tried again until it works; Ctrl-C gives the tree back/);
    expect(stderr).toMatch(/Go on with: npx coppice demo --resume --store \S+\ncoppice: interrupted\.\n$/);
    const resumed = await place.start(["demo", "--resume", ...args]).ended;
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining("Answer") });
  }, 120_000);
});
