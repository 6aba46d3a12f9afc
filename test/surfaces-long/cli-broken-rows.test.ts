/** Rows that cannot be read, on the command line (REC-1): named wherever one looks, and the rest is shown. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Place, type Row } from "../support/cli.ts";
import { damageRow } from "../support/stores.ts";

const place = new Place();
let agent: Row;
let work: Row;
let whole: Row;

beforeAll(async () => {
  expect(await place.demo("--dir", place.dir).ended).toMatchObject({ code: 0 });
  [whole] = await place.rows("tree", "--closed");
  agent = whole.agents.at(-1);
  work = (await place.rows("works")).find((row: Row) => row.executorPath !== agent.path);
  damageRow(place.store, "agents", agent.threadId);
  damageRow(place.store, "works", work.id);
});
afterAll(() => place[Symbol.dispose]());

const agentRow = (): string => `${agent.path} (agents ${agent.threadId})`;

test("REC-1 `tree` shows the rest, names the agent, and ends with exit code 5", async () => {
  const told = await place.run("tree", "--closed");
  expect(told.code).toBe(5);
  expect(told.stdout).toContain(`cannot be read: ${agent.path}`);
  expect(told.stdout).toContain("/root");
  expect(told.stderr).toContain(`a row of this tree cannot be read: ${agentRow()}`);
  const json = await place.run("tree", "--closed", "--json");
  expect(json.code).toBe(5);
  const shown = JSON.parse(json.stdout) as Row;
  expect(shown.agents.map(({ path }: Row) => path)).toEqual(
    whole.agents.map(({ path }: Row) => path).filter((path: string) => path !== agent.path),
  );
  expect(shown.unreadable).toEqual([{ table: "agents", id: agent.threadId, path: agent.path }]);
  expect(JSON.parse(json.stderr).error).toMatchObject({ code: "STORE_CORRUPT", exit: 5 });
});

test("REC-1 `works` shows the rest, names the work, and ends with exit code 5", async () => {
  const told = await place.run("works", "--json");
  expect(told.code).toBe(5);
  expect(told.stdout).not.toContain(`"id":"${work.id}"`);
  expect(told.stderr).toContain(`works ${work.id}`);
  const rows = told.stdout.trim().split("\n");
  const behind = await place.run("works", "--json", "--after", work.id);
  expect(behind.stderr).toBe("");
  expect(rows.slice(rows.length - behind.stdout.trim().split("\n").length).join("\n")).toBe(
    behind.stdout.trim(),
  );
});

test("REC-1 `doctor` names both, and `coppice` says of which tree", async () => {
  const doctor = await place.run("doctor");
  expect(doctor.code).toBe(5);
  expect(doctor.stdout).toContain(
    `1 of 1 tree with rows that cannot be read: ${whole.tree}: ${agentRow()}, works ${work.id}`,
  );
  const home = await place.run();
  expect(home).toMatchObject({ code: 0, stderr: "" });
  expect(home.stdout).toMatch(new RegExp(`${whole.tree}  .*with rows that cannot be read`));
  const [{ trees }] = [JSON.parse((await place.run("--json")).stdout) as Row];
  expect(trees[0].unreadable).toHaveLength(2);
});

test("REC-1 C19 a root that cannot be read is named by `tree`, `doctor` and `thread list` alike", async () => {
  damageRow(place.store, "agents", whole.tree);
  for (const look of [["tree"], ["doctor"], ["thread", "list", "--all"]]) {
    const told = await place.run(...look);
    expect(told).toMatchObject({ code: 5 });
    expect(told.stdout + told.stderr).toContain(whole.tree);
  }
  expect((await place.run()).stdout).toContain("with rows that cannot be read");
});
