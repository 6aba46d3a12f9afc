/** Whether a folder that an agent works in is there (RES-8). */
import { statSync } from "node:fs";

export function folderExists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
