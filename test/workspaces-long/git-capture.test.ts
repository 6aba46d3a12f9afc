/** Checkpoints of real repositories: what they hold, what they leave alone, and how they come back. */
import { execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { gitCapture } from "../../src/platform/workspace/git-capture.ts";
import type { Captured, Within } from "../../src/platform/workspace/port.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { temporaryFolder, TestRepository } from "../support/repository.ts";

/** Real processes, on a machine that may be busy. */
const processes = { timeout: 120_000 };

const within: Within = { clock: systemClock, limitMs: 60_000 };
const workspace = gitCapture();

async function captured(folder: string, name = "thread/run", since?: string): Promise<Captured> {
  const found = await workspace.capture(folder, { name, message: "a run", since }, within);
  if (found.status !== "ready") throw new Error(found.reason);
  return found;
}

function folderNamed(name: string): string {
  const folder = join(temporaryFolder(), name);
  mkdirSync(folder);
  return folder;
}

function filesOf(repository: TestRepository, ref: string): string[] {
  return repository.git("ls-tree", "-r", "-z", "--name-only", ref).split("\0").slice(0, -1).toSorted();
}

describe("a checkpoint by git", processes, () => {
  test("holds uncommitted and untracked files, not ignored ones", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "one\ntwo\n", "b.txt": "b\n", "gone.txt": "x\n", ".gitignore": "*.log\n" });
    r.write("a.txt", "one\n2\nthree\n");
    r.write("new/c.txt", "c\n");
    r.write("noise.log", "no");
    rmSync(join(r.folder, "gone.txt"));
    const state = await captured(r.folder);
    expect(state).toMatchObject({
      ref: "refs/coppice/checkpoints/thread/run",
      summary: "3 files changed, +3 -2",
      files: ["a.txt", "gone.txt", "new/c.txt"],
      omitted: [],
    });
    expect(filesOf(r, state.ref)).toEqual([".gitignore", "a.txt", "b.txt", "new/c.txt"]);
    expect(r.git("show", `${state.ref}:a.txt`)).toBe("one\n2\nthree\n");
    expect(r.git("rev-parse", `${state.ref}^{tree}`).trim()).toBe(state.tree);
    expect(r.git("log", "-1", "--format=%an %ae %G?", state.ref).trim()).toBe("Coppice coppice@localhost N");
  });

  test("leaves index, HEAD, branch, stash, configuration and hooks as they are, byte by byte", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "one\n", "b.txt": "b\n", "hidden.txt": "h\n" });
    r.write("a.txt", "stashed\n");
    r.git("stash");
    r.write("a.txt", "staged\n");
    r.git("add", "a.txt");
    r.write("a.txt", "not staged\n");
    r.write("new.txt", "n\n");
    r.git("add", "--intent-to-add", "new.txt");
    r.git("update-index", "--assume-unchanged", "hidden.txt");
    r.write("hidden.txt", "changed all the same\n");
    r.git("config", "commit.gpgsign", "true");
    r.git("config", "gpg.program", "/bin/false");
    r.git("config", "core.logAllRefUpdates", "always");
    const trace = r.trapHooks();
    const before = r.seen();
    const state = await captured(r.folder);
    await workspace.diff(r.folder, { from: state.ref }, within);
    expect(r.seen()).toEqual(before);
    expect(existsSync(trace)).toBe(false);
    expect(r.git("show", `${state.ref}:hidden.txt`)).toBe("changed all the same\n");
    expect(r.git("show", `${state.ref}:new.txt`)).toBe("n\n");
    await workspace.remove(r.folder, state.ref, within);
    expect(r.git("for-each-ref", "refs/coppice")).toBe("");
    expect(r.seen()).toEqual(before);
  });

  test("C1.18 its restore leaves alone what it has left out as too large", async () => {
    const r = new TestRepository();
    r.commit({ "data.bin": "committed long ago", "a.txt": "a" });
    r.write("data.bin", "D".repeat(200));
    r.write("größe\n.bin", "N".repeat(200));
    const small = gitCapture({ fileBytes: 100 });
    const state = await small.capture(r.folder, { name: "t/r", message: "" }, within);
    if (state.status !== "ready") throw new Error(state.reason);
    expect(state.omitted.toSorted()).toEqual(["data.bin", "größe\n.bin"]);
    r.write("data.bin", "small now");
    r.write("größe\n.bin", "small too");
    r.write("a.txt", "changed");
    expect(await small.restore(r.folder, state.ref, {}, within)).toMatchObject({
      status: "ready",
      written: ["a.txt"],
      removed: [],
    });
    expect([r.read("data.bin"), r.read("größe\n.bin"), r.read("a.txt")]).toEqual([
      "small now",
      "small too",
      "a",
    ]);
  });

  test("runs nothing that a configuration of the repository names, and asks no environment", async () => {
    const r = new TestRepository();
    const trace = join(r.folder, ".git", "ran");
    r.commit({ "a.txt": "one\n", ".gitattributes": "*.txt filter=trap diff=trap\n" });
    for (const key of ["filter.trap.clean", "filter.trap.smudge", "diff.trap.command", "diff.trap.textconv"])
      r.git("config", key, `touch '${trace}'; cat`);
    r.git("config", "filter.trap.required", "true");
    r.git("config", "core.fsmonitor", `touch '${trace}'; false`);
    const other = new TestRepository();
    other.commit({ "other.txt": "o\n" });
    process.env["GIT_DIR"] = join(other.folder, ".git");
    process.env["GIT_INDEX_FILE"] = join(other.folder, ".git", "index");
    try {
      r.write("a.txt", "two\n");
      const state = await captured(r.folder);
      expect(filesOf(r, state.ref)).toEqual([".gitattributes", "a.txt"]);
      r.write("a.txt", "three\n");
      expect(await workspace.restore(r.folder, state.ref, {}, within)).toMatchObject({ status: "ready" });
    } finally {
      delete process.env["GIT_DIR"];
      delete process.env["GIT_INDEX_FILE"];
    }
    expect(r.read("a.txt")).toBe("two\n");
    expect(existsSync(trace)).toBe(false);
    expect(other.git("for-each-ref", "refs/coppice")).toBe("");
  });

  test("fetches nothing that is missing, whatever a remote's address would run", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n" });
    const trace = join(r.folder, ".git", "fetched");
    const settings = {
      "core.repositoryformatversion": "1",
      "extensions.partialClone": "evil",
      "remote.evil.promisor": "true",
      "remote.evil.url": `ext::touch ${trace}`,
      "protocol.ext.allow": "always",
    };
    for (const [key, value] of Object.entries(settings)) r.git("config", key, value);
    const missing = "f".repeat(40);
    // What a git without these bounds does.
    expect(() => r.git("cat-file", "-p", missing)).toThrow(/fatal/);
    expect(existsSync(trace)).toBe(true);
    rmSync(trace);
    writeFileSync(join(r.folder, ".git", "HEAD"), `${missing}\n`);
    const found = await workspace.capture(r.folder, { name: "n", message: "" }, within);
    expect(found).toMatchObject({ status: "missing" });
    expect(existsSync(trace)).toBe(false);
  });

  test("takes hostile names as they are, and links as links", async () => {
    const r = new TestRepository();
    const outside = temporaryFolder();
    writeFileSync(join(outside, "secret.txt"), "secret");
    r.commit({ "a.txt": "a\n", "dir/inner.txt": "i\n" });
    const hostile = [
      "-rf",
      "--all",
      "new\nline",
      'tab\tquote"',
      ":(top)x",
      "ünï/ćode",
      "*",
      "space name",
      "!x",
      "#y",
    ];
    for (const name of hostile) r.write(name, `${name}\n`);
    const raw = Buffer.concat([Buffer.from(`${r.folder}/`), Buffer.from([0xff, 0xfe, 0x41])]);
    writeFileSync(raw, "raw\n");
    rmSync(join(r.folder, "dir"), { recursive: true });
    symlinkSync(outside, join(r.folder, "dir"));
    symlinkSync(join(outside, "secret.txt"), join(r.folder, "link"));
    execFileSync(["/usr/bin", "mkfifo"].join("/"), [join(r.folder, "pipe")]);
    const state = await captured(r.folder);
    const held = filesOf(r, state.ref);
    expect(held).toEqual(expect.arrayContaining([...hostile, "dir", "link"]));
    expect(held).not.toContain("pipe");
    expect(held.some((name) => name.includes("secret") || name === "dir/inner.txt")).toBe(false);
    expect(r.git("show", `${state.ref}:link`)).toBe(join(outside, "secret.txt"));

    for (const name of hostile) r.write(name, "spoilt");
    rmSync(raw);
    const back = await workspace.restore(r.folder, state.ref, {}, within);
    expect(back).toMatchObject({ status: "ready", removed: [] });
    for (const name of hostile) expect(r.read(name)).toBe(`${name}\n`);
    expect(readFileSync(raw, "utf8")).toBe("raw\n");
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe("secret");
  });

  test("of a sub-folder is of that alone, by the rules of its repository", async () => {
    const r = new TestRepository();
    r.commit({ "top.txt": "t\n", "sub/a.txt": "a\n", ".gitignore": "/sub/ignored/\n" });
    r.write("top.txt", "changed\n");
    r.write("sub/new.txt", "n\n");
    r.write("sub/ignored/x", "x");
    const state = await captured(join(r.folder, "sub"));
    expect(state).toMatchObject({ summary: "1 file changed, +1 -0", files: ["new.txt"] });
    expect(filesOf(r, state.ref)).toEqual(["a.txt", "new.txt"]);
    r.write("sub/new.txt", "spoilt\n");
    r.write("sub/later.txt", "l\n");
    const back = await workspace.restore(join(r.folder, "sub"), state.ref, {}, within);
    expect(back).toMatchObject({ written: ["new.txt"], removed: ["later.txt"] });
    expect(r.read("top.txt")).toBe("changed\n");
    expect(r.read("sub/new.txt")).toBe("n\n");
    const ignored = await workspace.capture(
      join(r.folder, "sub/ignored"),
      { name: "i", message: "" },
      within,
    );
    expect(ignored).toMatchObject({ status: "missing", lasting: true });
    mkdirSync(join(r.folder, "empty"));
    expect(await captured(join(r.folder, "empty"), "e")).toMatchObject({ summary: "no changes", files: [] });
  });

  test("is taken in the middle of a merge", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n", "sub/b.txt": "b\n" });
    r.git("checkout", "--quiet", "-b", "side");
    r.commit({ "a.txt": "side\n" });
    r.git("checkout", "--quiet", "main");
    r.commit({ "a.txt": "main\n" });
    expect(() => r.git("merge", "side")).toThrow(/conflict|failed/i);
    const before = r.seen();
    const whole = await captured(r.folder);
    expect(r.git("show", `${whole.ref}:a.txt`)).toContain("<<<<<<<");
    const part = await captured(join(r.folder, "sub"), "part");
    expect(filesOf(r, part.ref)).toEqual(["b.txt"]);
    expect(r.seen()).toEqual(before);
  });

  test("names what is not in it: files too large and repositories inside", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n", "grows.bin": "small" });
    r.write("large.bin", "x".repeat(2000));
    r.write("grows.bin", "y".repeat(2000));
    r.write("small.txt", "s\n");
    new TestRepository(r.write("nested/x", "").slice(0, -2));
    const narrow = gitCapture({ fileBytes: 1000 });
    const state = await narrow.capture(r.folder, { name: "n", message: "" }, within);
    expect(state).toMatchObject({
      status: "ready",
      summary: "1 file changed, +1 -0; 3 not captured",
      omitted: expect.arrayContaining(["large.bin", "grows.bin", "nested/"]) as unknown,
    });
    const none = await gitCapture({ totalBytes: 1000 }).capture(r.folder, { name: "n", message: "" }, within);
    expect(none).toMatchObject({ status: "missing", lasting: false });
    const few = await gitCapture({ files: 2 }).capture(r.folder, { name: "n", message: "" }, within);
    expect(few).toMatchObject({ status: "missing", reason: expect.stringContaining("at most 2") as unknown });
  });

  test("of a folder whose name holds a line's end is as any other", async () => {
    const r = new TestRepository(folderNamed("line\nend"));
    r.commit({ "a.txt": "a\n", "su\nb/b.txt": "b\n" });
    r.write("su\nb/c.txt", "c\n");
    expect(await captured(join(r.folder, "su\nb"))).toMatchObject({ files: ["c.txt"] });
  });

  test("compares with an earlier one where that is named", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n" });
    r.write("b.txt", "b\n");
    const first = await captured(r.folder, "t/one");
    r.write("c.txt", "c\n");
    expect(await captured(r.folder, "t/two", first.ref)).toMatchObject({ files: ["c.txt"] });
    const between = { from: first.ref, to: "refs/coppice/checkpoints/t/two", patchBytes: 60 };
    const difference = await workspace.diff(r.folder, between, within);
    expect(difference).toMatchObject({ summary: "1 file changed, +1 -0", files: ["c.txt"] });
    expect(difference.status === "ready" && difference.patch.length).toBe(60);
    r.write("d.txt", "d\n");
    expect(await workspace.diff(r.folder, { from: first.ref }, within)).toMatchObject({
      files: ["c.txt", "d.txt"],
    });
    const gone = await captured(r.folder, "t/three", "refs/coppice/checkpoints/t/never");
    expect(gone.files).toEqual(["b.txt", "c.txt", "d.txt"]);
  });

  test.for([
    ["no repository", (): string => temporaryFolder(), "no git repository"],
    ["a folder that is gone", (): string => join(temporaryFolder(), "gone"), "not there"],
    ["a repository without a commit", (): string => new TestRepository().folder, "no commit"],
    [
      "a bare repository",
      (): string => {
        const folder = temporaryFolder();
        execFileSync("git", ["init", "--quiet", "--bare", folder]);
        return folder;
      },
      "bare",
    ],
  ] as const)("of %s is missing, and says why", async ([, make, reason]) => {
    const folder = make();
    const missing = { status: "missing", lasting: true, reason: expect.stringContaining(reason) as unknown };
    expect(await workspace.capture(folder, { name: "n", message: "" }, within)).toMatchObject(missing);
    expect(await workspace.available(folder, within)).toMatchObject(missing);
  });

  test("without git is missing, and says why", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n" });
    const path = process.env["PATH"];
    // Relative entries name the workspace itself.
    process.env["PATH"] = `.:${temporaryFolder()}`;
    r.write("git", "#!/bin/sh\ntouch ran\n");
    execFileSync("/bin/chmod", ["+x", join(r.folder, "git")]);
    try {
      const found = await workspace.available(r.folder, within);
      expect(found).toMatchObject({ status: "missing", lasting: true });
    } finally {
      process.env["PATH"] = path;
    }
    expect(existsSync(join(r.folder, "ran"))).toBe(false);
  });

  test("that takes too long, or is called off, ends and leaves no lock", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n" });
    for (let at = 0; at < 300; at += 1) r.write(`many/${at}.txt`, `${at}\n`.repeat(500));
    const clock = virtualClock();
    const late = workspace.capture(r.folder, { name: "late", message: "" }, { clock, limitMs: 10 });
    await clock.advance(10);
    expect(await late).toMatchObject({
      status: "missing",
      reason: expect.stringContaining("10 ms") as unknown,
    });
    const over = new AbortController();
    const off = workspace.capture(r.folder, { name: "off", message: "" }, { ...within, signal: over.signal });
    over.abort();
    expect(await off).toMatchObject({ status: "missing", lasting: false });
    const locks = readdirSync(join(r.folder, ".git"), { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".lock"),
    );
    expect(locks).toEqual([]);
    expect(r.git("for-each-ref", "refs/coppice")).toBe("");
    expect(clock.pending()).toEqual([]);
    r.git("add", "--all");
    r.git("commit", "--quiet", "-m", "goes on");
  });

  test.for(["../x", "a/../b", "a b", "", "-x", "a//b", "a.lock", "a/"])(
    "has no name like '%s'",
    async (name) => {
      const r = new TestRepository();
      await expect(workspace.capture(r.folder, { name, message: "" }, within)).rejects.toThrow(
        /no name of a checkpoint/,
      );
      await expect(workspace.remove(r.folder, "refs/heads/main", within)).rejects.toThrow(/no checkpoint/);
    },
  );
});

test("a process that is killed in the middle of captures leaves nothing locked", processes, async () => {
  const r = new TestRepository();
  r.commit({ "a.txt": "a\n" });
  for (let at = 0; at < 200; at += 1) r.write(`many/${at}.txt`, `${at}\n`.repeat(100));
  const capturing = fileURLToPath(new URL("../support/capture-for-ever.ts", import.meta.url));
  for (const lines of [1, 2, 3]) {
    const child = spawn(process.execPath, [capturing, r.folder], {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let heard = 0;
    for await (const line of child.stdout) {
      heard += String(line).split("\n").length - 1;
      if (heard >= lines) break;
    }
    process.kill(-child.pid!, "SIGKILL");
  }
  const locks = readdirSync(join(r.folder, ".git"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".lock"))
    // Of one name, which nobody uses again.
    .filter((name) => !name.startsWith("refs/coppice/checkpoints/"));
  expect(locks).toEqual([]);
  r.git("add", "a.txt");
  r.git("commit", "--quiet", "--allow-empty", "-m", "goes on");
  expect((await captured(r.folder, "after")).files).toHaveLength(200);
});

describe("a checkpoint that is restored", processes, () => {
  test("writes files back and removes those that came since, and nothing else", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n", "d/e/f.txt": "f\n", ".gitignore": "*.log\n" });
    r.write("b.txt", "b\n");
    const state = await captured(r.folder);
    r.write("a.txt", "spoilt\n");
    rmSync(join(r.folder, "b.txt"));
    rmSync(join(r.folder, "d"), { recursive: true });
    r.write("d", "now a file\n");
    r.write("later/x.txt", "x\n");
    r.write("keep.log", "ignored");
    r.git("add", "a.txt");
    const index = readFileSync(join(r.folder, ".git/index"));
    const head = r.git("rev-parse", "HEAD", "--symbolic-full-name", "HEAD");
    const back = await workspace.restore(r.folder, state.ref, {}, within);
    expect(back).toMatchObject({
      status: "ready",
      written: ["a.txt", "b.txt", "d/e/f.txt"],
      removed: ["d", "later/x.txt"],
    });
    expect([r.read("a.txt"), r.read("b.txt"), r.read("d/e/f.txt"), r.read("keep.log")]).toEqual([
      "a\n",
      "b\n",
      "f\n",
      "ignored",
    ]);
    expect(existsSync(join(r.folder, "later"))).toBe(false);
    expect(readFileSync(join(r.folder, ".git/index")).equals(index)).toBe(true);
    expect(r.git("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")).toBe(head);
    if (back.status !== "ready") throw new Error("it was not restored");
    // What was there before can be had again.
    await workspace.restore(r.folder, back.before, {}, within);
    expect([r.read("a.txt"), r.read("d"), r.read("later/x.txt")]).toEqual([
      "spoilt\n",
      "now a file\n",
      "x\n",
    ]);
  });

  test("can be of some paths alone", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n", "d/b.txt": "b\n", "d/c.txt": "c\n" });
    const state = await captured(r.folder);
    for (const name of ["a.txt", "d/b.txt", "d/c.txt", "d/new.txt"]) r.write(name, "spoilt\n");
    const back = await workspace.restore(r.folder, state.ref, { paths: ["d/"] }, within);
    expect(back).toMatchObject({ written: ["d/b.txt", "d/c.txt"], removed: ["d/new.txt"] });
    expect(r.read("a.txt")).toBe("spoilt\n");
  });

  test("refuses to write over what no checkpoint holds, unless it is told to", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n" });
    r.write("data.bin", "small");
    r.write("out/x.txt", "x\n");
    const narrow = gitCapture({ fileBytes: 100 });
    const state = await narrow.capture(r.folder, { name: "n", message: "" }, within);
    if (state.status !== "ready") throw new Error(state.reason);
    r.write("data.bin", "z".repeat(200));
    r.write(".gitignore", "out/\n");
    r.write("out/x.txt", "precious\n");
    r.write("a.txt", "spoilt\n");
    const refused = await narrow.restore(r.folder, state.ref, {}, within);
    expect(refused).toMatchObject({ status: "refused", paths: ["data.bin", "out/x.txt"] });
    expect([r.read("a.txt"), r.read("out/x.txt")]).toEqual(["spoilt\n", "precious\n"]);
    const told = await narrow.restore(r.folder, state.ref, { overwrite: true }, within);
    expect(told).toMatchObject({ status: "ready" });
    expect([r.read("a.txt"), r.read("data.bin"), r.read("out/x.txt")]).toEqual(["a\n", "small", "x\n"]);
  });

  test("never writes through a link", async () => {
    const r = new TestRepository();
    const outside = temporaryFolder();
    writeFileSync(join(outside, "f.txt"), "theirs\n");
    r.commit({ "d/f.txt": "f\n", "g.txt": "g\n" });
    const state = await captured(r.folder);
    rmSync(join(r.folder, "d"), { recursive: true });
    symlinkSync(outside, join(r.folder, "d"));
    rmSync(join(r.folder, "g.txt"));
    symlinkSync(join(outside, "f.txt"), join(r.folder, "g.txt"));
    expect(await workspace.restore(r.folder, state.ref, {}, within)).toMatchObject({ status: "ready" });
    expect(readFileSync(join(outside, "f.txt"), "utf8")).toBe("theirs\n");
    expect([r.read("d/f.txt"), r.read("g.txt")]).toEqual(["f\n", "g\n"]);
    expect(lstatSync(join(r.folder, "g.txt")).isSymbolicLink()).toBe(false);
  });

  test("is not there: says so", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n" });
    const back = await workspace.restore(r.folder, "refs/coppice/checkpoints/t/none", {}, within);
    expect(back).toMatchObject({ status: "missing", reason: expect.stringContaining("t/none") as unknown });
  });

  test("C1.18 in whole for `.`, in part for names that are written otherwise, and not for what is nowhere", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "a\n", "d/b.txt": "b\n", "d[1].txt": "one\n" });
    const state = await captured(r.folder);
    const change = (): void => {
      for (const name of ["a.txt", "d/b.txt", "d[1].txt", "new.txt"]) r.write(name, "changed\n");
    };
    const all = ["a.txt", "d/b.txt", "d[1].txt"];
    for (const [path, written, removed] of [
      [".", all, ["new.txt"]],
      ["./", all, ["new.txt"]],
      ["d/..", all, ["new.txt"]],
      ["./d//", ["d/b.txt"], []],
      ["d[1].txt", ["d[1].txt"], []],
      ["new.txt", [], ["new.txt"]],
    ] as const) {
      change();
      const back = await workspace.restore(r.folder, state.ref, { paths: [path] }, within);
      expect(back).toMatchObject({ status: "ready", written, removed });
    }
    change();
    const before = r.git("for-each-ref");
    for (const path of ["nowhere.txt", "d/nowhere", "a.txt/b", "../x", "/etc/passwd", "a\u0000b", ""]) {
      const restored = workspace.restore(r.folder, state.ref, { paths: ["a.txt", path] }, within);
      const details = { argument: "paths", value: path };
      await expect(restored).rejects.toMatchObject({ code: "INVALID_ARGUMENT", details });
    }
    expect([r.read("a.txt"), r.git("for-each-ref")]).toEqual(["changed\n", before]);
  });
});
