/** Lets the shell run the command that was built: the compiler writes files that only can be read. */
import { chmod } from "node:fs/promises";

await chmod(new URL("../dist/cli/bin.js", import.meta.url), 0o755);
