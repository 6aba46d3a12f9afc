/**
 * Writing a checkpoint back: git's own two-way step from the content that was just captured to the one that is wanted. It
 * looks at every file again before it touches the first: one that has changed meanwhile stops the whole.
 *
 * - B1 Only names that differ are written or removed, all of them within the folder. Where a link stands in the way of a
 *   folder it is the link that is replaced; nothing is ever written through one.
 * - B2 What no checkpoint holds (ignored or too large) is not written over unless that was asked for.
 */
import { copyFile, lstat, rm } from "node:fs/promises";
import { type Change, changes, type Content } from "./content.ts";
import { bytesOf, GitFailure, names, textOf } from "./git-process.ts";
import type { Refused, Restored, RestoreRequest } from "./port.ts";
import type { Scratch } from "./repository.ts";

/** The scratch's index holds `now`. */
export async function restoreContent(
  scratch: Scratch,
  now: Content,
  wanted: Pick<Content, "tree" | "omitted">,
  { paths = [], overwrite = false }: RestoreRequest,
  before: string,
): Promise<Restored | Refused> {
  const differing = await changes(scratch, now.tree, wanted.tree, paths);
  // Which commit a submodule stands at is its own to say, and of what a checkpoint has left out it knows nothing.
  const wholly = differing.filter(({ name, module }) => !module && !isLeftOut(name, wanted));
  if (!overwrite) {
    const inTheWay = await uncaptured(scratch, now, wholly);
    if (inTheWay.length > 0) {
      return {
        status: "refused",
        reason:
          "it would write over files that no checkpoint holds; move them away, or ask to overwrite them",
        paths: inTheWay.map(textOf),
      };
    }
  }
  if (wholly.length > 0) await step(scratch, now.whole, wholly, overwrite);
  return {
    status: "ready",
    before,
    written: wholly.filter(({ to }) => to !== null).map(({ name }) => textOf(name)),
    removed: wholly.filter(({ to }) => to === null).map(({ name }) => textOf(name)),
  };
}

function isLeftOut(name: string, { omitted }: Pick<Content, "omitted">): boolean {
  return omitted.some((left) => left === name || (left.endsWith("/") && name.startsWith(left)));
}

async function step(
  scratch: Scratch,
  from: string,
  differing: readonly Change[],
  overwrite: boolean,
): Promise<void> {
  const { toplevel, prefix, format } = scratch.repository;
  const side = { env: { GIT_INDEX_FILE: scratch.index("side") }, cwd: toplevel };
  await copyFile(scratch.index(), scratch.index("side"));
  const place = bytesOf(prefix);
  const none = "0".repeat(format === "sha1" ? 40 : 64);
  // Removals first: a folder may stand where a file was.
  const gone = differing.filter(({ to }) => to === null).map(({ name }) => `0 ${none}\t${place}${name}`);
  const there = differing.flatMap(({ name, to }) =>
    to === null ? [] : [`${to.mode} ${to.object}\t${place}${name}`],
  );
  const rows = [...gone, ...there].map((row) => `${row}\0`).join("");
  await scratch.need(["update-index", "-z", "--index-info"], { ...side, input: rows });
  const target = (await scratch.need(["write-tree", "--missing-ok"], side)).trim();
  await rm(scratch.index("side"), { force: true });
  const how = overwrite ? ["--reset"] : ["-m"];
  const { code, err } = await scratch.run(["read-tree", "-u", ...how, from, target], { cwd: toplevel });
  if (code !== 0)
    throw new GitFailure(`the folder has changed meanwhile: ${err.trim().split("\n")[0]?.slice(0, 300)}`);
}

/** Files on disk that would be written over, and are in no checkpoint. Names byte by byte. */
async function uncaptured(scratch: Scratch, now: Content, differing: readonly Change[]): Promise<string[]> {
  const listed = await scratch.need(["ls-files", "-z"]);
  const captured = new Set(names(listed));
  for (const name of now.omitted) captured.delete(name);
  const found = new Set<string>();
  for (const { name, to } of differing) {
    if (now.omitted.includes(name)) found.add(name);
    else if (to !== null && !captured.has(name)) {
      const other = await inTheWay(scratch, name, captured);
      if (other !== null) found.add(other);
    }
  }
  return [...found];
}

/** A file at the name, or where one of its folders is to be. What is captured may go. */
async function inTheWay(
  { repository }: Scratch,
  name: string,
  captured: ReadonlySet<string>,
): Promise<string | null> {
  const parts = name.split("/");
  for (let count = 1; count <= parts.length; count += 1) {
    const at = parts.slice(0, count).join("/");
    const there = await kindOf(repository.folder, at);
    if (there === null) return null;
    if (count < parts.length && there === "folder") continue;
    if (there === "folder") return [...captured].some((one) => one.startsWith(`${at}/`)) ? null : `${at}/`;
    return captured.has(at) ? null : at;
  }
  return null;
}

async function kindOf(folder: string, name: string): Promise<"folder" | "other" | null> {
  try {
    const found = await lstat(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, "latin1")]));
    return found.isDirectory() ? "folder" : "other";
  } catch {
    return null;
  }
}
