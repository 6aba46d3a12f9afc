/** Who decides on context, and who knows providers: one neutral decision, and no provider's name above its adapter (lineage C4.1, 3.1). */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readSources } from "./scanner.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const sourcesOf = (...folders: string[]) => folders.flatMap((folder) => readSources(root, `src/${folder}`));

/** Code without its comments. */
const codeOf = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");

test("S0-41 C4.1 one place asks for the plan of a start", () => {
  const callers = sourcesOf("control", "threads", "session", "tools", "runtime", "lineage")
    .filter(({ text }) => /\bresolveStartContext\(/.test(codeOf(text)))
    .map(({ path }) => path);
  expect(callers).toEqual(["src/control/start-run.ts", "src/lineage/start-context.ts"]);
});

test("S0-48 C4.1 no driver is named where relation, point, transfer and receipt are kept", () => {
  const named = sourcesOf("control", "threads", "session", "lineage", "mailbox", "execution", "residency")
    .filter(({ text }) => /["'`](?:claude|opencode|acp|openai|anthropic)["'`]/.test(codeOf(text)))
    .map(({ path }) => path);
  expect(named).toEqual([]);
});

test("S0-48 C4.1 a plan of `lineage` imports neither providers nor sessions nor the store's adapters", () => {
  const wrong = sourcesOf("lineage").flatMap(({ path, text }) =>
    [...text.matchAll(/from "(?<from>[^"]+)"/g)]
      .map((match) => match.groups!["from"]!)
      .filter((from) => /\/(?:providers|session|control|threads|policy|store\/(?!port))/.test(from))
      .map((from) => `${path} imports ${from}`),
  );
  expect(wrong).toEqual([]);
});
