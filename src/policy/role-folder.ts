/** Reads the role files of folders from the disk: the `.md` files directly inside, in the order of their names. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { describeError, RejectedError } from "../protocol/errors.ts";
import { check } from "../platform/check.ts";
import { ROLE_FILE_BYTES, type RoleFile, tooLarge } from "./role-file.ts";

/** What `readRoleFolder` has found. */
export interface RoleFolder {
  readonly files: readonly RoleFile[];
  /** Files whose contents could not be had. */
  readonly problems: readonly { readonly file: string; readonly error: RejectedError }[];
}

/** The role files of a folder, for `loadRoles`. A folder that does not exist holds no roles. */
export async function readRoleFolder(folder: string): Promise<RoleFolder> {
  check("readRoleFolder", z.strictObject({ folder: z.string().min(1) }), { folder });
  const files: RoleFile[] = [];
  const problems: { file: string; error: RejectedError }[] = [];
  for (const name of await namesIn(folder)) {
    const file = join(folder, name);
    try {
      const found = await stat(file);
      if (!found.isFile()) continue;
      // Asked before reading, so that a huge file costs nothing.
      if (found.size > ROLE_FILE_BYTES) throw tooLarge(file, found.size);
      files.push({ file, bytes: await readFile(file) });
    } catch (error) {
      problems.push({ file, error: error instanceof RejectedError ? error : unreadable(file, error) });
    }
  }
  return { files, problems };
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith(".md")).toSorted();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw unreadable(folder, error);
  }
}

function unreadable(file: string, error: unknown): RejectedError {
  const message = `${file}: contents cannot be read (${describeError(error)}); check that it exists and its rights.`;
  return new RejectedError("INVALID_ARGUMENT", message, { file, field: "contents" }, error);
}
