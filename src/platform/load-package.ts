/** Packages that the user brings, looked for from a folder of the user's as its own code would. */
import { createRequire } from "node:module";
import { join } from "node:path";

/** What a package exports; null when there is none to be found from there. @throws what loading it fails with. */
export function packageIn(folder: string, name: string): Readonly<Record<string, unknown>> | null {
  try {
    return createRequire(join(folder, "package.json"))(name) as Readonly<Record<string, unknown>>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}
