/**
 * The content of a folder as a tree of git, and how two of them differ. Trees are of the folder alone, so that a checkpoint
 * of a sub-folder knows nothing of the rest.
 */
import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { bytesOf, GitFailure, type GitRunner, names, textOf } from "./git-process.ts";
import { findRepository, type Repository, Scratch } from "./repository.ts";

/** What one checkpoint may take in beyond what is committed. */
export interface CaptureBounds {
  readonly fileBytes: number;
  readonly totalBytes: number;
  readonly files: number;
}

export interface Content {
  /** Of the folder. */
  readonly tree: string;
  /** Of the whole worktree around it. */
  readonly whole: string;
  /** Names within the folder, byte by byte. */
  readonly omitted: readonly string[];
}

const LOOKS_AT_ONCE = 64;
const MODULE = "160000";
const FILES_LISTED = 200;

/** Takes in the folder as it is; the scratch's index holds it then. @throws GitFailure beyond the bounds. */
export async function contentOf(scratch: Scratch, bounds: CaptureBounds): Promise<Content> {
  const { prefix } = scratch.repository;
  if (prefix !== "" && (await scratch.run(["check-ignore", "--quiet", "--", "."])).code === 0)
    throw new GitFailure("the folder is ignored by its repository", true);
  await scratch.copyIndex();
  await takeOffMarks(scratch);
  const changed = new Set(await changedFiles(scratch));
  const omitted = await beyondBounds(scratch.repository.folder, [...changed], bounds);
  const unread = changed.size > omitted.length ? await add(scratch, omitted) : false;
  await dropUnmerged(scratch);
  const whole = (await scratch.need(["write-tree", "--missing-ok"])).trim();
  const tree = prefix === "" ? whole : await subTree(scratch, whole);
  omitted.push(...(await modulesAtWork(scratch)));
  return { tree, whole, omitted: unread ? [...omitted, "(files that cannot be read)"] : omitted };
}

/**
 * Marks that hide changes from git. "assume-unchanged" goes with the refresh; "skip-worktree" goes for what is there: a
 * file that a sparse checkout leaves out has not been removed.
 */
async function takeOffMarks(scratch: Scratch): Promise<void> {
  const { toplevel } = scratch.repository;
  const listed = names(await scratch.need(["ls-files", "-z", "-t"], { cwd: toplevel }));
  const hidden = listed.filter((row) => row.startsWith("S ")).map((row) => row.slice(2));
  const there: string[] = [];
  for (const name of hidden) if (await lookAt(toplevel, name)) there.push(name);
  if (there.length > 0) {
    await scratch.need(["update-index", "--no-skip-worktree", "-z", "--stdin"], {
      cwd: toplevel,
      input: there.join("\0"),
    });
  }
  // Exit code 1 says that files have changed.
  await scratch.run(["update-index", "-q", "--really-refresh", "--unmerged"], { cwd: toplevel });
}

async function changedFiles(scratch: Scratch): Promise<string[]> {
  return names(await scratch.need(["ls-files", "-z", "--others", "--modified", "--exclude-standard"]));
}

/** Submodules with files that are not committed in them. A checkpoint holds of one only which commit it stands at. */
async function modulesAtWork(scratch: Scratch): Promise<string[]> {
  const { folder } = scratch.repository;
  const found: string[] = [];
  for (const name of await submodules(scratch)) {
    if (await isAtWork(scratch.git, join(folder, textOf(name)))) found.push(`${name}/`);
  }
  return found;
}

/** Names of the submodules that the scratch's index knows, within the folder. */
export async function submodules(scratch: Scratch): Promise<string[]> {
  const rows = names(await scratch.need(["ls-files", "-z", "--stage"]));
  return rows.filter((row) => row.startsWith(MODULE)).map((row) => row.slice(row.indexOf("\t") + 1));
}

async function isAtWork(git: GitRunner, folder: string): Promise<boolean> {
  const inside: readonly string[] = await readdir(folder).catch(() => []);
  if (inside.length === 0) return false;
  if (!inside.includes(".git")) return true;
  await using scratch = await Scratch.open(git, await findRepository(git, folder));
  await scratch.copyIndex();
  await takeOffMarks(scratch);
  if ((await changedFiles(scratch)).length > 0) return true;
  const staged = ["diff-index", "--cached", "--quiet", scratch.repository.head];
  return (await scratch.run(staged)).code !== 0 || (await modulesAtWork(scratch)).length > 0;
}

/** Files too large, and repositories inside of the folder, which git lists as folders. */
async function beyondBounds(
  folder: string,
  changed: readonly string[],
  bounds: CaptureBounds,
): Promise<string[]> {
  if (changed.length > bounds.files)
    throw new GitFailure(
      `${changed.length} files differ and at most ${bounds.files} are captured; ignore some`,
    );
  const omitted: string[] = [];
  let total = 0;
  for (let from = 0; from < changed.length; from += LOOKS_AT_ONCE) {
    const some = changed.slice(from, from + LOOKS_AT_ONCE);
    const sizes = await Promise.all(some.map((name) => sizeOf(folder, name)));
    for (const [at, name] of some.entries()) {
      const bytes = sizes[at]!;
      if (name.endsWith("/") || bytes > bounds.fileBytes) omitted.push(name);
      else total += bytes;
    }
  }
  if (total > bounds.totalBytes)
    throw new GitFailure(`${total} bytes differ and at most ${bounds.totalBytes} are captured; ignore some`);
  return omitted;
}

async function sizeOf(folder: string, name: string): Promise<number> {
  const found = await lookAt(folder, name);
  // It was removed: that is the change.
  return found?.isFile() === true ? found.size : 0;
}

/** What stands at a name, byte by byte; null for nothing. */
async function lookAt(folder: string, name: string): Promise<Stats | null> {
  const path = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, "latin1")]);
  return lstat(path).catch(() => null);
}

/** Answers whether some files could not be read. */
async function add(scratch: Scratch, omitted: readonly string[]): Promise<boolean> {
  const specs = [".", ...omitted.map((name) => `:(exclude,literal)${name}`)];
  const { code, err } = await scratch.run(
    ["add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"],
    { input: specs.join("\0") },
  );
  if (code > 1) throw new GitFailure(`git add: ${err.trim().slice(0, 300)}`);
  return code === 1;
}

/** A merge that is under way elsewhere in the repository is nothing of ours; no tree can hold it. */
async function dropUnmerged(scratch: Scratch): Promise<void> {
  const cwd = scratch.repository.toplevel;
  const rows = names(await scratch.need(["ls-files", "-z", "--unmerged"], { cwd }));
  if (rows.length === 0) return;
  const paths = new Set(rows.map((row) => row.slice(row.indexOf("\t") + 1)));
  await scratch.need(["update-index", "-z", "--force-remove", "--stdin"], {
    cwd,
    input: [...paths].join("\0"),
  });
}

/** The tree of the folder within one of the whole; an empty one where it has no files. */
export async function subTree(scratch: Scratch, whole: string): Promise<string> {
  const { prefix } = scratch.repository;
  const name = prefix === "" ? `${whole}^{tree}` : `${whole}:${prefix.slice(0, -1)}`;
  const found = await scratch.run(["rev-parse", "--verify", "--quiet", name]);
  return found.code === 0 ? found.out.trim() : emptyTree(scratch);
}

async function emptyTree(scratch: Scratch): Promise<string> {
  return (await scratch.need(["hash-object", "-t", "tree", "-w", "--stdin"])).trim();
}

/** What differs between two trees of the folder, in words and by name. */
export async function summarise(
  scratch: Scratch,
  from: string,
  to: string,
  omitted: readonly string[],
): Promise<{ readonly summary: string; readonly files: readonly string[] }> {
  const listed = await scratch.need(["diff-tree", "-r", "-z", "--numstat", "--no-renames", from, to]);
  let added = 0;
  let removed = 0;
  const files = names(listed).map((row) => {
    const [more = "", less = "", ...name] = row.split("\t");
    added += Number(more) || 0;
    removed += Number(less) || 0;
    return textOf(name.join("\t"));
  });
  const left = omitted.length === 0 ? "" : `; ${omitted.length} not captured`;
  const counted =
    files.length === 0
      ? "no changes"
      : `${files.length} ${files.length === 1 ? "file" : "files"} changed, +${added} -${removed}`;
  return { summary: `${counted}${left}`, files: files.slice(0, FILES_LISTED) };
}

/** One file that differs: its mode and object there, null where it is not. Names byte by byte. */
export interface Change {
  readonly name: string;
  readonly to: { readonly mode: string; readonly object: string } | null;
  /** A submodule on either side. */
  readonly module: boolean;
}

export async function changes(
  scratch: Scratch,
  from: string,
  to: string,
  paths: readonly string[],
): Promise<Change[]> {
  const listed = await scratch.need(
    ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to, "--", ...paths],
    { env: { GIT_LITERAL_PATHSPECS: "1" }, cwd: scratch.repository.toplevel },
  );
  const parts = names(listed);
  const found: Change[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [before = "", mode = "", , object = ""] = parts[at]!.replace(/^:/, "").split(" ");
    const gone = mode === "000000";
    found.push({
      name: parts[at + 1]!,
      to: gone ? null : { mode, object },
      module: before === MODULE || mode === MODULE,
    });
  }
  return found;
}

/** A commit of a tree on the last one, under nobody's name but ours. */
export async function commitTree(
  scratch: Scratch,
  { head }: Repository,
  tree: string,
  message: string,
  seconds: number,
): Promise<string> {
  const who = { NAME: "Coppice", EMAIL: "coppice@localhost", DATE: `${seconds} +0000` };
  const env = Object.fromEntries(
    ["AUTHOR", "COMMITTER"].flatMap((role) =>
      Object.entries(who).map(([what, value]) => [`GIT_${role}_${what}`, value]),
    ),
  );
  const args = ["commit-tree", tree, "-p", head, "-F", "-"];
  return (await scratch.need(args, { env, input: bytesOf(`${message}\n`) })).trim();
}
