/**
 * What an agent may do to the world, by the modes of its program (POL-2). The protocol has no sandbox: what a mode keeps from
 * an agent is known to whoever has set up the program, and told as a table.
 *
 * - C1 An agent of less than all effects gets the mode that gives it most and nothing more. Where there is none, it is refused.
 * - C2 In such a mode nothing is asked for: a yes would widen the policy.
 */
import { type Effect, EFFECTS } from "../../protocol/agent.ts";

/** Modes of a program, and what an agent can do in fact in each. */
export type AcpModes = Readonly<Record<string, readonly Effect[]>>;

export interface AcpPolicy {
  /** Null to leave the mode as it is. */
  readonly mode: string | null;
  readonly asks: boolean;
  readonly effects: readonly Effect[];
}

/** `mode`: that of agents with all effects. */
export function policyOf(effects: readonly Effect[], mode: string | null, modes: AcpModes): AcpPolicy {
  const all = { mode, asks: true, effects: EFFECTS };
  if (EFFECTS.every((one) => effects.includes(one))) return all;
  const [best] = Object.entries(modes)
    .filter(([, can]) => can.every((one) => effects.includes(one)))
    .toSorted(([, one], [, other]) => other.length - one.length);
  return best === undefined ? all : { mode: best[0], asks: false, effects: best[1] };
}
