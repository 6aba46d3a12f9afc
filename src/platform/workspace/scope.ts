/** What of a checkpoint is to be written back: names of files and folders within the folder, checked before anything is kept or written. */
import { isAbsolute, posix } from "node:path";
import { RejectedError } from "../../protocol/errors.ts";
import type { Scratch } from "./repository.ts";

/**
 * The names that the paths mean; none for the whole folder, which `.` is too.
 * @throws RejectedError `INVALID_ARGUMENT` for a path that leads out of the folder, or to what none of the trees holds.
 */
export async function scopeOf(
  scratch: Scratch,
  paths: readonly string[],
  trees: readonly string[],
): Promise<readonly string[]> {
  const names = paths.map(nameOf);
  for (const [at, name] of names.entries())
    if (name !== WHOLE && !(await isInOne(scratch, name, trees)))
      throw invalid(
        paths[at]!,
        "is neither in the checkpoint nor in the folder, as far as that can be captured",
      );
  return names.includes(WHOLE) ? [] : names;
}

const WHOLE = ".";

function nameOf(path: string): string {
  if (path === "" || path.includes("\0")) throw invalid(path, "is no path");
  const name = posix.normalize(path).replace(/\/+$/, "");
  const leadsOut = isAbsolute(path) || name === ".." || name.startsWith("../");
  if (leadsOut) throw invalid(path, "leads out of the folder");
  return name;
}

async function isInOne(scratch: Scratch, name: string, trees: readonly string[]): Promise<boolean> {
  for (const tree of trees) {
    const listed = await scratch.need(["ls-tree", "-z", "--name-only", "--full-tree", tree, "--", name]);
    if (listed !== "") return true;
  }
  return false;
}

function invalid(path: string, why: string): RejectedError {
  const shown = JSON.stringify(path.slice(0, 200));
  const message = `paths: ${shown} ${why}; name files or folders as they are named within the folder.`;
  return new RejectedError("INVALID_ARGUMENT", message, { argument: "paths", value: path });
}
