/** Claude Code as it is, against a model on loopback: the adapter's conformance, and a tree with Claude at its root. */
import { describe, test } from "vitest";
import { createClaudeProvider } from "../../src/providers/claude/claude-provider.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../src/testing/provider-conformance-native.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { claudeHome, claudeSdk } from "./support/claude.ts";
import type { Home } from "./support/home.ts";
import { findReal } from "./support/programs.ts";

const claude = findReal("claude");

async function adapterAt({ env }: Home): Promise<NativeAdapter> {
  if ("missing" in claude) throw new Error(claude.missing);
  const sdk = await claudeSdk(claude);
  return createClaudeProvider({ sdk, pathToExecutable: claude.command, env });
}

const SCRIPTS: Readonly<Record<NativeBehaviour, string>> = {
  text: "@@TEXT one@@",
  // It asks once more by itself.
  empty: "@@EMPTY@@ @@EMPTY@@",
  calls: '@@CALL look {"at":"a"}@@ @@TEXT seen@@',
  question: `@@CALL AskUserQuestion ${JSON.stringify({
    questions: [
      {
        question: "Which?",
        header: "Which",
        options: [
          { label: "red", description: "" },
          { label: "blue", description: "" },
        ],
        multiSelect: false,
      },
    ],
  })}@@ @@TEXT thanks@@`,
  silence: "@@TEXT one@@ @@HOLD@@",
  refusal: "@@ERROR 400@@",
  failure: "@@ERROR 500@@",
};

/** What Claude has no way to do. */
const LEFT_OUT: readonly string[] = [
  // It takes every turn, and tells a refusal as its end.
  "P4 refuses before acceptance, with an error of its kinds and no event",
];

describe.skipIf("missing" in claude)("the provider of Claude", () => {
  const checks = nativeProviderConformance(async (behaviour) => {
    const server = await startModelServer({ unscripted: SCRIPTS[behaviour] });
    const home = claudeHome(server);
    const adapter = await adapterAt(home);
    const later = await adapterAt(home);
    return {
      adapter,
      reopen: () => later,
      kill: () => home.kill(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });
  test.for(
    checks.filter(({ title }) => !LEFT_OUT.includes(title)).map(({ title, run }) => [title, run] as const),
  )("%s", async ([, run]) => run());
});
