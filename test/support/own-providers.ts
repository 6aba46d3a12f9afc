/**
 * A module of a user's, as `--config` takes it: providers that own their loop, whose conversations are gone with their process.
 * COPPICE_TEST_FAULTS names calls that go wrong, COPPICE_TEST_LINEAGE numbers of threads; with COPPICE_TEST_EMPTY a provider finds its
 * conversations, and no turn in them.
 */
import { RejectedError } from "../../src/protocol/errors.ts";
import { createNativeConversations } from "../../src/providers/scripted/native/conversations.ts";
import { crashAfter, type NativeFault, refuse } from "../../src/providers/scripted/native/faults.ts";
import {
  mute,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";

const ANSWERS = { "*": [repeat(say("an answer of my own"))] };

const KINDS: Readonly<Record<string, () => NativeFault>> = {
  refuse: () => refuse(new RejectedError("PROVIDER_REFUSED", "not today", {})),
  noTurn: () =>
    refuse(new RejectedError("ROLLBACK_TURN_UNAVAILABLE", "no such turn here; go without it", {})),
  crash: crashAfter,
};

const conversations = createNativeConversations();

/** Names as the records of the tests have them. */
export function ownProviders(): Record<"able" | "poor" | "deaf", ScriptedNativeProvider> {
  return {
    able: turnFork(ANSWERS, {
      conversations,
      selectionChange: (from, to) =>
        from.model === to.model || to.model !== "large" ? "apply_next_turn" : { reject: "it has one model" },
    }),
    poor: noFork(ANSWERS),
    deaf: mute(ANSWERS),
  };
}

const providers = ownProviders();
if (process.env["COPPICE_TEST_EMPTY"] === "1")
  for (let made = 0; made < 100; made += 1) conversations.create("turn-fork", "paginated", null);
for (const named of (process.env["COPPICE_TEST_FAULTS"] ?? "").split(",").filter((name) => name !== "")) {
  const [method, kind] = named.split(":") as [Parameters<ScriptedNativeProvider["fault"]>[0], string];
  providers.able.fault(method, KINDS[kind]!(), 50);
}

// What `--config` takes is a default export.
// oxlint-disable-next-line import/no-default-export
export default { providers, lineage: JSON.parse(process.env["COPPICE_TEST_LINEAGE"] ?? "{}") as object };
