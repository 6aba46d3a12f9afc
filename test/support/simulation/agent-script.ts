/**
 * What simulated agents do: a function of seed, path and own steps alone, so that an agent does the same again after a
 * reload, a crash or in another process. After some steps it only answers, so that every tree comes to rest.
 */
import type { ScriptContext } from "../../../src/providers/scripted/context.ts";
import {
  approve,
  ask,
  call,
  end,
  fail,
  followUp,
  interrupt,
  list,
  pause,
  say,
  type ScriptedStep,
  send,
  spawn,
  type StepFunction,
  think,
  together,
  wait,
} from "../../../src/providers/scripted/script.ts";
import type { JsonObject } from "../../../src/protocol/json.ts";
import { dice, type Dice } from "./randomness.ts";

export const NAMES = ["a", "b", "c"] as const;

export interface Behaviour {
  readonly seed: number;
  /** Own steps after which an agent only answers. */
  readonly lastStep: number;
  /** Providers fail now and then. */
  readonly failures: boolean;
  readonly questions: boolean;
}

export function agentScript(behaviour: Behaviour): StepFunction {
  return (context) => {
    const { seed, lastStep, failures, questions } = behaviour;
    const d = dice(seed, context.path, context.ownSteps, context.failures);
    if (failures && context.failures < 6 && d.chance(0.06)) return failing(d);
    if (context.ownSteps >= lastStep) return say(`done ${context.ownSteps}`);
    const known = childrenIn(context).length;
    switch (
      d.weighted({
        answer: 16,
        spawn: known === 0 ? 24 : 10,
        fan: known === 0 ? 16 : 4,
        send: 8,
        follow: known === 0 ? 2 : 12,
        wait: known === 0 ? 3 : 20,
        list: 1,
        interrupt: known === 0 ? 1 : 4,
        report: 4,
        tool: 6,
        ask: questions ? 5 : 0,
        slow: 5,
        broken: 1,
      })
    ) {
      case "answer":
        return d.chance(0.12) ? end() : say(`answer ${context.ownSteps} of ${context.path}`);
      case "spawn":
        return spawning(d);
      case "fan":
        return together(spawning(d), spawning(d), d.chance(0.5) ? waiting(d, context) : sending(d, context));
      case "send":
        return sending(d, context);
      case "follow":
        return following(d, context);
      case "wait":
        return waiting(d, context);
      case "list":
        return list();
      case "interrupt":
        return interrupt(d.chance(0.8) ? child(d, context) : target(d, context), {
          cascade: d.pick(["none", "subtree"]),
          pending: d.pick(["keep", "cancel"]),
        });
      case "report":
        return reporting(d, context);
      case "tool":
        return together(call("work", { n: d.below(9) }), ...(d.chance(0.3) ? [call("work", { n: 1 })] : []));
      case "ask":
        return d.chance(0.5) ? ask("which?") : together(approve("may I?"), waiting(d, context));
      case "slow":
        return together(
          think("hm"),
          pause(d.below(3000)),
          say("late"),
          ...(d.chance(0.5) ? [sending(d, context)] : []),
        );
      case "broken":
        return call(d.pick(["no_such_tool", "spawn_agent", "wait_agent"]), { nonsense: 1 });
    }
  };
}

function failing(d: Dice): ScriptedStep {
  return fail({
    code: d.pick(["PROVIDER_OVERLOADED", "PROVIDER_UNREACHABLE", "PROVIDER_REFUSED"]),
    accepted: d.chance(0.5),
  });
}

function spawning(d: Dice): ScriptedStep {
  return spawn(d.pick(NAMES), "do it", {
    fork_turns: d.pick(["none", "none", "all", "1"]),
    ...resultOptions(d),
  });
}

function resultOptions(d: Dice): JsonObject {
  return {
    ...(d.chance(0.3) ? { wake: d.pick(["always", "settled_only", "never"]) } : {}),
    ...(d.chance(0.15) ? { detached: true } : {}),
    ...(d.chance(0.08) ? { reply_to: d.pick(["/root", "/root/a"]) } : {}),
  };
}

function target(d: Dice, context: ScriptContext): string {
  const { path } = context;
  const parent = path.slice(0, path.lastIndexOf("/")) || "/root";
  return d.pick([child(d, context), parent, parent, path, "/root", "/root/a", "/root/b"]);
}

function sending(d: Dice, context: ScriptContext): ScriptedStep {
  return send(target(d, context), "news");
}

function following(d: Dice, context: ScriptContext): ScriptedStep {
  return followUp(d.chance(0.75) ? child(d, context) : target(d, context), "and this", resultOptions(d));
}

function waiting(d: Dice, context: ScriptContext): ScriptedStep {
  const timeout = d.chance(0.6) ? { timeout_ms: 200 + d.below(20_000) } : {};
  if (d.chance(0.3)) return wait(timeout);
  const works = worksIn(context);
  if (d.chance(0.3) && works.length > 0) {
    return wait({
      works: [d.pick(works), ...(d.chance(0.5) ? [d.pick(works)] : [])],
      mode: d.pick(["any", "all"]),
      ...timeout,
    });
  }
  const targets = d.chance(0.6)
    ? [child(d, context)]
    : [child(d, context), d.chance(0.5) ? child(d, context) : target(d, context)];
  return wait({ targets, mode: d.pick(["any", "all"]), ...timeout });
}

function reporting(d: Dice, context: ScriptContext): ScriptedStep {
  const works = worksIn(context);
  return call("report_result", {
    work_id: works.length === 0 ? "wrk_none" : d.pick(works),
    result: d.chance(0.8) ? "reported" : "",
    status: d.pick(["completed", "completed", "failed"]),
  });
}

/** Names of children that stand anywhere in what the agent sees. */
function childrenIn({ messages, path }: ScriptContext): readonly string[] {
  const text = JSON.stringify(messages);
  return NAMES.filter((name) => text.includes(`"${path}/${name}"`));
}

function child(d: Dice, context: ScriptContext): string {
  const known = childrenIn(context);
  return known.length > 0 && d.chance(0.9) ? d.pick(known) : d.pick(NAMES);
}

/** Ids of works that stand anywhere in what the agent sees. */
function worksIn(context: ScriptContext): readonly string[] {
  return [...new Set(JSON.stringify(context.messages).match(/wrk_[0-9A-Za-z]{21}/g) ?? [])];
}
