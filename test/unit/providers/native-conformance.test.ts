import { describe, test } from "vitest";
import { createNativeConversations } from "../../../src/providers/scripted/native/conversations.ts";
import {
  exclusiveFork,
  headFork,
  itemFork,
  mute,
  noFork,
  turnFork,
} from "../../../src/providers/scripted/native/provider.ts";
import {
  ask,
  call,
  end,
  fail,
  repeat,
  say,
  type Script,
  stall,
  together,
} from "../../../src/providers/scripted/script.ts";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../../src/testing/provider-conformance-native.ts";

const scripts: Readonly<Record<NativeBehaviour, Script>> = {
  text: [repeat(say("one"))],
  empty: [end()],
  calls: [call("look", { at: "a" }), say("seen")],
  question: [ask("red or blue?"), say("thanks")],
  silence: [together(say("one"), stall()), say("again")],
  refusal: [fail({ code: "PROVIDER_REFUSED" })],
  failure: [together(say("one"), fail({ accepted: true }))],
};

const kinds = {
  "turnFork, paginated": turnFork,
  "turnFork, legacy": ((given, options) =>
    turnFork(given, { ...options, history: "legacy" })) as typeof turnFork,
  itemFork,
  exclusiveFork,
  headFork,
  noFork,
  mute,
};

describe.each(Object.entries(kinds))("the scripted provider %s", (_name, make) => {
  const checks = nativeProviderConformance(async (behaviour) => {
    const conversations = createNativeConversations();
    const open = () => make({ "*": scripts[behaviour] }, { conversations });
    const adapter = open();
    return { adapter, reopen: open, kill: () => adapter.kill(), [Symbol.asyncDispose]: async () => {} };
  });
  test.for(checks.map(({ title, run }) => [title, run] as const))("%s", async ([, run]) => run());
});
