#!/usr/bin/env node
/**
 * The entry of the command line. It must parse on a Node that is too old for the rest, and then says what is needed; the
 * program itself is loaded after the look at the version. What Node compiles is kept in the user's own cache folder, which
 * makes the next start several times faster.
 */
import { enableCompileCache } from "./compile-cache.ts";

const NEEDED = [24, 11] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) {
  enableCompileCache();
  const { main } = await import("./main.ts");
  await main(process.argv.slice(2));
} else {
  console.error(
    `coppice: Node ${NEEDED.join(".")} or newer is needed, this is ${process.versions.node}. ` +
      "In a project: npm install node@24, then npx coppice",
  );
  process.exitCode = 2;
}
