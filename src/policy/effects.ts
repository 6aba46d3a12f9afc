/**
 * The arithmetic of effects (POL-1): what an agent may do to the world is at most what each of its ancestors may. The
 * ceiling is this set, never a list of tools.
 *
 * - F1 Results are in the order of `EFFECTS`, without doubles, so that equal sets are equal data.
 * - F2 Nothing here adds an effect to a ceiling.
 */
import { type Effect, EFFECTS, effectsOf } from "../protocol/agent.ts";

/** A tool and the effects it declares. */
export interface ToolDeclaration {
  readonly name: string;
  readonly effects?: readonly Effect[];
}

/** What all of the given sets allow; everything when none is given. */
export function narrow(...sets: readonly (readonly Effect[])[]): readonly Effect[] {
  return EFFECTS.filter((effect) => sets.every((set) => set.includes(effect)));
}

export function within(asked: readonly Effect[], ceiling: readonly Effect[]): boolean {
  return asked.every((effect) => ceiling.includes(effect));
}

/** The asked effects cut down to a ceiling, and what was cut off. */
export function clip(
  asked: readonly Effect[],
  ceiling: readonly Effect[],
): { readonly granted: readonly Effect[]; readonly denied: readonly Effect[] } {
  return {
    granted: narrow(asked, ceiling),
    denied: EFFECTS.filter((effect) => asked.includes(effect) && !ceiling.includes(effect)),
  };
}

/** The names of the tools that a ceiling allows, in the order given. */
export function toolsWithin(
  tools: readonly ToolDeclaration[],
  ceiling: readonly Effect[],
): readonly string[] {
  return tools.filter((tool) => within(effectsOf(tool), ceiling)).map(({ name }) => name);
}
