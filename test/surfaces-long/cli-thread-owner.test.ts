/** A thread that another process runs: what goes through its inbox, what is refused, and what its death leaves. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Place, type Row, type Running, rowsOf } from "../support/cli.ts";

const place = new Place();
let thread = "";
let revision = 0;
let running: Running;

const shown = async (): Promise<Row> => (await place.rows("thread", "show", thread))[0];

async function fault(...args: string[]): Promise<Row> {
  const ended = await place.run(...args, "--json");
  expect(ended.stdout).toBe("");
  return JSON.parse(ended.stderr).error;
}

beforeAll(async () => {
  thread = (await place.rows("thread", "new"))[0].id;
  await place.run("thread", "continue", thread, "--pace", "0", "first");
  revision = (await shown()).revision;
  running = place.start([
    "thread",
    "continue",
    thread,
    "--pace",
    "3600000",
    "--store",
    place.store,
    "slowly",
  ]);
  while ((await shown()).activity.kind !== "running") expect(running.child.exitCode).toBeNull();
}, 120_000);
afterAll(async () => {
  await running.kill();
  place[Symbol.dispose]();
});

describe("a thread that another process runs", () => {
  test("S1-23 `continue` is refused with the run, or with the revision that it was planned on", async () => {
    const { activity } = await shown();
    expect(await fault("thread", "continue", thread, "again")).toMatchObject({
      code: "THREAD_BUSY",
      exit: 1,
    });
    expect(activity.executionId).toMatch(/^run_/);
    const stale = await fault("thread", "continue", thread, "--expect", String(revision), "again");
    expect(stale).toMatchObject({ code: "THREAD_REVISION_CONFLICT", exit: 1 });
  });

  test("S0-60 the run under way is no point to fork at; the newest point is the one before", async () => {
    const unstable = await fault("thread", "fork", thread, "--at", "run:2");
    expect(unstable).toMatchObject({ code: "SOURCE_POINT_UNSTABLE", exit: 1 });
    const [made] = await place.rows("thread", "fork", thread);
    expect(made.transfer.sourcePoint.ordinal).toBe(1);
  });

  test("what its owner can do goes through its inbox, and the command says so", async () => {
    const renamed = await place.run("thread", "rename", thread, "while it runs");
    expect(renamed.stdout).toContain("is called while it runs");
    expect(renamed.stderr).toBe("Done by the process that runs the thread's tree.\n");
    const [pinned] = await place.rows("context", "pin", "constraint", "--thread", thread, "no network");
    expect(pinned).toMatchObject({ applied_by: "owner", section: "constraints" });
    const [chosen] = await place.rows("thread", "switch", thread, "--provider", "parrot");
    expect(chosen).toMatchObject({ applied_by: "owner", selection: { provider: "parrot" } });
    expect(await fault("thread", "switch", thread, "--provider", "nobody")).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      exit: 2,
    });
    // Refused by the owner, not for want of being it.
    expect(await fault("thread", "rollback", thread, "--undo")).toMatchObject({
      code: "ROLLBACK_ACTIVE_RUN",
    });
    expect(await fault("handoff", "edit", "hnd_nothing", "text")).toMatchObject({
      code: "TRANSFER_SOURCE_UNRESOLVABLE",
    });
  });

  test("what only its owner may do is refused, and names the owner", async () => {
    expect(await fault("thread", "close", thread)).toMatchObject({ code: "THREAD_BUSY", exit: 1 });
    for (const command of [["rollback", "--to", "0"], ["sync"]]) {
      const error = await fault("thread", command[0]!, thread, ...command.slice(1));
      expect(error).toMatchObject({ code: "NOT_OWNER", exit: 3 });
      expect(error.message).toContain(String(running.child.pid));
    }
  });

  test("S1-61 S1-64 S1-66 killed in a run, it is settled by whoever looks, and goes on with what was pinned", async () => {
    await running.kill();
    // The dead run is in nobody's way: there is simply no rollback to undo.
    expect(await fault("thread", "rollback", thread, "--undo")).toMatchObject({
      code: "ROLLBACK_TARGET_INVALID",
    });
    const [settled] = await place.rows("thread", "reconcile", thread);
    expect(settled.activity).toEqual({ kind: "idle" });
    const after = await shown();
    expect(after.runs.at(-1)).toMatchObject({ outcome: "interrupted" });
    const went = await place.run("thread", "continue", thread, "--pace", "0", "--provider", "echo", "on");
    expect(went).toMatchObject({ code: 0 });
    expect((await place.run("thread", "context", thread)).stdout).toContain("no network (run 2)");
  });

  test("S1-24 C11.9 of two that were planned on one revision, one opens a run and the other is told why not", async () => {
    const { revision: seen, executions } = await shown();
    const one = (text: string) =>
      place.run("thread", "continue", thread, "--json", "--pace", "0", "--expect", String(seen), text);
    const ended = await Promise.all([one("left"), one("right")]);
    expect(new Set(ended.map(({ code }) => code))).toEqual(new Set([0, 1]));
    const lost = ended.find(({ code }) => code === 1)!;
    expect(JSON.parse(lost.stderr.trim().split("\n").at(-1)!).error.code).toBe("THREAD_REVISION_CONFLICT");
    expect((await shown()).executions).toBe(executions + 1);
    expect(rowsOf(ended.find(({ code }) => code === 0)!.stdout)[0].outcome.ending).toBe("completed");
  });
});
