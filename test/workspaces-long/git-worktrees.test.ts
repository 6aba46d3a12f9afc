/** Worktrees of real repositories: what they begin with, and the rule by which they go or stay. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { gitCapture } from "../../src/platform/workspace/git-capture.ts";
import { gitWorktrees } from "../../src/platform/workspace/git-worktrees.ts";
import type { Within, Worktree, WorktreeRequest } from "../../src/platform/workspace/port.ts";
import { temporaryFolder, TestRepository } from "../support/repository.ts";

/** Real processes, on a machine that may be busy. */
const processes = { timeout: 120_000 };

const within: Within = { clock: systemClock, limitMs: 60_000 };
const gone = { status: "removed" };

type Change = readonly [string, (module: string, git: (...args: string[]) => string) => unknown];

function given() {
  const r = new TestRepository();
  r.commit({ "a.txt": "a\n", "sub/b.txt": "b\n", ".gitignore": "*.log\n" });
  const home = join(temporaryFolder(), "worktrees");
  const trees = gitWorktrees(home);
  const add = async (folder = r.folder, request: Partial<WorktreeRequest> = {}): Promise<Worktree> => {
    const made = await trees.add(folder, { owner: "tree", name: "one", ...request }, within);
    if (made.status !== "ready") throw new Error(made.reason);
    return made;
  };
  return { r, home, trees, add };
}

/** A repository with the submodule `mod`; `files` begins a command about it. */
function withModule() {
  const all = given();
  const library = new TestRepository();
  library.commit({ "s.txt": "s\n" });
  const files = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
  all.r.git(...files, "add", library.folder, "mod");
  all.r.git("commit", "--quiet", "-m", "mod");
  return { ...all, files };
}

describe("a worktree by git", processes, () => {
  test("begins detached at the last commit and touches nothing of the user's", async () => {
    const { r, home, trees, add } = given();
    r.write("a.txt", "not committed\n");
    const trace = r.trapHooks();
    const before = r.seen();
    const made = await add();
    expect(made).toMatchObject({
      path: join(home, "tree", "one"),
      folder: join(home, "tree", "one"),
      repository: join(r.folder, ".git"),
      base: r.git("rev-parse", "HEAD").trim(),
    });
    expect(readFileSync(join(made.path, "a.txt"), "utf8")).toBe("a\n");
    expect(r.git("-C", made.path, "status", "--porcelain", "--branch")).toBe("## HEAD (no branch)\n");
    expect(await trees.list("tree")).toEqual([made.path]);
    expect(await trees.list("other")).toEqual([]);
    expect(await trees.end(made.path, within)).toEqual(gone);
    expect(existsSync(made.path)).toBe(false);
    expect(existsSync(trace)).toBe(false);
    rmSync(join(r.folder, ".git/worktrees"), { recursive: true, force: true });
    expect(r.seen()).toEqual(before);
    expect(r.git("for-each-ref", "refs/coppice")).toBe("");
    expect(await trees.list("tree")).toEqual([]);
  });

  test("of a sub-folder stands for that sub-folder", async () => {
    const { r, add } = given();
    const made = await add(join(r.folder, "sub"));
    expect(readdirSync(made.folder)).toEqual(["b.txt"]);
  });

  test.for([
    ["a changed file", (path: string): void => writeFileSync(join(path, "a.txt"), "b\n"), "1 files differ"],
    ["a new file", (path: string): void => writeFileSync(join(path, "new.txt"), "n\n"), "1 files differ"],
    ["a removed file", (path: string): void => rmSync(join(path, "a.txt")), "1 files differ"],
    [
      "a repository in it",
      (path: string): void => void new TestRepository(folderIn(path, "nested")),
      "cannot compare",
    ],
  ] as const)("with %s is kept", async ([, change, reason]) => {
    const { trees, add } = given();
    const { path } = await add();
    change(path);
    expect(await trees.end(path, within)).toEqual({
      status: "kept",
      reason: expect.stringContaining(reason) as unknown,
    });
    expect(existsSync(path)).toBe(true);
    expect(await trees.remove(path, within)).toEqual({ status: "ready" });
    expect(existsSync(path)).toBe(false);
  });

  test.for(["--skip-worktree", "--assume-unchanged"])(
    "SPN-7 with a changed file that git is told to look away from (%s) is kept",
    async (mark) => {
      const { r, trees, add } = given();
      const { path } = await add();
      r.git("-C", path, "update-index", mark, "a.txt");
      writeFileSync(join(path, "a.txt"), "work\n");
      expect(await trees.end(path, within)).toMatchObject({ status: "kept" });
      expect(readFileSync(join(path, "a.txt"), "utf8")).toBe("work\n");
    },
  );

  test("SPN-7 with a file outside of what a sparse checkout has is kept, with none it goes", async () => {
    const { r, trees, add } = given();
    const { path } = await add();
    r.git("-C", path, "sparse-checkout", "set", "--no-cone", "/a.txt");
    const other = await add(r.folder, { name: "two" });
    r.git("-C", other.path, "sparse-checkout", "set", "--no-cone", "/a.txt");
    mkdirSync(join(path, "sub"), { recursive: true });
    writeFileSync(join(path, "sub/b.txt"), "work\n");
    const state = await gitCapture().capture(path, { name: "t/r", message: "" }, within);
    expect(state).toMatchObject({ status: "ready", files: ["sub/b.txt"], omitted: [] });
    expect(await trees.end(path, within)).toMatchObject({ status: "kept" });
    expect(await trees.end(other.path, within)).toEqual(gone);
  });

  test("SPN-7 with a commit left behind is kept, with one that a branch has it goes", async () => {
    const { r, trees, add } = given();
    const left = await add();
    r.git("-C", left.path, "commit", "--quiet", "--allow-empty", "-m", "its own");
    r.git("-C", left.path, "checkout", "--quiet", "--detach", "main");
    expect(await trees.end(left.path, within)).toEqual({
      status: "kept",
      reason: "it has commits that nothing refers to",
    });
    const { path } = await add(r.folder, { name: "two" });
    r.git("-C", path, "checkout", "--quiet", "-b", "agent");
    r.git("-C", path, "commit", "--quiet", "--allow-empty", "-m", "its own");
    r.git("-C", path, "checkout", "--quiet", "--detach", "main");
    expect(await trees.end(path, within)).toEqual(gone);
    expect(r.git("log", "-1", "--format=%s", "agent")).toBe("its own\n");
  });

  test.for([
    ["a changed file", (at: string) => writeFileSync(join(at, "s.txt"), "work\n")],
    ["a new file", (at: string) => writeFileSync(join(at, "new.txt"), "work\n")],
    ["a staged file", (at: string, git) => (writeFileSync(join(at, "s.txt"), "w\n"), git("add", "s.txt"))],
    ["a commit", (_, git) => git("commit", "--quiet", "--allow-empty", "-m", "own")],
    [
      "a commit left behind",
      (_, git) => (git("commit", "--quiet", "--allow-empty", "-m", "own"), git("reset", "--quiet", "HEAD^")),
    ],
  ] as const satisfies readonly Change[])("SPN-7 with %s in a submodule is kept", async ([, change]) => {
    const { r, trees, add, files } = withModule();
    const { path } = await add();
    r.git("-C", path, ...files, "update", "--init");
    change(join(path, "mod"), (...args) => r.git("-C", join(path, "mod"), ...args));
    expect(await trees.end(path, within)).toMatchObject({ status: "kept" });
    expect(existsSync(join(path, "mod/s.txt"))).toBe(true);
  });

  test("SPN-7 with a submodule that was only fetched goes", async () => {
    const { r, trees, add, files } = withModule();
    const { path } = await add();
    r.git("-C", path, ...files, "update", "--init");
    expect(await trees.end(path, within)).toEqual(gone);
  });

  test("with commits of its own is kept, with ignored files alone it goes", async () => {
    const { r, trees, add } = given();
    const one = await add();
    r.git("-C", one.path, "commit", "--quiet", "--allow-empty", "-m", "its own");
    expect(await trees.end(one.path, within)).toMatchObject({ status: "kept" });
    const two = await add(r.folder, { name: "two" });
    writeFileSync(join(two.path, "noise.log"), "no");
    expect(await trees.end(two.path, within)).toEqual(gone);
    expect(await trees.list("tree")).toEqual([one.path]);
  });

  test("begins with a checkpoint where one is named, and goes while it holds no more than that", async () => {
    const { r, trees, add } = given();
    r.write("sub/b.txt", "2\n");
    r.write("sub/new.txt", "n\n");
    const folder = join(r.folder, "sub");
    const state = await gitCapture().capture(folder, { name: "t/r", message: "" }, within);
    if (state.status !== "ready") throw new Error(state.reason);
    const made = await add(folder, { checkpoint: state.ref });
    expect(readFileSync(join(made.folder, "b.txt"), "utf8")).toBe("2\n");
    expect(r.git("-C", made.path, "status", "--porcelain")).toBe(" M sub/b.txt\n?? sub/new.txt\n");
    expect(r.git("-C", made.path, "rev-parse", "HEAD")).toBe(r.git("rev-parse", "HEAD"));
    const other = await add(folder, { checkpoint: state.ref, name: "two" });
    rmSync(join(other.folder, "new.txt"));
    expect(await trees.end(other.path, within)).toMatchObject({ status: "kept" });
    r.git("reflog", "expire", "--expire=now", "--all");
    r.git("gc", "--quiet", "--prune=now");
    expect(await trees.end(made.path, within)).toEqual(gone);
  });

  test("that was never handed out goes, whatever is in it", async () => {
    const { r, home, trees, add } = given();
    const whole = await add();
    // As a process leaves it that is killed while it makes one.
    r.git("worktree", "add", "--quiet", "--detach", join(home, "tree/half"));
    writeFileSync(join(home, "tree/half.making"), "");
    rmSync(join(home, "tree/half/a.txt"));
    writeFileSync(join(home, "tree/begun.making"), "");
    expect(await trees.list("tree")).toEqual([join(home, "tree/begun"), join(home, "tree/half"), whole.path]);
    expect(await trees.end(join(home, "tree/half"), within)).toEqual(gone);
    expect(await trees.end(join(home, "tree/begun"), within)).toEqual(gone);
    expect(await trees.list("tree")).toEqual([whole.path]);
    expect(r.git("worktree", "list", "--porcelain")).not.toContain("half");
  });

  test("is not made over another one, and is kept when git does not know it", async () => {
    const { r, home, trees, add } = given();
    const { path } = await add();
    writeFileSync(join(path, "precious.txt"), "p\n");
    const again = await trees.add(r.folder, { owner: "tree", name: "one" }, within);
    expect(again).toMatchObject({ status: "missing", reason: expect.stringContaining("already") as unknown });
    expect(readFileSync(join(path, "precious.txt"), "utf8")).toBe("p\n");
    mkdirSync(join(home, "tree/strange"));
    expect(await trees.end(join(home, "tree/strange"), within)).toMatchObject({ status: "kept" });
    expect(await trees.remove(join(home, "tree/strange"), within)).toMatchObject({ status: "missing" });
    expect(await trees.end(r.folder, within)).toMatchObject({ status: "kept" });
    expect(existsSync(join(r.folder, "a.txt"))).toBe(true);
  });

  test("of what is no repository is missing and leaves nothing behind", async () => {
    const { home, trees } = given();
    const made = await trees.add(temporaryFolder(), { owner: "tree", name: "one" }, within);
    expect(made).toMatchObject({ status: "missing", lasting: true });
    expect(existsSync(home)).toBe(false);
    await expect(trees.add(home, { owner: "../x", name: "one" }, within)).rejects.toThrow(/no name/);
    expect(() => gitWorktrees("relative")).toThrow(/not absolute/);
  });
});

function folderIn(path: string, name: string): string {
  const folder = join(path, name);
  mkdirSync(folder);
  return folder;
}
