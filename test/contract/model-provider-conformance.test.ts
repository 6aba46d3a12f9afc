/** The provider `model` passes the suite that every provider passes, over each vendor's client. */
import { describe, test } from "vitest";
import { createModelProvider } from "../../src/providers/model/model-provider.ts";
import { type Behaviour, providerConformance } from "../../src/testing/provider-conformance.ts";
import { vendors } from "../support/model-provider.ts";
import { call, type Reply, reasoning, text } from "../support/model-wire/reply.ts";
import { startVendorServer } from "../support/vendor-server/vendor-server.ts";

const replies: Readonly<Record<Behaviour, readonly Reply[]>> = {
  text: [{ parts: [text("All ", "is ", "well.")] }],
  calls: [
    {
      parts: [
        reasoning("secret", "Two things."),
        call("call_1", "look", '{"at":"a"}'),
        call("call_2", "look", '{"at":"b"}'),
      ],
    },
    { parts: [text("Seen.")] },
  ],
  failure: [{ status: 503, message: "too busy" }],
  silence: [{ parts: [text("One moment")], ending: "stall" }],
};

describe.for(vendors)("the provider for $vendor", ({ model }) => {
  const checks = providerConformance(async (behaviour) => {
    const server = await startVendorServer();
    server.reply(...replies[behaviour]);
    return {
      adapter: createModelProvider({ models: { "vendor/one": model(server.baseUrl) } }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });
  test.for(checks)("$title", ({ run }) => run());
});
