/**
 * Runs the demo through the command line's entry, on the Node that this package brings along.
 *
 * Plain JavaScript on purpose: it must parse and explain itself on a Node that is too old for the sources.
 * It prints nothing of its own to standard output, so `npm -s start -- --json` is what the demo prints.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

const NEEDED = [24, 11];

const root = fileURLToPath(new URL("../", import.meta.url));
const bundled = `${root}node_modules/.bin/node`;
const entry = `${root}src/cli/bin.ts`;

const node = existsSync(bundled) ? bundled : newEnough(process.versions.node) ? process.execPath : undefined;

if (!existsSync(`${root}node_modules/zod`)) {
  fail("the dependencies are not installed. Run: npm ci");
} else if (node === undefined) {
  fail(
    `Node ${NEEDED.join(".")} or newer is needed, this is ${process.versions.node}, and the one that the`,
    "package brings along is missing: install scripts were off when it was installed. Run one of",
    "    npm rebuild node",
    "    npm ci --ignore-scripts=false",
    "or start again with a newer Node.",
  );
} else if (!existsSync(entry)) {
  fail("src/cli/bin.ts is missing: this checkout has no command line.");
} else {
  run(node);
}

/** @param {string} executable */
function run(executable) {
  const child = spawn(executable, [entry, "demo", ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => fail(`${executable} could not be started: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal ?? "SIGTERM"] ?? 0);
  });
}

/** @param {string} version */
function newEnough(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
}

/** @param {string[]} lines */
function fail(...lines) {
  console.error(`coppice: ${lines.join("\n")}`);
  process.exitCode = 2;
}
