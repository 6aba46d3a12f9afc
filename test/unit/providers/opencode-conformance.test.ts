/** What every adapter owes the session, as the one for OpenCode gives it with a server of ours on the other side. */
import { describe, test } from "vitest";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../../src/testing/provider-conformance-native.ts";
import { fakeOpenCode } from "../../support/opencode.ts";

const QUESTION = { questions: [{ question: "Which?", options: [{ label: "red" }] }] };
const NO = { name: "APIError", data: { message: "no", statusCode: 400 } };

const TURNS: Readonly<Record<NativeBehaviour, readonly object[]>> = {
  text: [{ say: "one" }],
  empty: [],
  calls: [{ call: "look", input: { at: "a" } }, { tell: true }],
  question: [{ ask: "question.asked", of: QUESTION }, { tell: true }],
  silence: [{ say: "one" }, { hold: true }],
  refusal: [],
  failure: [{ say: "one" }, { fail: NO }],
};

describe("the provider of OpenCode", { timeout: 60_000 }, () => {
  const checks = nativeProviderConformance(async (behaviour) => {
    const server = fakeOpenCode();
    const ways = { turn: TURNS[behaviour], refuses: behaviour === "refusal" };
    return {
      adapter: server.adapter(ways),
      reopen: () => server.adapter(ways),
      kill: () => server.kill(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  });
  test.for(checks.map(({ title, run }) => [title, run] as const))("%s", async ([, run]) => run());
});
