/** What every adapter owes the session, as the one for ACP gives it with a program of ours on the other side. */
import { describe, test } from "vitest";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../../src/testing/provider-conformance-native.ts";
import { fakeAgent } from "../../support/acp.ts";

const TURNS: Readonly<Record<NativeBehaviour, readonly object[]>> = {
  text: [{ say: "one" }],
  empty: [],
  calls: [{ call: "look", input: { at: "a" } }, { tell: true }],
  question: [],
  silence: [{ say: "one" }, { hold: true }],
  refusal: [{ fail: { code: -32603, message: "no" } }],
  failure: [{ say: "one" }, { fail: { code: -32603, message: "no" } }],
};

const WAYS = {
  "over HTTP, resumed": {},
  "over standard input, loaded": { can: { loadSession: true } },
} as const;

/** The protocol has no way for it that is stable. */
const LEFT_OUT = "asks the user a question, and answers to nothing twice";

describe.for(Object.entries(WAYS))("the provider of ACP, %s", { timeout: 60_000 }, ([, ways]) => {
  const checks = nativeProviderConformance(async (behaviour) => {
    const agent = fakeAgent();
    const adapter = () => agent.adapter({ ...ways, turn: TURNS[behaviour] });
    return {
      adapter: adapter(),
      reopen: adapter,
      kill() {
        for (const pid of agent.processes()) process.kill(pid, "SIGKILL");
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  });
  test.for(checks.filter(({ title }) => title !== LEFT_OUT).map(({ title, run }) => [title, run] as const))(
    "%s",
    async ([, run]) => run(),
  );
});
