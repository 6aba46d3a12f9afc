/** `coppice run --resume`: what an interrupt or a kill has left of a run is gone on with, and ends in its answer. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Place, type Running } from "../support/cli.ts";
import { ended } from "../support/cli-here.ts";

const place = new Place();
afterAll(() => place[Symbol.dispose]());
const HOUR = "3600000";

/** A run that is at its model, in a store of its own. */
async function underWay(name: string, ...more: readonly string[]) {
  const store = join(place.path, `${name}.db`);
  const running = place.start(["run", "the task", "--pace", HOUR, "--store", store, ...more]);
  await heard(running, /runs\n/);
  return { store, running };
}

function heard({ child, ended: gone }: Running, what: RegExp): Promise<void> {
  let text = "";
  return new Promise((resolve, reject) => {
    child.stderr!.on("data", (more: string) => {
      text += more;
      if (what.test(text)) resolve();
    });
    void gone.then((end) => reject(new Error(JSON.stringify(end))));
  });
}

/** The command that a text names after some words, faster. */
function follow(text: string, words: RegExp) {
  const [, command = ""] = new RegExp(`${words.source} npx coppice (.*)`).exec(text) ?? [];
  const [head = "", said] = command.split(/ "(.*)"$/);
  return ended([...head.split(" "), "--pace", "0", ...(said === undefined ? [] : [said])]);
}

const ANSWER = /^echo heard "[^\n]*\n$/;

describe("`run --resume`", () => {
  test("REC-1 after a kill it goes on, and prints the answer alone; then the answer is there", async () => {
    const { store, running } = await underWay("killed");
    await running.kill();
    const resumed = await ended(["run", "--resume", "--pace", "0", "--store", store]);
    expect(resumed).toMatchObject({ exit: 0, out: expect.stringMatching(ANSWER) });
    const again = await ended(["run", "--resume", "--store", store]);
    expect(again).toMatchObject({ exit: 0, out: resumed.out });
    expect(again.aside).toContain("It had come to its end before");
  });

  test("REC-2 after a kill, what commands name goes on", async () => {
    const { store, running } = await underWay("named");
    await running.kill();
    const named: string[] = [];
    for (const command of ["tree", "why /root", "agent wait /root"]) {
      const { out, aside } = await ended([...command.split(" "), "--store", store]);
      named.push(/(?:To run it on|run it here): (.*)/.exec(out + aside)?.[1] ?? command);
    }
    expect(new Set(named).size).toBe(1);
    expect(await follow(`: ${named[0]}`, /:/)).toMatchObject({
      exit: 0,
      out: expect.stringContaining("echo heard"),
    });
  });

  test("an interrupt names what goes on, and nothing is asked anew", async () => {
    const { running } = await underWay("interrupted");
    const { code, stderr } = await running.kill("SIGINT");
    expect(code).toBe(130);
    const went = await follow(stderr, /begins anew\. Go on with:/);
    expect(went).toMatchObject({ exit: 0, out: expect.stringMatching(ANSWER) });
  });

  test("WAI-2 an interrupt while an approval is awaited: it is answered, and then what goes on is told", async () => {
    const config = join(place.path, "asking.mjs");
    const from = (name: string) =>
      JSON.stringify(new URL(`../../src/providers/scripted/${name}.ts`, import.meta.url));
    const script = `{ "*": [approve("May I?"), say("it is done")] }`;
    const imports = [
      `import { scripted } from ${from("provider")};`,
      `import { approve, say } from ${from("script")};`,
    ];
    writeFileSync(
      config,
      [...imports, `export default { providers: { asking: scripted(${script}) } };`].join("\n"),
    );
    const store = join(place.path, "asked.db");
    const on = ["--store", store, "--config", config];
    const running = place.start(["run", "the task", "--provider", "asking", ...on]);
    await heard(running, /asks for an approval: May I\?\n.*\n/);
    const { stderr } = await running.kill("SIGINT");
    expect(stderr).toMatch(
      /What is asked above waits for its answer in the store, .* Go on with: npx coppice run --resume --tree \S+ --config \S+ --store/,
    );
    const [, answer = ""] = /npx coppice (approvals approve .*) {2}\(or/.exec(stderr) ?? [];
    expect(await ended(answer.split(" "))).toMatchObject({ exit: 0 });
    const tree = await ended(["tree", "--store", store]);
    expect(tree.out).toContain("answered; goes on when a process runs it");
    expect(tree.out).toMatch(/To run it on: npx coppice agent wait \/root --run .*--config FILE/);
    const why = await ended(["why", "/root", "--store", store]);
    expect(why.out.replaceAll(/\s+/g, " ")).toContain("What it waited for has come");
    expect(await follow(stderr, /Go on with:/)).toMatchObject({ exit: 0, out: "it is done\n" });
  });

  test("what is begun already takes nothing of a new one, and a tree is named only with it", async () => {
    const refused = await ended(["run", "--resume", "--provider", "parrot", "x", "--store", place.store]);
    expect(refused).toMatchObject({
      exit: 2,
      aside: expect.stringContaining("leave out the task, --provider"),
    });
    const named = await ended(["run", "--tree", "thread_x", "x", "--store", place.store]);
    expect(named).toMatchObject({ exit: 2, aside: expect.stringContaining("give --resume, too") });
  });

  test("a store without such a tree says so", async () => {
    await ended(["thread", "new", "--store", place.store]);
    const none = await ended(["run", "--resume", "--store", place.store]);
    expect(none).toMatchObject({ exit: 3, aside: expect.stringContaining("to go on with; begin one. See:") });
  });
});
