/**
 * A script made ready: which step comes next, as a function of what the thread's transcript holds.
 *
 * - N1 A step that answers is done when its answer is stored: after `k` answers the script goes on behind its `k`-th
 *   answering step. So a script goes on after unload, reload and `kill -9` without a state of its own.
 * - N2 A step that leaves nothing (`fail`, `stall`) is done when it has failed or was aborted. The provider counts those
 *   since the last answer; another process starts again behind the last answer.
 */
import { RejectedError } from "../../protocol/errors.ts";
import {
  type Act,
  completes,
  describeStep,
  leavesNothing,
  type Script,
  type ScriptEntry,
  type ScriptedStep,
  type StepFunction,
} from "./script.ts";

/** A step with what stood before it on its own. */
export interface ProgramStep {
  readonly leads: readonly Act[];
  readonly body: ScriptedStep | StepFunction;
}

export interface Program {
  readonly steps: readonly ProgramStep[];
  /** Played for ever after the steps. */
  readonly tail: ProgramStep | null;
  /** Index behind the `k`-th answering step, from `k` = 0. */
  readonly starts: readonly number[];
}

/** @throws RejectedError `INVALID_ARGUMENT` when a gate or the like has no answer behind it. */
export function compile(owner: string, script: Script): Program {
  if (typeof script === "function") {
    return { steps: [], tail: { leads: [], body: script }, starts: [0] };
  }
  const steps: ProgramStep[] = [];
  let tail: ProgramStep | null = null;
  let leads: Act[] = [];
  for (const entry of script) {
    const { step, times } = repeated(entry);
    if (tail !== null) refuse(owner, "nothing can follow a step that repeats for ever");
    if (typeof step !== "function" && !step.acts.some(completes)) {
      if (times === Infinity)
        refuse(owner, `\`${describeStep(step)}\` answers nothing and cannot repeat for ever`);
      for (let count = 0; count < times; count += 1) leads.push(...step.acts);
      continue;
    }
    const following = { leads: [], body: step };
    const first = { leads, body: step };
    if (times === Infinity) {
      // What stands before an endless step holds its first round only, which is then an ordinary step.
      if (leads.length > 0) steps.push(first);
      tail = following;
    } else {
      for (let count = 0; count < times; count += 1) steps.push(count === 0 ? first : following);
    }
    if (times > 0) leads = [];
  }
  if (leads.length > 0) {
    refuse(
      owner,
      `\`${describeStep({ acts: leads })}\` at its end has no answer behind it; add say() or end()`,
    );
  }
  const starts = [0];
  steps.forEach(({ body }, index) => {
    if (!leavesNothing(body)) starts.push(index + 1);
  });
  return { steps, tail, starts };
}

/** Index of the next step, which may be one past the last. */
export function nextIndex(program: Program, ownSteps: number, failures: number): number {
  const start = program.starts[ownSteps] ?? program.steps.length;
  return Math.min(start + failures, program.steps.length);
}

/** The acts of one response. */
export function actsOf(step: ProgramStep, body: ScriptedStep): readonly Act[] {
  return [...step.leads, ...body.acts];
}

function repeated(entry: ScriptEntry): {
  readonly step: ScriptedStep | StepFunction;
  readonly times: number;
} {
  if (typeof entry !== "function" && "step" in entry) return entry;
  if (typeof entry === "function") return { step: entry, times: 1 };
  const failing = entry.acts.find((act) => act.kind === "fail");
  return { step: entry, times: failing?.options.times ?? 1 };
}

function refuse(owner: string, reason: string): never {
  throw new RejectedError("INVALID_ARGUMENT", `The script of ${owner} cannot be played: ${reason}.`, {
    argument: "scripts",
    script: owner,
  });
}
