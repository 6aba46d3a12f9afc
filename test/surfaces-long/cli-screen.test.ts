/** What a terminal is given of texts that others wrote: it fits, and nothing in it is a command to the terminal (SEC-3). */
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { ask, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { sampleWork } from "../../src/testing/store-records.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { coverageLines } from "../../src/cli/screen/coverage-lines.ts";
import type { ProviderCoverage } from "../../src/threads/thread-view.ts";
import { LiveBlock } from "../../src/cli/screen/live.ts";
import { harmless, jsonLine, type Terminal, widthOf } from "../../src/cli/terminal.ts";
import { requesterOf } from "../../src/cli/screen/words.ts";
import { Place, rowsOf } from "../support/cli.ts";

const place = new Place();
const EVIL =
  "漢字テスト wide 👩‍👩‍👧 \u001b[2J\u001b]0;title\u0007 \u009b31m C1 \u0085 next \u202e turned \u202c del \u007f tab\tnew\nline ";
const LONG = EVIL.repeat(3);
const NAMES = Array.from({ length: 200 }, (_, at) => `an_agent_with_a_rather_long_name_${at}`);
/** Whatever a terminal obeys, apart from the ends of lines. */
const CONTROLS = /[^\P{Cc}\n]|\p{Cf}/u;

beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store, synchronous: "normal" });
  const provider = scripted({
    "/root": [
      together(...NAMES.map((name) => spawn(name, LONG, { fork_turns: "none" }))),
      ask(LONG),
      repeat(say(LONG)),
    ],
    "*": [repeat(say(LONG))],
  });
  const limits = { agentsPerTree: 300, directChildren: 300, spawnsPerMinute: 300, runsPerMinute: 300 };
  const runtime = await createRuntime({ store, providers: { scripted: provider }, limits });
  const tree = await runtime.openTree({ title: EVIL });
  await tree.root.send(LONG);
  await waitUntil(
    "all is done but the question",
    async () => {
      const { running, queued } = await tree.counts();
      return running + queued === 0 && (await tree.requests()).length === 1;
    },
    { steps: 10_000 },
  );
  await runtime.close();
  await store.close();
}, 60_000);
afterAll(() => place[Symbol.dispose]());

test.for([
  [80, "tree"],
  [80, "log --after 0"],
  [80, "log --all --after 0 --limit 2000"],
  [120, "log --all --after 0 --limit 2000"],
  [80, "works"],
  [120, "works"],
  [80, "transfers"],
  [40, "tree"],
  [40, "transfers"],
  [40, "works"],
  [80, "owed"],
  [80, "why /root"],
] as const)(
  "SEC-3 %i columns: `%s` fits, and no text in it commands the terminal",
  async ([columns, command]) => {
    const env = { COLUMNS: String(columns) };
    const { code, stdout } = await place.start([...command.split(" "), "--store", place.store], env).ended;
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.filter((line) => CONTROLS.test(line))).toEqual([]);
    // A command to be copied is whole, however long it is.
    const tooLong = lines.filter((line) => widthOf(line) > columns && !line.includes("npx coppice"));
    expect(tooLong).toEqual([]);
  },
);

test("what no terminal shows is not cut off", async () => {
  const { stdout } = await place.start(["transfers", "--store", place.store], { COLUMNS: "" }).ended;
  expect(stdout).toContain("root → an_agent_with_a_rather_long_name_99 ");
});

test.for(["tree", "log --limit 2000", "works"])(
  "SEC-3 `%s --json` escapes control characters, and is the same value",
  async (command) => {
    const { stdout } = await place.run(...command.split(" "), "--json");
    expect(stdout).not.toMatch(CONTROLS);
    expect(rowsOf(stdout).length).toBeGreaterThan(0);
    if (command === "works") expect(stdout).toContain(String.raw`\u009b31m`);
    if (command === "tree") expect(rowsOf(stdout)[0]).toMatchObject({ title: EVIL });
  },
);

test("SEC-3 lines lose control characters and keep colours; JSON reads as before", () => {
  expect(harmless("\u001b[31mred\u001b[39m \u001b[2Jcleared\u009b1A\r\n")).toBe(
    "\u001b[31mred\u001b[39m [2Jcleared1A\n",
  );
  const value = { text: `${EVIL}\u{e0041}\u2028\ud800` };
  expect(jsonLine(value)).not.toMatch(CONTROLS);
  expect(JSON.parse(jsonLine(value))).toEqual(value);
});

test("SEC-3 who asks for a work is told without control characters", () => {
  const name = EVIL as "user";
  const work = sampleWork("thread_tree", "thread_worker", 1, { requester: { kind: "user", name } });
  expect(requesterOf(work)).not.toMatch(CONTROLS);
});

test("a live block that is too long for the terminal shows its beginning and its end, and finds its top again", async () => {
  const written: string[] = [];
  const terminal = {
    columns: 20,
    rows: 12,
    raw: (text: string) => written.push(text),
    paint: (_: string, text: string) => text,
  } as unknown as Terminal;
  const lines = [...Array.from({ length: 200 }, (_, at) => `line ${at}`), "x".repeat(30), "the end\u009b2J"];
  const clock = virtualClock();
  const block = new LiveBlock(terminal, async () => lines, clock);
  await clock.advance(0);
  await block.end();
  const shown = stripVTControlCharacters(written[0]!).trim().split("\n");
  expect(shown).toEqual([
    ...lines.slice(0, 4),
    "… 194 more lines",
    "line 198",
    "line 199",
    "x".repeat(30),
    "the end2J",
  ]);
  // Ten rows: the line of thirty columns takes two.
  expect(written[1]).toContain("\u001b[10A");
});

test("on a narrow terminal each fact of who knows what has a line, and none is cut off", () => {
  const terminal = { columns: 40, room: 40, paint: (_: string, text: string) => text } as Terminal;
  const one = { provider: "echo", model: null, active: true, continuity: "ok" };
  const coverage = [{ ...one, native: [[1, 1]], told: [{ runs: [[2, 3]] }], gap: [[4, 5]] }];
  expect(coverageLines(terminal, coverage as unknown as readonly ProviderCoverage[])).toEqual([
    "● echo",
    "    knows natively  1",
    "    was told        2 to 3",
    "    does not know   4 to 5",
  ]);
});
