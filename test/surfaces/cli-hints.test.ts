/** What commands say when something is not as it was meant: what is wrong, and what to type next. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { ask, fail, repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place, rowsOf } from "../support/cli.ts";
import { ended } from "../support/cli-here.ts";

const place = new Place();
const run = (...args: readonly string[]) => ended([...args, "--store", place.store]);
let asking = "";
let question = "";

beforeAll(async () => {
  await using runtime = await createRuntime({
    store: await openSqliteStore({ path: place.store }),
    providers: { scripted: scripted({ "*": [ask("which port?"), repeat(say("done"))] }) },
  });
  const tree = await runtime.openTree({ provider: "scripted" });
  await tree.root.send("begin");
  await tree.idle();
  asking = tree.id;
  question = (await tree.requests())[0]!.id;
});
afterAll(() => place[Symbol.dispose]());

test("a question that is taken for an approval is answered with a command that is told whole", async () => {
  const { exit, aside } = await run("approvals", "approve", question);
  expect(exit).toBe(2);
  expect(aside).toContain(
    `answer it with: npx coppice agent answer /root ${question} --tree ${asking} --store ${place.store} --text "…"`,
  );
});

test("--config that names a folder says so", async () => {
  const folder = join(place.path, "folder");
  mkdirSync(folder);
  const { exit, aside } = await run("run", "hello", "--config", folder);
  expect(exit).toBe(2);
  expect(aside).toContain(`${folder} is a folder; --config names a module of your own`);
});

test("no help says a default twice", async () => {
  for (const command of [["run"], ["demo"], ["thread", "new"]])
    expect((await ended([...command, "--help"])).out).not.toMatch(/default: this one/);
});

test("C5.1 a fork at message 0 is told which messages there are", async () => {
  const [thread] = rowsOf((await run("thread", "new", "--title", "one", "--json")).out);
  const { exit, aside } = await run("thread", "fork", thread.id, "--at", "message:0");
  expect(exit).toBe(3);
  expect(aside).toMatch(/has 0 items, numbered from 1, and none with number 0/);
});

test("a checkpoint that is not there points to those that are", async () => {
  const [thread] = rowsOf((await run("thread", "new", "--title", "two", "--json")).out);
  await run("thread", "continue", thread.id, "hello", "--pace", "0");
  const { exit, aside } = await run("thread", "checkpoint", "remove", thread.id, "1");
  expect(exit).toBe(3);
  expect(aside).toContain(`See: npx coppice thread checkpoint list ${thread.id} --store ${place.store}`);
});

test("a message with --run that starts nothing points to what does", async () => {
  const [thread] = rowsOf((await run("thread", "new", "--title", "three", "--json")).out);
  const { exit, aside } = await run("agent", "send", thread.id, "hello", "--run");
  expect(exit).toBe(0);
  expect(aside).toContain(
    `A message starts no run, and it is not read yet. To give a task: npx coppice agent followup`,
  );
});

test("BUD-2 a budget that is spent at once, and one of a closed agent, are told; so are closed agents", async () => {
  const made = await run("run", "hello", "--pace", "0");
  const tree = /--tree (thread_\w+)/.exec(made.aside)![1]!;
  const spent = await run("agent", "budget", "/root", "--tree", tree, "--tokens", "0");
  expect(spent.out).toMatch(/are used, so it is spent and starts nothing\.$/m);
  await run("agent", "close", "/root", "--tree", tree);
  const shown = await run("tree", "--tree", tree);
  expect(shown.out).toContain(
    `No agent is open. The closed ones: npx coppice tree --closed --tree ${tree} --store ${place.store}\n`,
  );
  const why = await run("why", "/root", "--tree", tree);
  expect(why.out).toContain("never runs again");
  expect(why.out).not.toContain("open it, or use --run");
  const refused = await run("agent", "budget", "/root", "--tree", tree, "--tokens", "5");
  expect([refused.exit, refused.aside]).toEqual([3, expect.stringContaining("/root is closed")]);
});

test("RES-8 a program that is gone is told once while the tree runs", async () => {
  const program = join(place.path, "program");
  writeFileSync(program, "", { mode: 0o755 });
  const [thread] = rowsOf((await run("thread", "new", "--provider", `acp:${program}`, "--json")).out);
  rmSync(program);
  const { aside } = await run("agent", "followup", thread.id, "hello", "--run");
  expect(aside.match(/cannot be loaded: /g)).toHaveLength(1);
});

test("a program that is missing is refused before anything is stored, with what to do", async () => {
  const path = process.env["PATH"];
  const [thread] = rowsOf((await run("thread", "new", "--json")).out);
  const before = (await run("thread", "list", "--all", "--json")).out;
  process.env["PATH"] = "/nowhere";
  try {
    for (const [provider, remedy] of [
      ["codex", "there is no program `codex` here: npm install -g @openai/codex, then: codex login"],
      ["opencode", "npm install -g opencode-ai, then: opencode auth login"],
      ["acp:there-is-none --now", "there is no program `there-is-none` here: install it"],
    ]) {
      for (const command of [
        ["run", "x"],
        ["thread", "new"],
        ["thread", "switch", thread.id],
        ["thread", "switch", thread.id, "--dry-run"],
        ["thread", "continue", thread.id, "x"],
      ]) {
        const refused = await run(...command, "--provider", provider!);
        expect(refused).toMatchObject({ exit: 2, out: "", aside: expect.stringContaining(remedy!) });
      }
    }
  } finally {
    process.env["PATH"] = path;
  }
  expect((await run("thread", "list", "--all", "--json")).out).toBe(before);
});

test("a thread whose only run was refused has a run, and no provider that has accepted one", async () => {
  const refused = fail({ code: "PROVIDER_REFUSED", message: "no." });
  const store = await openSqliteStore({ path: place.store });
  let id = "";
  {
    await using runtime = await createRuntime({
      store,
      providers: { scripted: scripted({ "*": [refused] }) },
    });
    const tree = await runtime.openTree({ workspace: process.cwd() });
    id = tree.id;
    await (await tree.root.send("go")).outcome();
  }
  await store.close();
  const list = (await run("thread", "list", "--all")).out.replaceAll(/\s+/g, " ");
  expect(list).toMatch(new RegExp(`${id} .*? no provider has accepted a run yet · 1 run · idle`));
  expect((await run("thread", "show", id)).out).toMatch(/^provider +none has accepted a run yet/m);
});

test("C7.6 a fork that is merged again says that there is nothing new", async () => {
  const [thread] = rowsOf((await run("thread", "new", "--title", "four", "--json")).out);
  await run("thread", "continue", thread.id, "port 8080", "--pace", "0");
  const [forked] = rowsOf((await run("thread", "fork", thread.id, "--json")).out);
  await run("thread", "continue", forked.thread.id, "tabs", "--pace", "0");
  expect((await run("thread", "merge", forked.thread.id)).out).toContain("up to run 1 is told with the next");
  await run("thread", "continue", thread.id, "go on", "--pace", "0");
  const again = await run("thread", "merge", forked.thread.id);
  expect(again.out).toMatch(/brings nothing new into .*: what it did up to run 1 was told there before\./);
  expect(again.out).not.toContain("is told with the next");
});

test("`coppice` names the store that `run` would make, and `run`", async () => {
  const before = process.cwd();
  const { XDG_DATA_HOME } = process.env;
  const empty = join(place.path, "empty");
  mkdirSync(empty);
  process.env["XDG_DATA_HOME"] = join(empty, "data");
  process.chdir(empty);
  try {
    const { out } = await ended([]);
    expect(out).toContain("empty/.coppice/store.db (none yet)");
    expect(out).toContain('npx coppice run "…"');
  } finally {
    process.chdir(before);
    if (XDG_DATA_HOME === undefined) delete process.env["XDG_DATA_HOME"];
    else process.env["XDG_DATA_HOME"] = XDG_DATA_HOME;
  }
});

test.for([
  ["tre", "there is no command tre. Did you mean tree? See: npx coppice --help"],
  ["thread swtich x", "there is no command swtich. Did you mean switch? See: npx coppice thread --help"],
  ["help wroks", "there is no command wroks. Did you mean works?"],
  ["zebra", "there is no command zebra. See:"],
])("`%s` is told what was meant, where a name is near", async ([command, said]) => {
  const { exit, aside } = await ended(command!.split(" "));
  expect([exit, aside]).toEqual([2, expect.stringContaining(said!)]);
});

test("a store that is not there is told with all that makes one, where it was named", async () => {
  const missing = join(place.path, "missing.db");
  const { exit, aside } = await ended(["tree", "--store", missing]);
  expect(exit).toBe(5);
  for (const maker of [
    `run --store ${missing} "…"`,
    `demo --store ${missing}`,
    `thread new --store ${missing}`,
  ])
    expect(aside).toContain(`npx coppice ${maker}`);
});
