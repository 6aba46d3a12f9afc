/** Budgets that are set from a shell. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place, rowsOf } from "../support/cli.ts";

const place = new Place();
const open = async () =>
  createRuntime({
    store: await openSqliteStore({ path: place.store }),
    providers: { scripted: scripted({ "*": [repeat(say("done"))] }) },
  });
let tree = "";

beforeAll(async () => {
  await using runtime = await open();
  const made = await runtime.openTree({ provider: "scripted", limits: { tokensPerTree: 100 } });
  tree = made.id;
  expect((await (await made.root.send("too dear")).outcome()).ending).toBe("budget_exhausted");
});
afterAll(() => place[Symbol.dispose]());

describe("a budget", () => {
  test.for([
    [[], /the budget is missing; give one of --tokens, --money and --wall-clock/],
    [["--tokens", "5", "--money", "none"], /several budgets/],
    [["--tokens", "1.5"], /Give a whole number, 0 or more, or `none`/],
    [["--money", "-1"], /Give a number, 0 or more, or `none`/],
  ] as const)("BUD-2 is not set by %j, which is exit 2", async ([args, words]) => {
    const ended = await place.run("agent", "budget", "/root", ...args);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(words);
  });

  test("BUD-2 that is spent takes requests again when it is raised, without an owner and by one", async () => {
    const refused = await place.run("agent", "followup", "/root", "again");
    expect(refused.stderr).toContain("the tokens budget of /root is spent");
    const raised = await place.run("agent", "budget", "/root", "--tokens", "1000000");
    expect(raised).toMatchObject({ code: 0, stderr: "" });
    expect(raised.stdout).toMatch(
      /^\/root and all below it: at most 1,000,000 tokens in all; [\d,]+ are used\.$/m,
    );
    await using runtime = await open();
    const opened = await runtime.openTree({ id: tree });
    expect((await (await opened.root.send("again")).outcome()).ending).toBe("completed");
    const byOwner = await place.run("agent", "budget", "/root", "--wall-clock", "none", "--json");
    expect(byOwner.stderr).toBe("");
    expect(rowsOf(byOwner.stdout)).toEqual([{ applied_by: "owner", budget: "wallClock", limit: null }]);
    await place.run("agent", "budget", "/root", "--wall-clock", "90");
    const { limits } = await runtime.store.read((view) => view.tree(opened.id)!);
    expect(limits).toMatchObject({ tokensPerTree: 1_000_000, treeWallClockMs: 90_000 });
  });
});
