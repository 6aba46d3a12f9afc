/**
 * Compiles and runs a program that has installed the packed package and its runtime dependencies, nothing else: strict, with
 * every declaration file looked at (`skipLibCheck` off), from each entry point. Its command can be run. `npm run pack:check`
 * runs it after a build.
 */
import { execFileSync } from "node:child_process";
import {
  accessSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly name: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly dependencies: Readonly<Record<string, string>>;
};

const program = Object.keys(manifest.exports)
  .map((path) => `${manifest.name}${path.slice(1)}`)
  .map((entry, index) => {
    const json = entry.endsWith(".json") ? ' with { type: "json" }' : "";
    const what = json === "" ? `* as part${index}` : `part${index}`;
    return `import ${what} from "${entry}"${json};\nif (Object.keys(part${index}).length === 0) throw new Error("${entry} is empty");`;
  });

const folder = mkdtempSync(join(tmpdir(), "coppice-consumer-"));
try {
  for (const command of Object.values(manifest.bin)) accessSync(join(root, command), constants.X_OK);
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, manifest.name), { recursive: true });
  const run = (command: string, ...given: readonly string[]): string =>
    execFileSync(command, given, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const packed = run("npm", "pack", root, "--ignore-scripts", "--silent").trim();
  run("tar", "-xzf", packed, "-C", join(modules, manifest.name), "--strip-components", "1");
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(root, "node_modules", name), join(modules, name), "dir");
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(folder, "program.ts"), `${program.join("\n")}\n`);
  const compilerOptions = {
    strict: true,
    skipLibCheck: false,
    exactOptionalPropertyTypes: true,
    module: "nodenext",
    target: "es2024",
    noEmit: true,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  run(process.execPath, join(root, "node_modules/typescript/bin/tsc"), "-p", folder);
  run(process.execPath, "program.ts");
} catch (error) {
  // What the compiler has found stands on its standard output.
  process.stdout.write((error as { readonly stdout?: string }).stdout ?? `${String(error)}\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
