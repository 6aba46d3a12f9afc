import { describe, test } from "vitest";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { call, fail, say, type Script, stall, together } from "../../../src/providers/scripted/script.ts";
import { type Behaviour, providerConformance } from "../../../src/testing/provider-conformance.ts";

const scripts: Readonly<Record<Behaviour, Script>> = {
  text: [together(say("one "), say("two"))],
  calls: [together(call("look", { at: "a" }), call("look", { at: "b" })), say("seen")],
  failure: [fail({ code: "PROVIDER_REFUSED" })],
  silence: [together(say("one"), stall())],
};

describe("the provider scripted", () => {
  const checks = providerConformance(async (behaviour) => ({
    adapter: scripted({ "*": scripts[behaviour] }),
    [Symbol.asyncDispose]: async () => {},
  }));
  test.for(checks.map(({ title, run }) => [title, run] as const))("%s", async ([, run]) => run());
});
