/** What a program gives by mistake is refused where it is given, with words that say what to give instead. */
import { expect, test } from "vitest";
import { z } from "zod";
import { createMemoryStore } from "../../../src/store/memory.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import type { RuntimeOptions } from "../../../src/runtime/options.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";

test.for([
  ["a store that nobody awaited", { store: Promise.resolve(createMemoryStore()) }, /await openSqliteStore/],
  ["a path in place of a store", { store: "./agents.db" }, /store is no store/],
  ["a list of providers", { providers: [] }, /providers is a list/],
  ["a model in place of an adapter", { providers: { openai: {} } }, /providers\.openai is no adapter/],
  ["a tool that is none", { tools: [{ name: "read_note" }] }, /tools\[0\] is no tool/],
] as const)("%s is refused", async ([, options, words]) => {
  const made = createRuntime(options as unknown as RuntimeOptions);
  await expect(made).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  await expect(made).rejects.toThrow(words);
});

test.for([
  ["no schema", { name: "read_note", run: (): null => null }],
  ["a JSON schema", { name: "read_note", input: { type: "object" }, run: (): null => null }],
  ["nothing to run", { name: "read_note", input: z.strictObject({}) }],
] as const)("a tool with %s is refused", ([, definition]) => {
  expect(() => defineTool(definition as unknown as Parameters<typeof defineTool>[0])).toThrow(
    /tool read_note needs `input`, a schema of zod 4/,
  );
});
