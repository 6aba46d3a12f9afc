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

  test("what would ask a provider is left to its owner too, which says what it makes of it", async () => {
    expect(await fault("thread", "close", thread)).toMatchObject({ code: "THREAD_BUSY", exit: 1 });
    expect(await fault("thread", "rollback", thread, "--to", "0")).toMatchObject({
      code: "ROLLBACK_ACTIVE_RUN",
      exit: 1,
    });
    expect(await place.rows("thread", "sync", thread)).toMatchObject([{ applied_by: "owner" }]);
    expect(await fault("handoff", "regenerate", "hnd_nothing")).toMatchObject({
      code: "TRANSFER_SOURCE_UNRESOLVABLE",
    });
  });

  test("C3.3 a message may queue behind the run under way; its answer is not there in time", async () => {
    const queued = await place.run(
      "thread",
      "continue",
      thread,
      "--on-busy",
      "queue",
      "--timeout",
      "0",
      "--command-id",
      "queued",
      "and then",
    );
    expect(queued.code).toBe(124);
  });

  test("C3.12 one id is one command, for the owner and from any shell", async () => {
    const rename = ["thread", "rename", thread, "--command-id", "once"];
    const [first] = await place.rows(...rename, "under an id");
    const [again] = await place.rows(...rename, "under an id");
    expect(again.revision).toBe(first.revision);
    expect(await fault(...rename, "another")).toMatchObject({ code: "COMMAND_ID_CONFLICT" });
    const [made] = await place.rows("thread", "new", "--command-id", "made");
    expect((await place.rows("thread", "new", "--command-id", "made"))[0].id).toBe(made.id);
    const rollback = ["thread", "rollback", made.id, "--to", "1", "--command-id", "back"];
    for (const text of ["one", "two"]) await place.run("thread", "continue", made.id, "--pace", "0", text);
    const [back] = await place.rows(...rollback);
    expect(back).toMatchObject({ applied_by: "here", target: 1, runs: [[2, 2]] });
    await place.run("thread", "continue", made.id, "--pace", "0", "three");
    expect(await place.rows(...rollback)).toMatchObject([{ target: 1, runs: [[2, 2]] }]);
    expect((await place.rows("thread", "show", made.id))[0].rolledBack).toEqual([[2, 2]]);
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
    // Behind what was queued before.
    const how = ["--pace", "0", "--provider", "echo", "--on-busy", "queue"];
    const went = await place.run("thread", "continue", thread, ...how, "on");
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
