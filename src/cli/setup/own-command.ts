/** How a client is to start this very program, from wherever it is. */
import { realpathSync } from "node:fs";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServerCommand } from "./clients.ts";

/** What npx has fetched for one call is cleared away some day; all else stays where it is. */
const FETCHED = `${sep}_npx${sep}`;

export function ownCommand(version: string, args: readonly string[]): ServerCommand {
  const file = import.meta.url.endsWith(".ts") ? "../bin.ts" : "../bin.js";
  const program = realpathSync(fileURLToPath(new URL(file, import.meta.url)));
  if (program.includes(FETCHED)) return { command: "npx", args: ["-y", `coppice@${version}`, ...args] };
  return { command: process.execPath, args: [program, ...args] };
}
