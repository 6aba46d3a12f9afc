/** Questions and approvals, listed and answered from a shell. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { approve, ask, say } from "../../src/providers/scripted/script.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { DEMO_MODEL } from "../../src/cli/demo/job.ts";
import { Place, type Row, rowsOf } from "../support/cli.ts";

const ASKED = "Which of the two, \u001b[31mred\u001b[0m or blue?";
const place = new Place();

/** A provider that the command line has, too, so that `--run` can go on with these agents. */
const provider = scripted(
  {
    "/root": [say("hello")],
    "/root/asker": [ask(ASKED), say((context) => `So it is ${JSON.stringify(context.lastToolResult)}.`)],
    "/root/careful": [approve("May I delete a.txt?"), say("done")],
    "/root/strict": [
      approve("May I publish?"),
      say((context) => `I heard ${JSON.stringify(context.lastToolResult)}.`),
    ],
    "/root/live": [ask("One?"), say((context) => `I heard ${JSON.stringify(context.lastToolResult)}.`)],
  },
  { models: { [DEMO_MODEL]: {} } },
);
const open = async () =>
  createRuntime({ store: await openSqliteStore({ path: place.store }), providers: { scripted: provider } });

beforeAll(async () => {
  await using runtime = await open();
  const tree = await runtime.openTree({ provider: "scripted", model: DEMO_MODEL });
  for (const name of ["asker", "careful", "strict", "live"]) await tree.root.spawn(name, "Ask.");
  await tree.idle();
});
afterAll(() => place[Symbol.dispose]());

describe("what an agent asks", () => {
  test("WAI-2 is shown by `tree` and `why` with the command that answers it", async () => {
    const [tree, [rows], why, [explained]] = await Promise.all([
      place.run("tree"),
      place.rows("tree"),
      place.run("why", "careful"),
      place.rows("why", "asker"),
    ]);
    expect(tree.stdout).toContain("/root/asker asks: Which of the two, red or blue?");
    expect(tree.stdout).toMatch(
      /npx coppice agent answer \/root\/asker req_\S+ --tree thread_\S+ --store \S+ --text "…"/,
    );
    expect(tree.stdout).toContain("/root/careful asks for an approval: May I delete a.txt?");
    expect(rows.requests.map((request: Row) => [request.path, request.kind])).toContainEqual([
      "/root/careful",
      "approval",
    ]);
    expect(why.stdout).toMatch(/Answer: npx coppice approvals approve req_\S+ --store \S+ {2}\(or: deny\)/);
    expect(explained.requests).toMatchObject([{ kind: "question", text: ASKED, status: "pending" }]);
  });

  test.for([
    [2, ["asker"], /the answer is missing; give one of --text/],
    [2, ["asker", "--text", "x", "--deny"], /several answers/],
    [2, ["asker", "--text", "  "], /blank/],
    [2, ["asker", "--approve"], /is a question .*answer it with --text/],
    [2, ["careful", "--text", "banana"], /is an approval .*answer it with --approve or --deny/],
    [2, ["asker", "nonsense", "--text", "x"], /not the id of a question.*\/root\/asker asks req_/],
    [3, ["asker", "req_nobody", "--text", "x"], /no request req_nobody is in .*\/root\/asker asks req_/],
    [3, ["/root", "--text", "x"], /\/root asks nothing now; .*npx coppice tree/],
  ] as const)("WAI-2 exits %i for %j, and nothing is answered", async ([code, args, words]) => {
    const ended = await place.run("agent", "answer", ...args);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toMatch(words);
    const [tree] = await place.rows("tree");
    expect(tree.requests).toHaveLength(4);
  });

  test("WAI-2 an approval is answered without an owner, once, and what is asked by another is not", async () => {
    const [tree] = await place.rows("tree");
    const { id } = tree.requests.find((request: Row) => request.path === "/root/careful");
    const foreign = await place.run("agent", "answer", "asker", id, "--deny");
    expect(foreign).toMatchObject({ code: 3, stderr: expect.stringContaining("asked by another agent") });
    const answered = await place.run("agent", "answer", "careful", id, "--deny");
    expect(answered).toMatchObject({ code: 0, stderr: "" });
    expect(answered.stdout).toMatch(/\/root\/careful has the answer .*No process runs the tree.*--run/);
    const late = await place.run("agent", "answer", "careful", id, "--approve", "--json");
    expect(late).toMatchObject({ code: 3, stdout: "" });
    const { error } = JSON.parse(late.stderr) as Row;
    expect(error).toMatchObject({ code: "REQUEST_NOT_RESUMABLE", exit: 3 });
    expect(error.message).toContain("is resolved already");
  });

  test("WAI-2 with --run the tree is run here until it is idle", async () => {
    const ran = await place.run("agent", "answer", "asker", "--text", "blue", "--run", "--pace", "0");
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("/root/asker: completed\n") });
    const [tree] = await place.rows("tree");
    expect(tree.agents.find((agent: Row) => agent.path === "/root/asker").state).toBe("completed");
    expect(tree.requests.map((request: Row) => request.path).sort()).toEqual(["/root/live", "/root/strict"]);
  });

  test("WAI-2 `approvals` lists what all trees wait for, with age and the command that answers", async () => {
    const [rows, text] = await Promise.all([place.rows("approvals"), place.run("approvals", "list")]);
    expect(rows.map(({ path, kind }: Row) => [path, kind])).toEqual([
      ["/root/strict", "approval"],
      ["/root/live", "question"],
    ]);
    expect(text.stdout).toMatch(
      /\/root\/strict asks for an approval: May I publish\?\n +npx coppice approvals approve req_.*\n +for .*, in thread_/,
    );
  });

  test("WAI-2 `approvals approve` refuses what is no approval that waits, and nothing is answered", async () => {
    const log = await place.rows("log");
    const opened = (path: string): string =>
      log.find((row: Row) => row.type === "request.opened" && row.path === path).data.requestId;
    const refused = [
      [2, "nonsense", /not the id of an approval/],
      [3, "req_nobody", /no request req_nobody is in .*npx coppice approvals/],
      [2, opened("/root/live"), /is a question .*answer it with: npx coppice agent answer \S+ req_/],
      [3, opened("/root/careful"), /is resolved already; nothing was answered/],
    ] as const;
    const ended = await Promise.all(refused.map(([, id]) => place.run("approvals", "approve", id)));
    for (const [at, [code, , words]] of refused.entries())
      expect(ended[at]).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(words) });
  });

  test("WAI-2 `approvals deny` with a note tells the agent, which goes on with --run", async () => {
    const [{ id }] = await place.rows("approvals");
    const denied = await place.run("approvals", "deny", id, "not on a Friday", "--run", "--pace", "0");
    expect(denied).toMatchObject({ code: 0, stdout: expect.stringContaining("/root/strict is told that") });
    expect(denied.stdout).toContain("/root/strict: completed\n");
    const store = await openSqliteStore({ path: place.store, readOnly: true });
    const request = await store.read((view) => view.request(id));
    await store.close();
    expect(request).toMatchObject({ status: "resolved", answer: "denied: not on a Friday" });
    const works = await place.rows("works");
    expect(works.find((work: Row) => work.executorPath === "/root/strict").state).toBe("ended");
  });

  test("WAI-2 REC-2 a live owner takes the answer and its agent goes on", async () => {
    const [before] = await place.rows("tree");
    await using runtime = await open();
    const tree = await runtime.openTree({ id: before.tree });
    const answered = await place.start(
      ["agent", "answer", "live", "--text", "-", "--json", "--store", place.store],
      {},
      "two",
    ).ended;
    expect(answered).toMatchObject({ code: 0, stderr: "" });
    expect(rowsOf(answered.stdout)).toEqual([
      { applied_by: "owner", request_id: expect.stringMatching(/^req_/) },
    ]);
    await tree.idle();
    const works = await place.rows("works");
    expect(works.find((work: Row) => work.executorPath === "/root/live").outcome.text).toBe('I heard "two".');
  });
});
