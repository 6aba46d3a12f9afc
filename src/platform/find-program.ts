/** Where a program is, looked up as the system would when it starts one, so that a missing one is told from one that fails. */
import { access, constants, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";
import { RejectedError } from "../protocol/errors.ts";
import type { ProcessSpec } from "./process.ts";

/**
 * The absolute path of a program: of a name along PATH, of a path from the folder in which it is to run.
 * @throws RejectedError `PROVIDER_UNAVAILABLE` when there is none, or none that may be executed.
 */
export async function findProgram({ command, cwd, env = process.env }: ProcessSpec): Promise<string> {
  const folders = command.includes("/") ? [""] : (env["PATH"] ?? "").split(delimiter);
  let forbidden: string | null = null;
  for (const folder of folders) {
    const path = resolve(cwd ?? process.cwd(), folder, command);
    if (!(await isFile(path))) continue;
    if (await isExecutable(path)) return path;
    forbidden ??= path;
  }
  throw new RejectedError(
    "PROVIDER_UNAVAILABLE",
    forbidden === null
      ? `there is no program ${command}; install it, or say where it is.`
      : `${forbidden} may not be executed; make it executable, or name another program.`,
    { command },
  );
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    // Not there, or not to be looked at: no program either way.
    return false;
  }
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
