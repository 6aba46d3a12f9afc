/** Holds `src/` to the layer table, and the scanner to its word by planted violations. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { folderOf, judge, table } from "./layers.ts";
import { ambientUsesOf, importsOf, readSources, stringsOf, titlesOf } from "./scanner.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const sources = existsSync(`${root}/src`) ? readSources(root, "src") : [];

describe("src", () => {
  test("a folder imports only what its row of the layer table names", () => {
    expect(sources.flatMap(judge)).toEqual([]);
  });

  test("only src/platform touches time, timers, randomness and the microtask queue", () => {
    const outside = sources.filter((source) => folderOf(source.path) !== "platform");
    expect(outside.flatMap((source) => ambientUsesOf(source).map((use) => `${source.path}: ${use}`))).toEqual(
      [],
    );
  });

  test("beside the folders stand only the two entry points", () => {
    const loose = sources.map(({ path }) => path).filter((path) => path.split("/").length === 2);
    expect(loose.filter((path) => !["src/index.ts", "src/testing.ts"].includes(path))).toEqual([]);
  });

  test("no folder holds a barrel", () => {
    const barrels = sources.filter(({ path }) => /^src\/.+\/index\.tsx?$/.test(path));
    expect(barrels.map(({ path }) => path)).toEqual([]);
  });
});

describe("the layer table", () => {
  test("has no cycle", () => {
    const above = (folder: string, seen: readonly string[]): void => {
      expect(seen).not.toContain(folder);
      const row = table[folder];
      for (const next of [...(row?.folders ?? []), ...(row?.types ?? [])]) above(next, [...seen, folder]);
    };
    for (const folder of Object.keys(table)) above(folder, []);
  });

  test("names only folders that it has", () => {
    const named = Object.values(table).flatMap((row) => [...row.folders, ...(row.types ?? [])]);
    expect(named.filter((folder) => !Object.hasOwn(table, folder))).toEqual([]);
  });
});

describe("planted violations", () => {
  test.for([
    ["a layer above", "src/store/a.ts", 'import { x } from "../control/x.ts";', /may not import/],
    [
      "a type of a layer above",
      "src/store/a.ts",
      'import type { X } from "../control/x.ts";',
      /may not import/,
    ],
    ["a neighbour", "src/mailbox/a.ts", 'export * from "../execution/x.ts";', /may not import/],
    ["a dynamic import", "src/policy/a.ts", 'const x = await import("../store/x.ts");', /may not import/],
    ["an import in a type", "src/policy/a.ts", 'type X = import("../store/x.ts").X;', /may not import/],
    ["control seeing tools", "src/control/a.ts", 'export { x } from "../tools/x.ts";', /may not import/],
    [
      "a value where types are allowed",
      "src/mailbox/a.ts",
      'import { x } from "../store/port.ts";',
      /only types/,
    ],
    ["no extension", "src/store/a.ts", 'import { x } from "./b";', /lacks its \.ts/],
    ["a .js extension", "src/store/a.ts", 'import { x } from "./b.js";', /lacks its \.ts/],
    ["a package abroad", "src/control/a.ts", 'import PQueue from "p-queue";', /no home/],
    ["a sub-path of a package abroad", "src/store/a.ts", 'import { x } from "xstate/graph";', /no home/],
    ["a provider's code", "src/providers/a.ts", 'import { x } from "@ai-sdk/provider";', /types only/],
    ["SQLite abroad", "src/runtime/a.ts", 'import { DatabaseSync } from "node:sqlite";', /no home/],
    ["hashing abroad", "src/lineage/a.ts", 'import { createHash } from "node:crypto";', /no home/],
    ["Node in the protocol", "src/protocol/a.ts", 'import { join } from "node:path";', /browser/],
    ["an entry point", "src/store/a.ts", 'import { x } from "../index.ts";', /entry point/],
    ["a way out", "src/store/a.ts", 'import { x } from "../../test/x.ts";', /leaves src/],
    ["a computed import", "src/store/a.ts", "await import(name);", /computed/],
    [
      "a second computed import",
      "src/cli/config.ts",
      "await import(named); await import(another);",
      /computed/,
    ],
    ["require", "src/store/a.ts", 'require("pino");', /no home/],
    ["a new folder", "src/helpers/a.ts", "export {};", /not in the layer table/],
  ] as const)("%s is seen", ([, path, text, fault]) => {
    expect(judge({ path, text })).toEqual([expect.stringMatching(fault)]);
  });

  test("what the table allows passes", () => {
    const text = [
      'import { z } from "zod";',
      'import type { Store } from "../store/port.ts";',
      'import { type A, type B } from "../store/port.ts";',
      'import { id } from "../platform/ids.ts";',
      'import { join } from "node:path";',
      'import { x } from "./x.ts";',
      '// import { y } from "../control/y.ts";',
      "const text = 'import { y } from \"../control/y.ts\"';",
    ].join("\n");
    expect(judge({ path: "src/mailbox/deep/a.ts", text: text.replaceAll('"../', '"../../') })).toEqual([]);
    expect(judge({ path: "src/testing/deep/a.ts", text: 'import "../../runtime/a.ts";' })).toEqual([]);
    expect(judge({ path: "src/cli/config.ts", text: "await import(named);" })).toEqual([]);
    expect(judge({ path: "src/index.ts", text: 'export * from "./runtime/a.ts";' })).toEqual([]);
  });

  test("every form of import is read", () => {
    const text = [
      'import a from "a";',
      'import type { B } from "b";',
      'import "c";',
      'export { d } from "d";',
      'export type { E } from "e";',
      "export const f = () => import(`f`);",
      'type G = import("g").G;',
    ].join("\n");
    expect(importsOf({ path: "x.ts", text })).toEqual([
      { specifier: "a", typeOnly: false },
      { specifier: "b", typeOnly: true },
      { specifier: "c", typeOnly: false },
      { specifier: "d", typeOnly: false },
      { specifier: "e", typeOnly: true },
      { specifier: "f", typeOnly: false },
      { specifier: "g", typeOnly: true },
    ]);
  });

  test.for([
    ["setTimeout(() => {}, 1);", "setTimeout"],
    ["globalThis.setInterval(f, 1);", "setInterval"],
    ["const later = setImmediate;", "setImmediate"],
    ["queueMicrotask(f);", "queueMicrotask"],
    ["const now = Date.now();", "Date.now"],
    ['const now = Date["now"]();', "Date.now"],
    ["const now = new Date();", "new Date()"],
    ["const now = Date();", "new Date()"],
    ["const t = performance.now();", "performance"],
    ["const r = Math.random();", "Math.random"],
    ["const id = crypto.randomUUID();", "crypto"],
    ["const id = globalThis.crypto;", "crypto"],
    ["const s = AbortSignal.timeout(5);", "AbortSignal.timeout"],
    ["const x = `at ${Date.now()}`;", "Date.now"],
  ] as const)("%s is seen as %s", ([text, use]) => {
    expect(ambientUsesOf({ path: "src/a/a.ts", text })).toEqual([use]);
  });

  test("names that only look like time pass", () => {
    const text = [
      "clock.setTimeout(f, 1); clock.now(); const at = new Date(ms).toISOString();",
      "interface Clock { setTimeout(f: () => void): void; performance: number }",
      "// Date.now()",
      'const text = "Math.random()"; const o = { crypto: 1 };',
    ].join("\n");
    expect(ambientUsesOf({ path: "src/a/a.ts", text })).toEqual([]);
  });

  test("strings are told by where they stand, and comments and types hold none", () => {
    const text = [
      '// code: "IN_A_COMMENT"',
      'type T = "IN_A_TYPE";',
      'if (error.code === "COMPARED" || "NEITHER" != code) throw new Refusal("THROWN");',
      'switch (code) { case "CASE": refuse("GIVEN"); }',
      'expect(error).toMatchObject({ code: "EXPECTED" });',
      'const CASES = [["ROW", 2, "COLUMN"]];',
    ].join("\n");
    expect(stringsOf({ path: "a.ts", text }).map(({ value, role }) => `${value} ${role}`)).toEqual([
      "COMPARED compared",
      "NEITHER compared",
      "THROWN other",
      "CASE compared",
      "GIVEN argument",
      "EXPECTED code",
      "ROW row",
      "COLUMN other",
    ]);
  });

  test("titles are found whatever the helper, skipped tests are not", () => {
    const text = [
      'test("ABC-7 one", () => {});',
      'contract("ABC-8", async ({ store }) => {});',
      "test.for(stores)(`ABC-9 [${x}]`, async () => {});",
      'test.skip("ABC-10 gone", () => {});',
      'test.todo("ABC-11 later");',
      'expect("ABC-12");',
    ].join("\n");
    expect(titlesOf({ path: "a.test.ts", text })).toEqual(["ABC-7 one", "ABC-8", "ABC-9 ["]);
  });
});
