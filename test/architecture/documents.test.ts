/** Holds docs/api.md to what the package exports, and the programs of the README to the compiler. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { apiExports, apiReference } from "../../scripts/api-reference.ts";
import * as index from "../../src/index.ts";
import * as testing from "../../src/testing.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const compiling = 120_000;
let told: ReturnType<typeof apiExports> | undefined;
const exportedOnce = (): ReturnType<typeof apiExports> => (told ??= apiExports());

test("docs/api.md is what the entry points export, each with words", { timeout: compiling }, () => {
  const exported = exportedOnce();
  // Where it differs: npx node scripts/api-reference.ts
  expect(readFileSync(join(root, "docs/api.md"), "utf8")).toBe(apiReference(exported));
  expect(exported.filter(({ words }) => !/^[A-Z`].*[.:]/.test(words)).map(({ name }) => name)).toEqual([]);
  const values = (entry: string): string[] =>
    exported
      .filter((one) => one.entry === entry && !one.typeOnly)
      .map(({ name }) => name)
      .toSorted();
  const { script, ...others } = testing;
  expect(values("coppice")).toEqual(Object.keys(index).toSorted());
  expect(values("coppice/testing")).toEqual(
    [...Object.keys(others), ...Object.keys(script).map((name) => `script.${name}`)].toSorted(),
  );
});

test("docs/api.md tells what computed types come to, and what is inherited", { timeout: compiling }, () => {
  const signatures = new Map(exportedOnce().map(({ name, signature }) => [name, signature]));
  expect(signatures.get("Effect")).toBe('type Effect = "execute" | "network" | "read" | "write"');
  expect(signatures.get("EventType")).toContain('| "work.ended"');
  expect(signatures.get("SpawnOptions")).toMatch(
    / {2}readonly provider\?: string \| null;\n[^]* {2}readonly commandId\?: string;/,
  );
  expect(signatures.get("AgentChoice")).toContain("  readonly model?: string | null;");
  expect(signatures.get("Budgets")).toContain("  readonly tokens?: number | null;");
  const aliases = [...signatures.values()].filter((text) => text.startsWith("type "));
  expect(aliases.filter((text) => /\btypeof\b|\bz\.(?:in|out)put\b|\bOmit</.test(text))).toEqual([]);
});

test("the first program of README.md is examples/quick-start.ts, which is run", () => {
  const [readme, example] = ["README.md", "examples/quick-start.ts"].map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
  const [, program] = /^```ts\n(.*?)^```$/ms.exec(readme!)!;
  // The example is formatted, and ends with what makes a wrong answer fail.
  const statements = (text: string): string => text.replaceAll(/\s+/g, "").replaceAll(",)", ")");
  const code = statements(example!.replace(/^\/\*\*.*\*\/\n/, ""));
  expect(code.slice(0, statements(program!).length)).toBe(statements(program!));
});

test("what README.md and docs/ link to is packed with them", () => {
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  const pages = [
    "README.md",
    ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md"))
      .map((name) => join("docs", name)),
  ];
  const links = pages.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/\]\((?!https?:)([^)#\s]+)[^)\s]*\)/g)].map(
      ([, to]) => join(dirname(page), to!),
    ),
  );
  expect(links.length).toBeGreaterThan(8);
  const packed = (path: string): boolean => files.some((one) => path === one || path.startsWith(`${one}/`));
  expect(links.filter((path) => !packed(path) || !existsSync(join(root, path)))).toEqual([]);
});

test("the programs of README.md compile", { timeout: compiling }, () => {
  const programs = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)];
  expect(programs.length).toBeGreaterThanOrEqual(3);
  const folder = mkdtempSync(join(root, "node_modules/.readme-"));
  try {
    const files = programs.map(([, text], at) => {
      const file = join(folder, `program-${at}.ts`);
      writeFileSync(file, text!);
      return file;
    });
    const config = join(folder, "tsconfig.json");
    writeFileSync(
      config,
      JSON.stringify({ extends: join(root, "tsconfig.json"), files, include: [], exclude: [] }),
    );
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    execFileSync(process.execPath, [compiler, "-p", config], { stdio: ["ignore", "pipe", "inherit"] });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("what the methods of `runtime.threads` take and answer is exported, too", { timeout: compiling }, () => {
  const exported = exportedOnce();
  const names = new Set(exported.map(({ name }) => name));
  const threads = exported.filter(({ name }) => name === "Threads" || name === "ThreadReads");
  expect(threads).toHaveLength(2);
  for (const { signature } of threads) {
    const code = signature.replaceAll(/\/\*\*.*?\*\//gs, "").replaceAll(/"[^"]*"/g, "");
    const named = new Set(code.match(/\b[A-Z]\w+/g));
    named.delete("Promise");
    expect([...named].filter((name) => !names.has(name))).toEqual([]);
  }
});
