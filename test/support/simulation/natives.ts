/** Two providers that own their loops, drawn from the seed; their conversations outlive every process of the simulation. */
import type { Clock } from "../../../src/platform/clock.ts";
import type { NativeConversations } from "../../../src/providers/scripted/native/conversations.ts";
import {
  exclusiveFork,
  headFork,
  itemFork,
  mute,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../../src/providers/scripted/native/provider.ts";
import {
  ask,
  call,
  end,
  fail,
  pause,
  say,
  type StepFunction,
  together,
} from "../../../src/providers/scripted/script.ts";
import type { Behaviour } from "./agent-script.ts";
import { dice } from "./randomness.ts";

export function nativeProviders(
  behaviour: Behaviour,
  clock: Clock,
  conversations: NativeConversations,
): Readonly<Record<string, ScriptedNativeProvider>> {
  const d = dice(behaviour.seed, "natives");
  const scripts = { "*": nativeScript(behaviour) };
  const options = { clock, conversations };
  const able = d.pick([turnFork, itemFork, exclusiveFork]);
  const poor = d.pick([headFork, headFork, noFork, mute]);
  return { able: able(scripts, options), poor: poor(scripts, options) };
}

/** Of the place in its conversation alone, so that it does the same again in another process. */
function nativeScript({ seed, failures, questions }: Behaviour): StepFunction {
  return ({ path, ownSteps, messages, failures: failed, lastToolResult }) => {
    const d = dice(seed, "native", path, ownSteps, messages.length, failed);
    if (failures && failed < 4 && d.chance(0.1))
      return fail({
        code: d.pick(["PROVIDER_OVERLOADED", "PROVIDER_UNREACHABLE", "PROVIDER_REFUSED"]),
        accepted: d.chance(0.5),
      });
    // After a call it answers, so that every turn comes to its end.
    if (lastToolResult !== null && d.chance(0.7)) return say(`went on ${ownSteps}`);
    switch (d.weighted({ answer: 50, slow: 15, tool: 20, ask: questions ? 8 : 0, empty: 4 })) {
      case "answer":
        return say(`native answer ${ownSteps} of ${path}`);
      case "slow":
        return together(pause(d.below(2000)), say("native and late"));
      case "tool":
        return call("work", { n: d.below(9) });
      case "ask":
        return ask("native: which?");
      case "empty":
        return end();
    }
  };
}
