/**
 * Worktrees by the system's git, detached, at `<folder>/<owner>/<name>`. Each has a private reference to the commit whose
 * content it began with.
 *
 * - W1 It is removed by rule only when it holds nothing that it did not begin with: the same files (ignored ones do not
 *   count) and no commit of its own. Else it is kept.
 * - W2 While it is being made a marker stands beside it; one that has the marker was never handed to anybody.
 */
import { copyFile, lstat, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { RejectedError } from "../../protocol/errors.ts";
import { type CaptureBounds, changes, commitTree, type Content, contentOf, subTree } from "./content.ts";
import { attempt, inScratch, refNamed, treeOf, updateRef } from "./git-capture.ts";
import { GitFailure, type GitRunner } from "./git-process.ts";
import type { Missing, Within, Worktrees, Worktree, WorktreeRequest } from "./port.ts";
import { findRepository, type Repository, Scratch } from "./repository.ts";
import { restoreContent } from "./restore.ts";

const BASES = "refs/coppice/worktrees/";
const MARKER = ".making";
const UNBOUNDED: CaptureBounds = {
  fileBytes: Number.MAX_SAFE_INTEGER,
  totalBytes: Number.MAX_SAFE_INTEGER,
  files: Number.MAX_SAFE_INTEGER,
};

/** @throws RejectedError `INVALID_ARGUMENT` for a folder that is not absolute. */
export function gitWorktrees(home: string): Worktrees {
  if (!isAbsolute(home)) {
    throw new RejectedError("INVALID_ARGUMENT", `the folder \`${home}\` for worktrees is not absolute.`, {
      argument: "folder",
      value: home,
    });
  }
  return {
    async add(folder, request, within) {
      const ref = refNamed(BASES, `${request.owner}/${request.name}`);
      const path = join(home, request.owner, request.name);
      const marker = `${path}${MARKER}`;
      if (await exists(path))
        return { status: "missing", reason: `${path} is there already`, lasting: false };
      const made = await inScratch(folder, within, async (around) => {
        await mkdir(dirname(path), { recursive: true });
        await writeFile(marker, "");
        return make(around, path, ref, request, within);
      });
      if (made.status === "missing") await removeAll(path, within).catch(() => undefined);
      await rm(marker, { force: true });
      return made;
    },
    async end(path, within) {
      const kept = (reason: string) => ({ status: "kept", reason }) as const;
      const found = (await halfMade(path)) ? null : await attempt(within, (git) => holds(git, path));
      if (found !== null && typeof found === "object") return kept(found.reason);
      if (found !== null) return kept(found);
      const removed = await removeAll(path, within);
      return removed.status === "ready" ? { status: "removed" } : kept(removed.reason);
    },
    remove: removeAll,
    async list(owner) {
      try {
        const found = await readdir(join(home, owner), { withFileTypes: true });
        const paths = found.map(({ name }) => join(home, owner, name.replace(MARKER_END, "")));
        return [...new Set(paths)].toSorted();
      } catch {
        return [];
      }
    },
  };
}

const MARKER_END = /\.making$/;

async function halfMade(path: string): Promise<boolean> {
  return exists(`${path}${MARKER}`);
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

async function make(
  around: Scratch,
  path: string,
  ref: string,
  { checkpoint }: WorktreeRequest,
  within: Within,
): Promise<Worktree> {
  const { git, repository } = around;
  const { head, prefix } = repository;
  const wanted = checkpoint === undefined ? null : await treeOf(around, checkpoint);
  const real = { cwd: repository.folder };
  await git.need(["worktree", "add", "--detach", "--no-checkout", "--quiet", "--", path, head], real);
  const own = await findRepository(git, path);
  await using scratch = await Scratch.open(git, own);
  await scratch.need(["read-tree", "-u", "--reset", head]);
  await copyFile(scratch.index(), own.index);
  const folder = resolve(path, prefix);
  await mkdir(folder, { recursive: true });
  const base = wanted === null ? head : await begin(git, folder, wanted, within);
  await updateRef(git, own, [ref, base]);
  return { status: "ready", path, folder, repository: repository.commonDir, base };
}

/** Puts the files of a checkpoint into the new worktree; answers a commit of all that is in it then. */
async function begin(git: GitRunner, folder: string, wanted: string, { clock }: Within): Promise<string> {
  await using scratch = await Scratch.open(git, await findRepository(git, folder));
  const before = await contentOf(scratch, UNBOUNDED);
  await restoreContent(scratch, before, wanted, { overwrite: true }, "");
  const { whole } = await contentOf(scratch, UNBOUNDED);
  const message = "what a worktree began with";
  return await commitTree(scratch, scratch.repository, whole, message, Math.floor(clock.now() / 1000));
}

/** What it holds that it did not begin with, in words; null for nothing. */
async function holds(git: GitRunner, path: string): Promise<string | null> {
  const repository = await findRepository(git, path);
  if (repository.toplevel !== repository.folder) throw new GitFailure("it is no worktree any more");
  const base = await baseOf(git, repository, path);
  const parent = await git.run(["rev-parse", "--verify", "--quiet", `${base}^`], { cwd: path });
  if (repository.head !== base && repository.head !== parent.out.trim()) return "it has commits of its own";
  await using scratch = await Scratch.open(git, repository);
  const content: Content = await contentOf(scratch, UNBOUNDED);
  if (content.omitted.length > 0) return `it holds ${content.omitted.length} that git cannot compare`;
  const differing = await changes(scratch, await subTree(scratch, base), content.tree, []);
  return differing.length === 0 ? null : `${differing.length} files differ from what it began with`;
}

async function baseOf(git: GitRunner, repository: Repository, path: string): Promise<string> {
  const ref = refNamed(BASES, `${basename(dirname(path))}/${basename(path)}`);
  const found = await git.run(["rev-parse", "--verify", "--quiet", `${ref}^{commit}`], {
    cwd: repository.folder,
  });
  if (found.code !== 0) throw new GitFailure("what it began with is not known any more");
  return found.out.trim();
}

async function removeAll(path: string, within: Within): Promise<{ readonly status: "ready" } | Missing> {
  const ended = await attempt(within, async (git) => {
    const repository = await findRepository(git, path);
    if (repository.gitDir === repository.commonDir || repository.toplevel !== repository.folder)
      throw new GitFailure("it is no worktree any more");
    const real = { cwd: repository.commonDir };
    await git.need(
      [`--git-dir=${repository.commonDir}`, "worktree", "remove", "--force", "--force", "--", path],
      real,
    );
    const ref = refNamed(BASES, `${basename(dirname(path))}/${basename(path)}`);
    await git.need([`--git-dir=${repository.commonDir}`, "update-ref", "--no-deref", "-d", ref], real);
    return { status: "ready" } as const;
  });
  // Half made, or its repository is gone: nothing of it was handed out.
  if (await halfMade(path)) {
    await rm(path, { recursive: true, force: true });
    await rm(`${path}${MARKER}`, { force: true });
    return { status: "ready" };
  }
  return ended;
}
