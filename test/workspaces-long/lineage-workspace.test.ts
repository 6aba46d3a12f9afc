/** Checkpoints and worktrees of agents' workspaces, on both stores and with real repositories. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { systemClock } from "../../src/platform/clock.ts";
import { gitWorktrees } from "../../src/platform/workspace/git-worktrees.ts";
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import { call, fail, repeat, say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import type { RuntimeEvent } from "../../src/protocol/events.ts";
import type { RunRecord } from "../../src/protocol/run.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";
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

function repository(): TestRepository {
  const r = new TestRepository();
  r.commit({ "a.txt": "a\n" });
  return r;
}

/** Waits for the next events of a type, as the owner tells them; `count` of them. */
async function told(h: Harness, type: RuntimeEvent["type"], count = 1): Promise<RuntimeEvent[]> {
  const found: RuntimeEvent[] = [];
  for await (const event of h.tree.events({ after: 0 })) {
    if (event.type !== type) continue;
    found.push(event);
    if (found.length === count) break;
  }
  return found;
}

async function runsOf(h: Harness, path = "/root"): Promise<readonly RunRecord[]> {
  return (await (await h.tree.agent(path)).runs()).rows;
}

const workspaceOf = (run: RunRecord | undefined) => run?.checkpoint?.workspace;

describe.each(STORES)("workspaces on %s", processes, (store) => {
  const open = (r: { folder: string } | null, options: HarnessOptions = {}): Promise<Harness> =>
    harness({
      store,
      ...options,
      runtime: { workspaceCapture: "git", tools: [write], ...options.runtime },
      tree: r === null ? {} : { workspace: r.folder },
    });

  test("C1.18 S3-54 a run's state is captured after its settle and stays its own over a switch", async () => {
    const r = repository();
    const trace = r.trapHooks();
    const b = scripted({ "/root": [repeat(say("from B"))] });
    await using h = await open(r, {
      scripts: {
        "/root": [call("write", { name: "new.txt", text: "one\ntwo\n" }), say("done"), repeat(say("ok"))],
      },
      others: { b },
    });
    const before = r.seen();
    await h.ask("go");
    await told(h, "run.captured");
    const [first] = await runsOf(h);
    const state = workspaceOf(first);
    expect(state).toMatchObject({
      status: "ready",
      ref: `refs/coppice/checkpoints/${h.tree.id}/${first!.id}`,
      summary: "1 file changed, +2 -0",
      files: ["new.txt"],
    });
    expect(r.git("show", `refs/coppice/checkpoints/${h.tree.id}/${first!.id}:new.txt`)).toBe("one\ntwo\n");
    const work = await h.tree.root.send("second", { provider: "b" });
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    await told(h, "run.captured", 2);
    const runs = await runsOf(h);
    expect(runs[0]).toEqual(first);
    expect(runs[1]).toMatchObject({ provider: "b", checkpoint: { workspace: { summary: "no changes" } } });
    const after = r.seen();
    expect(after["new.txt"]).toBe("one\ntwo\n");
    expect({ ...after, "new.txt": "", status: "" }).toEqual({ ...before, "new.txt": "", status: "" });
    expect(existsSync(trace)).toBe(false);
  });

  test("S3-47 S3-55 S3-56 C6.2 a handoff tells the state through the latest run, with what differs", async () => {
    const r = repository();
    const b = scripted({ "/root": [repeat(say("from B"))] });
    await using h = await open(r, {
      scripts: {
        "/root": [
          call("write", { name: "first.txt", text: "1\n" }),
          say("first"),
          call("write", { name: "second.txt", text: "2\n" }),
          say("second"),
        ],
      },
      others: { b },
    });
    await h.ask("one");
    await h.ask("two");
    // At once: the run on the other provider waits until what this one has left is captured.
    await (await h.tree.root.send("three", { provider: "b" })).outcome();
    const [, second] = await runsOf(h);
    const sent = JSON.stringify(b.requests("/root").at(-1)!.messages);
    expect(sent).toContain(`refs/coppice/checkpoints/${h.tree.id}/${second!.id}`);
    expect(sent).toContain("Differences: 1 file changed, +1 -0");
    expect(sent).toContain("Files: second.txt");
    expect(sent).not.toContain("Files: first.txt");
  });

  test("C1.18 is missing at the settle, and ready when it was captured", async () => {
    const r = repository();
    const held = Promise.withResolvers<void>();
    const capture: WorkspaceCapture = {
      ...NO_CAPTURE,
      async capture() {
        await held.promise;
        return { status: "ready", ref: "refs/x", tree: "t", summary: "s", files: [], omitted: [] };
      },
    };
    await using h = await open(r, {
      runtime: { workspaceCapture: capture },
      scripts: { "*": [repeat(say("ok"))] },
    });
    await h.ask("go");
    expect(workspaceOf((await runsOf(h))[0])).toEqual({
      status: "missing",
      reason: "it is not captured yet",
    });
    const next = await h.tree.root.send("again");
    await h.clock.settle();
    expect(await runsOf(h)).toHaveLength(1);
    held.resolve();
    await next.outcome();
    expect(workspaceOf((await runsOf(h))[0])).toMatchObject({ status: "ready", summary: "s" });
  });

  test.for([
    ["it throws", () => Promise.reject(new Error("no disk")), { status: "missing", reason: "no disk" }],
    [
      "it fails this time",
      () => Promise.resolve({ status: "missing", reason: "too much", lasting: false } as const),
      { status: "missing", reason: "too much" },
    ],
    [
      "it never can",
      () => Promise.resolve({ status: "missing", reason: "no git", lasting: true } as const),
      { status: "none", reason: "no git" },
    ],
  ] as const)("C1.18 ends no run otherwise when %s", async ([, capture, state]) => {
    const port: WorkspaceCapture = { ...NO_CAPTURE, capture };
    await using h = await open(repository(), {
      runtime: { workspaceCapture: port },
      scripts: { "*": [say("ok")] },
    });
    expect(await h.ask("go")).toMatchObject({ ending: "completed" });
    await told(h, "run.captured");
    expect(workspaceOf((await runsOf(h))[0])).toEqual(state);
  });

  test("C1.18 without a repository the checkpoint is of the context alone and says so", async () => {
    await using h = await open({ folder: temporaryFolder() }, { scripts: { "*": [say("ok")] } });
    await h.ask("go");
    await told(h, "run.captured");
    expect(workspaceOf((await runsOf(h))[0])).toMatchObject({
      status: "none",
      reason: expect.stringContaining("no git repository") as unknown,
    });
  });

  test("C1.18 without a port, or a workspace, nothing is captured", async () => {
    const r = repository();
    await using none = await open(null, { scripts: { "*": [say("ok")] } });
    await none.ask("go");
    expect(workspaceOf((await runsOf(none))[0])).toEqual({ status: "none" });
    await using h = await harness({ store, tree: { workspace: r.folder }, scripts: { "*": [say("ok")] } });
    await h.ask("go");
    expect(workspaceOf((await runsOf(h))[0])).toEqual({ status: "none" });
    expect(r.git("for-each-ref", "refs/coppice")).toBe("");
  });

  test("S0-65 S0-59 C5.1 the latest stable run is one whose state was captured", async () => {
    let captures = 0;
    const capture: WorkspaceCapture = {
      ...NO_CAPTURE,
      async capture() {
        captures += 1;
        if (captures !== 2) return { status: "missing", reason: "failed", lasting: false };
        return { status: "ready", ref: "refs/x", tree: "t", summary: "s", files: [], omitted: [] };
      },
    };
    await using h = await open(repository(), {
      runtime: { workspaceCapture: capture },
      scripts: { "*": [say("one"), say("two"), fail({ code: "PROVIDER_REFUSED", accepted: true })] },
    });
    for (const text of ["one", "two", "three"]) await h.ask(text);
    await told(h, "run.captured", 3);
    const [, second, third] = await runsOf(h);
    expect(third!.status).toBe("failed");
    const fork = await h.runtime.threads.fork(h.tree.id);
    const { rows } = await h.runtime.threads.transfers(fork.thread.id, { limit: 1 });
    expect(rows[0]!.sourcePoint).toMatchObject({ ordinal: 2, runId: second!.id });
    const named = await h.runtime.threads.fork(h.tree.id, {
      at: { kind: "checkpoint", checkpointId: second!.checkpoint!.id },
    });
    expect(named.thread.id).not.toBe(fork.thread.id);
  });

  test("a close waits for captures under way, for a limited time", async () => {
    const r = repository();
    await using h = await open(r, { scripts: { "*": [say("ok")] } });
    await h.ask("go");
    await h.runtime.close();
    const run = (await h.store.read((view) => view.runAt(h.tree.id, 1)))!;
    expect(workspaceOf(run)).toMatchObject({ status: "ready" });

    const endless: WorkspaceCapture = {
      ...NO_CAPTURE,
      capture: (_folder, _request, { signal }) =>
        new Promise((resolve) =>
          signal!.addEventListener("abort", () =>
            resolve({ status: "missing", reason: "called off", lasting: false }),
          ),
        ),
    };
    await using other = await open(r, {
      runtime: { workspaceCapture: endless },
      scripts: { "*": [say("ok")] },
    });
    await other.ask("go");
    const closing = other.runtime.close();
    await other.clock.advance(30_000);
    await closing;
    const left = (await other.store.read((view) => view.runAt(other.tree.id, 1)))!;
    expect(workspaceOf(left)).toEqual({ status: "missing", reason: "called off" });
  });

  test("a crash in the middle leaves it missing; the next run is captured", async () => {
    const r = repository();
    let stuck = true;
    const capture: WorkspaceCapture = {
      ...NO_CAPTURE,
      capture: () =>
        stuck
          ? new Promise(() => undefined)
          : Promise.resolve({
              status: "ready",
              ref: "refs/x",
              tree: "t",
              summary: "s",
              files: [],
              omitted: [],
            }),
    };
    await using h = await open(r, {
      runtime: { workspaceCapture: capture },
      scripts: { "*": [repeat(say("ok"))] },
    });
    await h.ask("go");
    stuck = false;
    await h.crash();
    await h.ask("again");
    await told(h, "run.captured");
    expect((await runsOf(h)).map((run) => workspaceOf(run)?.status)).toEqual(["missing", "ready"]);
  });
});

describe.each(STORES)("worktrees on %s", processes, (store) => {
  const open = (
    r: { folder: string },
    scripts: NonNullable<HarnessOptions["scripts"]>,
    home: string | null = join(temporaryFolder(), "trees"),
  ): Promise<Harness> =>
    harness({
      store,
      scripts,
      runtime: { tools: [write], ...(home === null ? {} : { worktrees: home }) },
      tree: { workspace: r.folder },
    });
  const isolated = { isolation: "worktree" };

  test("SPN-7 a child has a worktree of its own, and its children are in it", async () => {
    const r = repository();
    r.write("a.txt", "not committed\n");
    await using h = await open(r, {
      "/root": [spawn("child", "go", isolated), wait(), say("done")],
      "/root/child": [
        call("write", { name: "mine.txt", text: "m\n" }),
        spawn("below", "go"),
        wait(),
        say("child is done"),
      ],
      "/root/child/below": [call("write", { name: "below.txt", text: "b\n" }), say("ok")],
    });
    await h.ask("go");
    const child = await (await h.tree.agent("/root/child")).record();
    const below = await (await h.tree.agent("/root/child/below")).record();
    const { worktree, workspace } = child.config;
    expect(worktree).toMatchObject({ path: workspace, base: r.git("rev-parse", "HEAD").trim() });
    expect(below.config).toMatchObject({ workspace, worktree: null });
    expect(readdirSync(workspace!).toSorted()).toEqual([".git", "a.txt", "below.txt", "mine.txt"]);
    expect(readFileSync(join(workspace!, "a.txt"), "utf8")).toBe("a\n");
    expect(r.git("status", "--porcelain")).toBe(" M a.txt\n");
    // With files of its own it is kept, and that is said.
    await (await h.tree.agent("/root/child")).close();
    const [ended] = await told(h, "worktree.ended");
    expect(ended).toMatchObject({
      path: "/root/child",
      data: { path: workspace, status: "kept", reason: expect.stringContaining("2 files") as unknown },
    });
    expect(existsSync(join(workspace!, "mine.txt"))).toBe(true);
  });

  test("goes with its agent when nothing is in it, however it is asked for", async () => {
    const r = repository();
    await using h = await open(r, { "*": [repeat(say("ok"))] });
    const options = { isolation: "worktree", commandId: "once" } as const;
    const { agent, work } = await h.tree.root.spawn("child", "go", options);
    await work.outcome();
    const again = await h.tree.root.spawn("child", "go", options);
    expect(again.agent.threadId).toBe(agent.threadId);
    const { workspace } = (await agent.record()).config;
    expect(r.git("worktree", "list", "--porcelain").match(/^worktree /gm)).toHaveLength(2);
    await agent.close();
    const [ended] = await told(h, "worktree.ended");
    expect(ended!.data).toEqual({ path: workspace, status: "removed" });
    expect(existsSync(workspace!)).toBe(false);
    expect(r.git("worktree", "list", "--porcelain").match(/^worktree /gm)).toHaveLength(1);
    expect(r.git("for-each-ref", "refs/coppice")).toBe("");
  });

  test("SPN-7 stays while an open thread works in a folder of it", async () => {
    const r = repository();
    r.commit({ "sub/b.txt": "b\n" });
    await using h = await open(r, { "*": [repeat(say("ok"))] });
    const { agent, work } = await h.tree.root.spawn("child", "go", { isolation: "worktree" });
    await work.outcome();
    const { workspace } = (await agent.record()).config;
    await h.runtime.threads.create({ workspace: join(workspace!, "sub") });
    await agent.close();
    const [ended] = await told(h, "worktree.ended");
    expect(ended!.data).toEqual({ path: workspace, status: "kept", reason: "a thread works in it" });
    expect(existsSync(join(workspace!, "sub"))).toBe(true);
  });

  test("SPN-2 is refused before anything is made, and says what to do", async () => {
    const home = join(temporaryFolder(), "trees");
    const plain = { folder: temporaryFolder() };
    await using h = await open(plain, { "/root": [spawn("child", "go", isolated), say("done")] }, home);
    const before = await look(h).snapshot();
    await expect(h.tree.root.spawn("child", "go", { isolation: "worktree" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(/no git repository.*leave `isolation` out/s) as unknown,
    });
    expect(await look(h).snapshot()).toEqual(before);
    expect(existsSync(home)).toBe(false);
    await h.ask("go");
    const [output] = await look(h).outputs("/root", "spawn_agent");
    expect(output).toMatchObject({ isError: true, output: { code: "INVALID_ARGUMENT" } });

    await using off = await open(repository(), {}, null);
    await expect(off.tree.root.spawn("child", "go", { isolation: "worktree" })).rejects.toThrow(
      /`worktrees`/,
    );
    await using bare = await harness({ store, runtime: { worktrees: home } });
    await expect(bare.tree.root.spawn("child", "go", { isolation: "worktree" })).rejects.toThrow(
      /no workspace/,
    );
    const wrong = harness({ store, runtime: { worktrees: "relative" } });
    await expect(wrong).rejects.toThrow(/not absolute/);
  });

  test("SPN-2 what was made for a spawn that is refused then is removed", async () => {
    const r = repository();
    const home = join(temporaryFolder(), "trees");
    await using h = await open(r, { "*": [repeat(say("ok"))] }, home);
    await (await h.tree.root.spawn("child", "go")).work.outcome();
    await expect(h.tree.root.spawn("child", "go", { isolation: "worktree" })).rejects.toMatchObject({
      code: "AGENT_EXISTS",
    });
    await h.runtime.close();
    expect(readdirSync(join(home, h.tree.id))).toEqual([]);
    expect(r.git("worktree", "list", "--porcelain").match(/^worktree /gm)).toHaveLength(1);
  });

  test("REC-1 a crash leaves none behind that nobody has, and none is taken that holds something", async () => {
    const r = repository();
    const home = join(temporaryFolder(), "trees");
    await using h = await open(
      r,
      {
        "/root/kept": [call("write", { name: "new.txt", text: "n\n" }), say("ok")],
        "*": [repeat(say("ok"))],
      },
      home,
    );
    const paths: string[] = [];
    for (const name of ["open", "kept"]) {
      const { agent, work } = await h.tree.root.spawn(name, "go", { isolation: "worktree" });
      await work.outcome();
      paths.push((await agent.record()).config.workspace!);
    }
    const [stays, kept] = paths;
    // As a process leaves it that dies between the worktree and the spawn's commit, or before the worktree is whole.
    const orphan = await gitWorktrees(home).add(
      r.folder,
      { owner: h.tree.id, name: "orphan" },
      { clock: systemClock, limitMs: 60_000 },
    );
    expect(orphan.status).toBe("ready");
    r.git("worktree", "add", "--quiet", "--detach", join(home, h.tree.id, "half"));
    writeFileSync(join(home, h.tree.id, "half.making"), "");
    // The commit of this close is stored; what follows is not seen any more.
    await (await h.tree.agent("/root/kept")).close();
    await h.crash();
    await h.runtime.close();
    const left = readdirSync(join(home, h.tree.id)).map((name) => join(home, h.tree.id, name));
    expect(new Set(left)).toEqual(new Set([stays, kept]));
    expect(readFileSync(join(kept!, "new.txt"), "utf8")).toBe("n\n");
    const events = await h.store.read((view) => view.events(h.tree.id, 0, 10_000));
    const ended = events.filter(({ type }) => type === "worktree.ended").map(({ data }) => data["path"]);
    expect(ended).toEqual(
      expect.arrayContaining([kept, join(home, h.tree.id, "half"), join(home, h.tree.id, "orphan")]),
    );
    expect(ended).not.toContain(stays);
    rmSync(stays!, { recursive: true });
  });

  test("the reference's profile does not know the argument", async () => {
    const r = repository();
    await using h = await harness({
      store,
      scripts: { "/root": [spawn("child", "go", isolated), say("done")] },
      runtime: { worktrees: join(temporaryFolder(), "trees"), profile: "codex" },
      tree: { workspace: r.folder },
    });
    await h.ask("go");
    const [output] = await look(h).outputs("/root", "spawn_agent");
    expect(output).toMatchObject({ isError: true });
  });
});
