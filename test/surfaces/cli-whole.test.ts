/** What agents said, from a shell: what a table cuts is marked, and each is to be had whole. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place, rowsOf } from "../support/cli.ts";
import { ended } from "../support/cli-here.ts";

const place = new Place();
const run = (...args: readonly string[]) => ended([...args, "--store", place.store]);
const [NODE, BIN] = ["node_modules/.bin/node", "src/cli/bin.ts"].map((path) =>
  fileURLToPath(new URL(`../../${path}`, import.meta.url)),
);
const LONG = `${"long ".repeat(3000)}\nits end`;
let tree = "";

beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store });
  const provider = scripted({
    "/root": [spawn("child", "Look.\nThen say."), wait({ targets: ["child"] }), say("first\nsecond")],
    "/root/child": [say(LONG)],
  });
  {
    await using runtime = await createRuntime({ store, providers: { scripted: provider } });
    const opened = await runtime.openTree();
    tree = opened.id;
    await (await opened.root.send("go")).outcome();
    // Without a path's `--tree` the newest one is meant.
    await runtime.openTree();
  }
  await store.close();
});
afterAll(() => place[Symbol.dispose]());

test("`works` marks what it cuts, and `works <id>` prints one whole", async () => {
  const { out } = await run("works", "--tree", tree);
  expect(out).toContain("→ first …\n");
  expect(out).toContain("Look. …\n");
  expect(out).toContain("One of them whole: npx coppice works wrk_…");
  const [root, child] = rowsOf((await run("works", "--tree", tree, "--json")).out);
  expect((await run("works", root.id)).out).toMatch(
    /^wrk_\w+ {2}user → \/root {2}completed\ngo\n\nAnswer\nfirst\nsecond\n$/,
  );
  const whole = await run("works", child.id);
  expect(whole.out).toContain(`Look.\nThen say.\n\nAnswer\n${LONG}\n`);
  expect(rowsOf((await run("works", child.id, "--json")).out)).toMatchObject([
    { id: child.id, answer: LONG },
  ]);
  expect(await run("works", "wrk_000000000000000000000")).toMatchObject({ exit: 3 });
  expect(await run("works", "x")).toMatchObject({ exit: 2, aside: expect.stringContaining("wrk_…") });
});

test.for(["works", "tree --json", "--help"])("`%s` on a full disk fails, and says so", (command) => {
  const line = `"$NODE" "$BIN" ${command} > /dev/full`;
  const env = { ...process.env, NODE, BIN, COPPICE_STORE: place.store };
  const { status, stderr } = spawnSync("sh", ["-c", line], { env, encoding: "utf8" });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/^coppice: standard output cannot be written: .*ENOSPC.*\n$/),
  });
});

test("`agent transcript` takes a path and --tree; `tree` names it, and ids with --ids", async () => {
  const shown = await run("tree", "--tree", tree, "--ids");
  expect(shown.out).toContain(
    `What was said: npx coppice agent transcript /root --tree ${tree} --store ${place.store}`,
  );
  const [, id = ""] = /child .* (thread_\w{21})$/m.exec(shown.out) ?? [];
  const said = await run("agent", "transcript", "/root/child", "--tree", tree, "--limit", "1", "--full");
  expect(said.out).toContain("its end");
  expect(said.aside).toMatch(
    /^before: npx coppice agent transcript \/root\/child --before \S+ --limit 1 --full --tree \S+ --store \S+$/m,
  );
  expect((await run("thread", "transcript", id, "--limit", "1", "--full")).out).toBe(said.out);
});
