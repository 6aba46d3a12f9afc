/** Node's cache of compiled modules, in a folder that only this user writes. Must parse on old Node, as `bin.ts`. */
import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

export function enableCompileCache(): void {
  const named = process.env["XDG_CACHE_HOME"] ?? "";
  module.enableCompileCache(join(named === "" ? join(homedir(), ".cache") : named, "coppice", "compiled"));
}
