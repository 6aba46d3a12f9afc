/**
 * `npm run test:real`: installs the real programs that `test/real/package.json` pins, in their own folder and only when that
 * has changed, tells which of them can be run here, and runs their tests. Arguments go to vitest.
 *
 * What cannot be installed is no failure: the tests of that program are skipped, and the reason stands here.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findReal, PROGRAM_NAMES, REAL } from "../test/real/support/programs.ts";

const LOCK = join(REAL, "package-lock.json");
/** The lock that was installed last: it goes with the folder. */
const INSTALLED = join(REAL, "node_modules", ".installed-lock.json");

install();
for (const name of PROGRAM_NAMES) {
  const found = findReal(name);
  console.log("missing" in found ? `${name}: skipped, ${found.missing}` : `${name}: ${found.version}`);
}
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const [command = "", ...rest] = [
  ...onLoopbackOnly(),
  process.execPath,
  vitest,
  "run",
  "--config",
  "vitest.real.config.ts",
  ...process.argv.slice(2),
];
const { status } = spawnSync(command, rest, {
  cwd: fileURLToPath(new URL("..", import.meta.url)),
  stdio: "inherit",
});
process.exitCode = status ?? 1;

function install(): void {
  const wanted = readFileSync(LOCK, "utf8");
  if (existsSync(INSTALLED) && readFileSync(INSTALLED, "utf8") === wanted) return;
  console.log("installing the real programs");
  // Their packages are chosen for the Node that runs npm, and their binaries are there without any script.
  const { status: code, error } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: REAL,
    stdio: "inherit",
    env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}` },
  });
  if (code === 0 && PROGRAM_NAMES.every((name) => !("missing" in findReal(name))))
    writeFileSync(INSTALLED, wanted);
  else console.log(`the installation is not complete: ${error?.message ?? `npm ci ended with ${code}`}`);
}

/** What starts a command in a network of its own, where this system lets one have it: nothing can leave loopback then. */
function onLoopbackOnly(): readonly string[] {
  const start = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    'ip link set lo up && exec "$@"',
    "sh",
  ];
  const [tool = "", ...args] = start;
  if (spawnSync(tool, [...args, "true"]).status === 0) {
    console.log("no network but loopback");
    return start;
  }
  console.log("the network of this machine is open to the programs: no other can be made here");
  return [];
}
