/** The folder that an option names, by its real path. @throws CommandError when there is none. */
import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { badUse } from "../failure.ts";

export function folderOf(option: string, given: string): string {
  if (given.trim() === "") throw badUse(`${option} is blank; give the path of a folder.`);
  const path = resolve(given);
  let stat;
  try {
    stat = statSync(path);
  } catch {
    throw badUse(`there is no folder ${path}.`);
  }
  if (!stat.isDirectory()) throw badUse(`${path} is not a folder.`);
  return realpathSync(path);
}
