/**
 * Bad input by command, option and argument, and by the state of the store, with the command line in this process: each is
 * refused by a typed error of one line that names what is wrong, and nothing is stored.
 */
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { programOf } from "../../src/cli/main.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place } from "../support/cli.ts";
import { ended, heard } from "../support/cli-here.ts";
import { rowsIn } from "../support/rows.ts";

/** The only line of a refused command. */
async function refusal(args: readonly string[]) {
  const { exit, out, aside } = await ended([...args, "--json"]);
  expect(out).toBe("");
  const { error } = JSON.parse(aside) as {
    readonly error: { readonly code: string; readonly message: string; readonly exit: number };
  };
  expect(error.exit).toBe(exit);
  return error;
}

interface Leaf {
  readonly path: string;
  readonly command: Command;
}

function leavesOf(command: Command, path: string): readonly Leaf[] {
  const below = command.commands.flatMap((child) => leavesOf(child, `${path} ${child.name()}`.trim()));
  return path === "" || below.length === 0 ? [{ path, command }, ...below] : below;
}

const LEAVES = leavesOf(programOf(heard), "");
const NAMES = LEAVES.map(({ path }) => path);

const place = new Place();
const known = { thread: "", fork: "", store: place.store };
const foreign = `thread_${"0".repeat(21)}`;
const rows = (): unknown => rowsIn(place.store);

beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store, synchronous: "normal" });
  {
    await using runtime = await createRuntime({
      store,
      providers: { echo: scripted({ "*": [repeat(say("an answer"))] }) },
    });
    const { threads } = runtime;
    known.thread = (await threads.create({ title: "one", provider: "echo", workspace: place.path })).id;
    await (await threads.continue(known.thread, "hello")).outcome();
    known.fork = (await threads.fork(known.thread)).thread.id;
  }
  await store.close();
  // Collects what its provider tells, which any look would.
  await ended(["thread", "history", known.thread, "--store", known.store]);
});
afterAll(() => place[Symbol.dispose]());

/** What stands for an argument when it is not the one that is tried. */
const FILLED: Readonly<Record<string, string>> = {
  agent: "/root",
  run: "1",
  handoff: `hnd_${"0".repeat(21)}`,
  request: `req_${"0".repeat(21)}`,
  section: "decision",
  message: "hello",
  task: "hello",
  text: "hello",
  thread: "",
};
/** Texts, which may be long, and what only a provider knows. */
const TEXTS = ["message", "task", "text", "note", "title", "--text", "--effort"];

const valueOf = (name: string): string =>
  name === "thread" ? known.thread : name === "fork" ? known.fork : (FILLED[name] ?? "hello");

/** A call of a command, with one of its arguments or options as it is given. */
function callOf({ path, command }: Leaf, tried: string, value: string): readonly string[] {
  const args = command.registeredArguments
    .filter(
      (argument) => argument.required || argument.name() === tried || FILLED[argument.name()] !== undefined,
    )
    .map((argument) => (argument.name() === tried ? value : valueOf(argument.name())));
  const needed = command.options
    .filter(({ mandatory, long }) => mandatory && long !== tried)
    .flatMap(({ long }) => [long!, known.thread]);
  const option = tried.startsWith("--") ? [tried, value] : [];
  const store = tried === "--store" ? [] : ["--store", known.store];
  return [...path.split(" ").filter((word) => word !== ""), ...args, ...needed, ...option, ...store];
}

const VALUED = LEAVES.flatMap((leaf) => [
  ...leaf.command.options.filter(({ required }) => required).map(({ long }) => [leaf, long!] as const),
  ...leaf.command.registeredArguments.map((argument) => [leaf, argument.name()] as const),
]);

describe("every option and argument of every command", () => {
  test("REC-2 is refused when it is blank, and nothing is stored", async () => {
    const before = rows();
    for (const [leaf, tried] of VALUED) {
      for (const blank of ["", " "]) {
        const args = callOf(leaf, tried, blank);
        const { exit, code, message } = await refusal(args);
        expect([args.join(" "), [2, 3].includes(exit), code]).toEqual([args.join(" "), true, code]);
        expect(code).not.toBe("INVARIANT_BROKEN");
        expect(message).not.toMatch(/arguments of Runtime|<thread>/);
      }
    }
    expect(rows()).toEqual(before);
  }, 120_000);

  test("is repeated in part when it is long and wrong", async () => {
    const before = rows();
    const long = "x".repeat(100_000);
    // `coppice`, `doctor` and `mcp` say of such a store that there is none yet.
    const wrong = VALUED.filter(
      ([{ path }, name]) =>
        !TEXTS.includes(name) && !(name === "--store" && ["", "doctor", "mcp"].includes(path)),
    );
    for (const [leaf, tried] of wrong) {
      const { exit, code, message } = await refusal(callOf(leaf, tried, long));
      expect(code).not.toBe("INVARIANT_BROKEN");
      expect(exit).toBeGreaterThan(1);
      expect(message.length).toBeLessThan(1_000);
    }
    expect(rows()).toEqual(before);
  }, 120_000);

  test("is refused when nobody has heard of it", async () => {
    for (const leaf of LEAVES) {
      const args = callOf(leaf, "--nonsense", "x");
      expect(await refusal(args)).toMatchObject({ exit: 2, message: /unknown option '--nonsense'/ });
    }
  });
});

describe("a store that cannot be used", () => {
  const states: Readonly<
    Record<string, readonly [code: string, words: RegExp, make: (path: string) => void]>
  > = {
    "no database": [
      "STORE_CORRUPT",
      /is not a database/,
      (path) => writeFileSync(path, "nonsense ".repeat(500)),
    ],
    "a folder": ["STORE_IO", /is a folder; name the store's file in it/, (path) => mkdirSync(path)],
    "cut in half": [
      "STORE_CORRUPT",
      /is damaged/,
      (path) => {
        writeFileSync(path, readFileSync(place.store));
        truncateSync(path, Math.floor(readFileSync(path).length / 2));
      },
    ],
    "of a newer version": [
      "STORE_VERSION",
      /has version 999.*Update Coppice/,
      (path) => {
        writeFileSync(path, readFileSync(place.store));
        using database = new DatabaseSync(path);
        database.exec("PRAGMA journal_mode = DELETE; PRAGMA user_version = 999");
      },
    ],
    "of another program": [
      "STORE_CORRUPT",
      /another program/,
      (path) => {
        using database = new DatabaseSync(path);
        database.exec("CREATE TABLE songs (title TEXT)");
      },
    ],
  };

  test.for(Object.entries(states))("REC-3 %s, for every command", async ([state, [code, words, make]]) => {
    const path = join(place.path, `${state.replaceAll(" ", "-")}.db`);
    make(path);
    const bytes = (): unknown => (state === "a folder" ? null : readFileSync(path));
    const before = bytes();
    // `doctor` says it as what it has found, and `setup` only hands its name on.
    for (const leaf of LEAVES.filter((one) => !["doctor", "setup"].includes(one.path))) {
      const args = [
        ...callOf(leaf, "--store", path),
        ...(leaf.path === "agent budget" ? ["--tokens", "1"] : []),
      ];
      const error = await refusal([...args, ...(CHOICES[leaf.path] ?? [])]);
      expect([leaf.path, error]).toMatchObject([leaf.path, { code, exit: 5, message: words }]);
      expect(error.message).toContain(path);
    }
    expect(await ended(["doctor", "--store", path])).toMatchObject({ exit: 5, out: words });
    expect(bytes()).toEqual(before);
  });
});

/** What a command is to be told besides, before it looks into a store. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  "agent answer": ["--approve"],
  "thread switch": ["--provider", "parrot"],
  "thread rollback": ["--to", "0"],
  "thread rename": ["--untitled"],
};

describe("the command itself", () => {
  test.for([
    [["nonsense"], /there is no command nonsense. See: npx coppice --help/],
    [["--store", "x.db", "nonsense"], /there is no command nonsense/],
    [["help", "nonsense"], /there is no command nonsense. See: npx coppice --help/],
    [["help", "agent", "nonsense"], /there is no command nonsense. See: npx coppice agent --help/],
    [["agent", "help", "nonsense"], /there is no command nonsense. See: npx coppice agent --help/],
    [["thread", "checkpoint", "nonsense"], /no command nonsense. See: npx coppice thread checkpoint --help/],
  ] as const)("%j is refused", async ([args, words]) => {
    const { exit, out, aside } = await ended(args);
    expect({ exit, out }).toEqual({ exit: 2, out: "" });
    expect(aside).toMatch(words);
    expect(aside.trim().split("\n")).toHaveLength(1);
  });

  test("a task that stands where a command would is refused at once, however long it is", async () => {
    const { exit, aside } = await ended(["do it ".repeat(20_000)]);
    expect([exit, aside.length < 500]).toEqual([2, true]);
    expect((await ended(["tre"])).aside).toContain("Did you mean tree?");
  });

  test.for(["help", "help agent", "help agent send", "agent help send"])("%s is the help", async (words) => {
    const { exit, out, aside } = await ended(words.split(" "));
    expect([exit, aside]).toEqual([0, ""]);
    expect(out).toMatch(/^Usage: coppice/);
  });
});

describe("what is said to look at next", () => {
  test.for([
    ["thread fork :t --at message:99", /thread transcript :t --store :s$/],
    ["thread fork :t --at run:99", /thread show :t --store :s$/],
    ["thread rollback :t --before-message 99", /thread transcript :t --store :s$/],
    ["thread show :x", /thread list --all --store :s$/],
    ["why nobody --tree :t", /npx coppice tree --tree :t --store :s$/],
    ["tree --tree :x", /npx coppice --store :s$/],
    ["handoff show nonsense", /npx coppice transfers --store :s$/],
    ["approvals approve nonsense", /npx coppice approvals --store :s$/],
    ["agent answer /root --approve", /npx coppice tree --store :s$/],
  ] as const)("%s names thread and store", async ([command, see]) => {
    const filled = (text: string): string =>
      text.replaceAll(":t", known.thread).replaceAll(":x", foreign).replaceAll(":s", known.store);
    const { message } = await refusal([...filled(command).split(" "), "--store", known.store]);
    expect(message).toMatch(new RegExp(filled(see.source)));
  });
});

test("the table knows every command", () => {
  expect(NAMES).toContain("thread checkpoint restore");
  expect(NAMES).toContain("");
});
