/** Providers by their names. */
import { expect, test } from "vitest";
import { providerNamed } from "../../../src/policy/choose-model.ts";

test("without any provider it is said how one is given", () => {
  for (const name of [null, "openai"]) {
    expect(() => providerNamed(name, [])).toThrow(/give one: createRuntime\(\{ providers: /);
  }
  expect(() =>
    providerNamed(null, [{ name: "mine", models: null, defaultModel: null, effectiveEffects: null }]),
  ).toThrow(/name one of: mine/);
});
