/** OpenCode as it is, against a model on loopback: the adapter's conformance. */
import { describe, test } from "vitest";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../src/testing/provider-conformance-native.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { openCodeAdapter, openCodeHome } from "./support/opencode.ts";
import { findReal } from "./support/programs.ts";

const openCode = findReal("opencode");

const QUESTION = {
  questions: [{ question: "Which?", header: "W", options: [{ label: "red", description: "" }] }],
};

const SCRIPTS: Readonly<Record<NativeBehaviour, string>> = {
  text: ask.text("one"),
  empty: ask.empty(),
  calls: `${ask.call("look", { at: "a" })} ${ask.text("seen")}`,
  question: `${ask.call("question", QUESTION)} ${ask.text("thanks")}`,
  silence: `${ask.text("one")} ${ask.hold()}`,
  refusal: ask.error(400),
  failure: ask.error(400),
};

/** It takes every prompt, and tells a refusal as the end of its turn. */
const LEFT_OUT: readonly string[] = ["P4 refuses before acceptance, with an error of its kinds and no event"];

describe.skipIf("missing" in openCode)("the provider of OpenCode", () => {
  const checks = nativeProviderConformance(async (behaviour) => {
    if ("missing" in openCode) throw new Error(openCode.missing);
    const server = await startModelServer({ unscripted: SCRIPTS[behaviour] });
    const home = openCodeHome(server);
    return {
      adapter: openCodeAdapter(openCode, home),
      reopen: () => openCodeAdapter(openCode, home),
      kill: () => home.kill(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });
  test.for(
    checks.filter(({ title }) => !LEFT_OUT.includes(title)).map(({ title, run }) => [title, run] as const),
  )("%s", async ([, run]) => run());
});
