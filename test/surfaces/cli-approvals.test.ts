/** Approvals and questions with the command line in this process: how each is answered, and what a run has come to. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { DEMO_MODEL } from "../../src/cli/demo/job.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { approve, ask, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place, type Row, rowsOf } from "../support/cli.ts";
import { ended } from "../support/cli-here.ts";

const place = new Place();
let asked = "";

/** A provider that the command line has, too, so that `--run` can go on with these agents. */
const provider = scripted(
  {
    "/root": [say("hello")],
    "/root/careful": [approve("May I delete a.txt?"), say("done")],
    "/root/strict": [approve("May I publish?"), say("done")],
    "/root/asker": [ask("Red or blue?"), say("done")],
  },
  { models: { [DEMO_MODEL]: {} } },
);

beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store });
  {
    await using runtime = await createRuntime({ store, providers: { scripted: provider } });
    const tree = await runtime.openTree({ provider: "scripted", model: DEMO_MODEL });
    asked = tree.id;
    for (const name of ["careful", "strict", "asker"]) await tree.root.spawn(name, "Ask.");
    await tree.idle();
    // A tree in which nothing is asked is passed over.
    await (await runtime.openTree({ provider: "scripted", model: DEMO_MODEL })).root.send("hello");
  }
  await store.close();
});
afterAll(() => place[Symbol.dispose]());

const run = (...args: readonly string[]) => ended([...args, "--store", place.store]);

test("WAI-2 `approvals` names for each the command that answers it", async () => {
  const { exit, out } = await run("approvals");
  expect(exit).toBe(0);
  const commands = out.split("\n").filter((line) => line.includes("npx coppice"));
  const at = `--store ${place.store}`;
  expect(commands).toEqual([
    expect.stringMatching(new RegExp(`npx coppice approvals approve req_\\S+ ${at} {2}\\(or: deny\\)$`)),
    expect.stringMatching(new RegExp(`npx coppice approvals approve req_\\S+ ${at} {2}\\(or: deny\\)$`)),
    expect.stringMatching(/npx coppice agent answer \/root\/asker req_\S+ .* --text "…"$/),
  ]);
});

test.for([
  ["approvals deny :strict no", "/root/strict"],
  ["approvals approve :careful", "/root/careful"],
  ["agent answer asker :asker --text blue", "/root/asker"],
] as const)("WAI-2 `%s --run` prints how the work has ended", async ([command, path]) => {
  const requests = rowsOf((await run("approvals", "--json")).out);
  const id = (requests.find((request: Row) => request.path === path) as Row).id as string;
  const json = path === "/root/careful" ? ["--json"] : [];
  const args = command.replace(/:\w+/, id).split(" ");
  // The newest tree is another one.
  if (args[0] === "agent") args.push("--tree", asked);
  const { exit, out } = await run(...args, "--run", "--pace", "0", ...json);
  expect(exit).toBe(0);
  if (json.length > 0) {
    expect(rowsOf(out)).toMatchObject([
      { applied_by: "here" },
      { executorPath: path, outcome: { ending: "completed" } },
    ]);
  } else {
    expect(out).toContain(`${path}: completed\n`);
  }
});
