/** Workspace checkpoints from `runtime.threads`: listed, compared, written back, removed, with real repositories (C1.18). */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import { call, gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { NO_CAPTURE } from "../support/no-capture.ts";
import { temporaryFolder, TestRepository } from "../support/repository.ts";

/** Real processes, on a machine that may be busy. */
const processes = { timeout: 120_000 };

const write = defineTool({
  name: "write",
  input: z.strictObject({ name: z.string(), text: z.string() }),
  effects: ["write"],
  run: ({ name, text }, { workspace }) => writeFileSync(join(workspace!, name), text),
});

const refs = (r: TestRepository): string[] =>
  r
    .git("for-each-ref", "--format=%(refname)", "refs/coppice/")
    .split("\n")
    .filter((line) => line !== "");

describe.each(STORES)("checkpoints of workspaces on %s", processes, (store) => {
  /** Two runs, each of which has written a file. */
  async function open(more: HarnessOptions["scripts"] = {}) {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n" });
    const h = await harness({
      store,
      runtime: { workspaceCapture: "git", tools: [write] },
      tree: { workspace: r.folder },
      scripts: {
        "/root": [
          call("write", { name: "one.txt", text: "1\n" }),
          say("first"),
          call("write", { name: "two.txt", text: "2\n" }),
          say("second"),
          together(gate("busy"), say("third")),
          repeat(say("more")),
        ],
        ...more,
      },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    for (const text of ["one", "two"]) {
      await h.ask(text);
      await h.tree.control.tree.jobs.of(h.tree.id);
    }
    const [first, second] = (await h.runtime.threads.checkpoints(h.tree.id)).rows;
    return { r, h, threads: h.runtime.threads, id: h.tree.id, first: first!, second: second! };
  }

  test("C1.18 they are listed with their runs, and compared with each other and with the folder", async () => {
    const { r, threads, id, first, second } = await open();
    expect(first).toMatchObject({ ordinal: 1, status: "ready", files: ["one.txt"], reason: null });
    expect(second).toMatchObject({ ordinal: 2, status: "ready", files: ["two.txt"] });
    expect(new Set(refs(r))).toEqual(new Set([first.ref, second.ref]));
    const between = await threads.diffCheckpoints(id, { run: first.runId, to: second.runId });
    expect(between).toMatchObject({ status: "ready", files: ["two.txt"] });
    expect(between).toMatchObject({ patch: expect.stringContaining("+2") });
    r.write("one.txt", "changed\n");
    expect(await threads.diffCheckpoints(id, { run: second.runId })).toMatchObject({ files: ["one.txt"] });
    await expect(threads.diffCheckpoints(id, { run: "run_nothing" })).rejects.toMatchObject({
      code: "SOURCE_POINT_NOT_FOUND",
    });
  });

  test("C1.18 one is written back, and nothing of the user's is touched but files", async () => {
    const { r, threads, id, first, second } = await open();
    r.write("staged.txt", "staged\n");
    r.git("add", "staged.txt");
    r.write("stashed.txt", "stashed\n");
    r.git("stash", "push", "--include-untracked", "--", "stashed.txt");
    r.write("one.txt", "mine\n");
    const before = r.seen();
    const restored = await threads.restoreCheckpoint(id, { run: first.runId, paths: ["one.txt", "two.txt"] });
    expect(restored).toMatchObject({ status: "ready", written: ["one.txt"], removed: ["two.txt"] });
    const after = r.seen();
    expect(after["one.txt"]).toBe("1\n");
    expect(after["two.txt"]).toBeUndefined();
    const ours = { "one.txt": "", "two.txt": "", status: "" };
    expect({ ...after, ...ours }).toEqual({ ...before, ...ours });
    // What stood there is kept, and can be read again.
    const kept = (restored as { readonly before: string }).before;
    expect(r.git("show", `${kept}:one.txt`)).toBe("mine\n");
    expect(await threads.diffCheckpoints(id, { run: second.runId })).toMatchObject({ status: "ready" });
  });

  test("C1.18 what stood there is kept of each restore, and goes with the checkpoint", async () => {
    const { r, threads, id, first, second } = await open();
    const befores: string[] = [];
    for (const text of ["mine\n", "mine again\n"]) {
      r.write("one.txt", text);
      const restored = await threads.restoreCheckpoint(id, { run: first.runId, paths: ["one.txt"] });
      befores.push((restored as { readonly before: string }).before);
    }
    expect(befores.map((before) => r.git("show", `${before}:one.txt`))).toEqual(["mine\n", "mine again\n"]);
    expect(new Set(refs(r))).toEqual(new Set([first.ref, second.ref, ...befores]));
    await threads.removeCheckpoint(id, first.runId);
    expect(refs(r)).toEqual([second.ref]);
  });

  test("C1.18 C3.12 under an id it is written back once, by the owner for another process too", async () => {
    const { r, h, threads, id, first } = await open();
    const asked = { run: first.runId, paths: ["one.txt"], commandId: "once" };
    r.write("one.txt", "mine\n");
    const done = await threads.restoreCheckpoint(id, asked);
    r.write("one.txt", "mine again\n");
    expect(await threads.restoreCheckpoint(id, asked)).toEqual(done);
    expect(r.read("one.txt")).toBe("mine again\n");
    const args = { thread: id, run: first.runId, paths: ["one.txt"] };
    const sent = commandTree(h.store, id, "restore_checkpoint", args, { provenDead: () => false });
    // The owner's time stands still again as soon as git is at work.
    const { commands } = h.tree.control.tree;
    await waitUntil("the owner has begun", () => commands.size > 0, { step: () => h.clock.advance(25) });
    expect(await sent).toMatchObject({
      appliedBy: "owner",
      answer: { status: "ready", written: ["one.txt"] },
    });
    expect(r.read("one.txt")).toBe("1\n");
  });

  test("C1.18 while a run is active nothing is written back or removed", async () => {
    const { r, h, threads, id, first } = await open();
    const work = await h.tree.root.send("three");
    await h.provider.gates.arrived("busy");
    const before = r.seen();
    const busy = { code: "THREAD_BUSY", details: { executionId: expect.stringMatching(/^run_/) } };
    await expect(threads.restoreCheckpoint(id, { run: first.runId })).rejects.toMatchObject(busy);
    await expect(threads.removeCheckpoint(id, first.runId)).rejects.toMatchObject(busy);
    expect(r.seen()).toEqual(before);
    h.provider.gates.open("busy");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("C1.18 one that is removed is gone from the repository, and its run says so", async () => {
    const { r, threads, id, first, second } = await open();
    expect(await threads.removeCheckpoint(id, first.runId)).toEqual({ status: "ready" });
    expect(refs(r)).toEqual([second.ref]);
    expect((await threads.checkpoints(id)).rows[0]).toMatchObject({
      status: "none",
      reason: "it was removed",
      ref: null,
    });
    await expect(threads.restoreCheckpoint(id, { run: first.runId })).rejects.toMatchObject({
      code: "SOURCE_POINT_NOT_FOUND",
      message: expect.stringContaining("it was removed"),
    });
    // The run is a point to fork at as before.
    const at = { kind: "run", runId: first.runId } as const;
    expect((await threads.fork(id, { at })).transfer.sourcePoint.runId).toBe(first.runId);
  });

  test("C1.18 C9.3 those of runs that were rolled back go with the next run, save one that was written back", async () => {
    const { r, h, threads, id, first, second } = await open({
      "/root": [
        call("write", { name: "one.txt", text: "1\n" }),
        say("first"),
        call("write", { name: "two.txt", text: "2\n" }),
        say("second"),
        repeat(say("more")),
      ],
    });
    const ask = async (text: string): Promise<void> => {
      await h.ask(text);
      await h.tree.control.tree.jobs.of(id);
    };
    const back = (ordinal: number) => threads.rollBack(id, { to: { kind: "ordinal", ordinal } });
    await ask("three");
    const third = (await threads.checkpoints(id)).rows[2]!;
    await threads.restoreCheckpoint(id, { run: third.runId });
    await back(2);
    await back(1);
    // It can be undone as yet: all of them stay.
    expect(refs(r)).toEqual(expect.arrayContaining([first.ref, second.ref, third.ref]));
    await threads.undoRollback(id);
    await back(1);
    const fork = await threads.fork(id, { at: { kind: "run", runId: first.runId } });
    await ask("four");
    const left = refs(r);
    expect(left).toEqual(expect.arrayContaining([first.ref, third.ref]));
    expect(left).not.toContain(second.ref);
    // What stood there before the restore is there, and the run of now.
    expect(left).toHaveLength(4);
    expect((await threads.checkpoints(id)).rows.map(({ status }) => status)).toEqual([
      "ready",
      "none",
      "ready",
      "ready",
    ]);
    await expect(threads.restoreCheckpoint(id, { run: second.runId })).rejects.toMatchObject({
      code: "SOURCE_POINT_NOT_FOUND",
      message: expect.stringContaining("rolled back"),
    });
    expect(fork.transfer.status).toBe("pending");
    await ask("five");
    expect(refs(r)).toHaveLength(5);
    await threads.close(id);
    await threads.archive(id);
    expect(refs(r)).toEqual([]);
  });

  test("C1.18 C9.3 what a run has changed is told against the newest one that is there", async () => {
    const { h, threads, id, first } = await open({
      "/root": [
        call("write", { name: "one.txt", text: "1\n" }),
        say("first"),
        call("write", { name: "two.txt", text: "2\n" }),
        say("second"),
        repeat(say("more")),
      ],
    });
    await threads.rollBack(id, { to: { kind: "ordinal", ordinal: 1 } });
    const ask = async (text: string) => {
      await h.ask(text);
      await h.tree.control.tree.jobs.of(id);
      return (await threads.checkpoints(id)).rows.at(-1)!;
    };
    const third = await ask("three");
    expect((await threads.checkpoints(id)).rows.map(({ status }) => status)).toEqual([
      "ready",
      "none",
      "ready",
    ]);
    await threads.removeCheckpoint(id, third.runId);
    expect(await ask("four")).toMatchObject({ status: "ready", files: ["two.txt"] });
    expect(first.status).toBe("ready");
  });

  test("C1.18 C2.1 with its archiving a thread's are removed, those of other threads stay", async () => {
    const { r, threads, id, first } = await open();
    await threads.restoreCheckpoint(id, { run: first.runId, paths: ["one.txt"] });
    const other = r.git("rev-parse", "HEAD").trim();
    execFileSync("git", ["update-ref", "refs/coppice/checkpoints/thread_other/run_1", other], {
      cwd: r.folder,
    });
    await threads.close(id);
    expect(refs(r)).toHaveLength(4);
    await threads.archive(id);
    expect(refs(r)).toEqual(["refs/coppice/checkpoints/thread_other/run_1"]);
    expect((await threads.checkpoints(id)).rows[0]).toMatchObject({
      status: "none",
      reason: "the thread is archived",
    });
    // Again it has nothing left to do.
    expect((await threads.archive(id)).status).toBe("archived");
  });
});

test.for(STORES)(
  "C1.18 C2.1 [%s] one that is taken while its thread is archived is removed too",
  async (store) => {
    const begun = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    const kept = new Set<string>();
    const ready = { status: "ready" } as const;
    const capture: WorkspaceCapture = {
      ...NO_CAPTURE,
      async capture(_, { name: ref }) {
        begun.resolve();
        await taken.promise;
        kept.add(ref);
        return { ...ready, ref, tree: "tree", summary: "", files: [], omitted: [] };
      },
      async remove(_, ref) {
        kept.delete(ref);
        return ready;
      },
    };
    await using h: Harness = await harness({
      store,
      runtime: { workspaceCapture: capture },
      tree: { workspace: temporaryFolder() },
      scripts: { "*": [repeat(say("ok"))] },
    });
    await h.ask("one");
    await begun.promise;
    const capturing = h.tree.control.tree.jobs.of(h.tree.id);
    await h.runtime.threads.close(h.tree.id);
    expect((await h.runtime.threads.archive(h.tree.id)).status).toBe("archived");
    taken.resolve();
    await capturing;
    expect([...kept]).toEqual([]);
    expect((await h.runtime.threads.checkpoints(h.tree.id)).rows).toMatchObject([{ status: "none" }]);
  },
);

test("C1.18 a thread without captures has no checkpoints, and what cannot be compared is an answer", async () => {
  const r = new TestRepository();
  r.commit({ "a.txt": "a\n" });
  await using h: Harness = await harness({
    runtime: { workspaceCapture: "git" },
    tree: { workspace: r.folder },
    scripts: { "*": [repeat(say("ok"))] },
  });
  await h.ask("one");
  await h.tree.control.tree.jobs.of(h.tree.id);
  const { threads } = h.runtime;
  const { id } = await threads.create();
  expect((await threads.checkpoints(id)).rows).toEqual([]);
  const [only] = (await threads.checkpoints(h.tree.id)).rows;
  r.git("update-ref", "-d", only!.ref!);
  for (const answer of [
    await threads.diffCheckpoints(h.tree.id, { run: only!.runId }),
    await threads.restoreCheckpoint(h.tree.id, { run: only!.runId }),
  ])
    expect(answer).toMatchObject({ status: "missing", reason: expect.stringContaining("no checkpoint") });
});
