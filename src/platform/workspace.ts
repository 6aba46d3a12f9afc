/** The folders that agents work in: whether one is there (RES-8), and whether two are the same place. */
import { realpathSync, statSync } from "node:fs";
import { resolve, sep } from "node:path";

export function folderExists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** One is the other, or in it, wherever links lead. */
export function overlap(a: string, b: string): boolean {
  if (a === b) return true;
  const [one, other] = [realFolder(a), realFolder(b)];
  return one.startsWith(other) || other.startsWith(one);
}

/** With a separator at its end, so that a folder begins with those that it is in, and with no other's name. */
function realFolder(path: string): string {
  const real = realPath(path);
  return real.endsWith(sep) ? real : real + sep;
}

function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // What is not there is where its name says.
    return resolve(path);
  }
}
