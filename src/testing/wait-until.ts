/**
 * Waiting in tests, bounded by steps and never by a time-out: it ends as soon as the condition holds and fails after a fixed
 * number of looks, however fast the machine is.
 */
import { z } from "zod";
import { check, functionOf, optionsOf } from "../platform/check.ts";
import { turn } from "./virtual-clock.ts";

/** How a condition is waited for. */
export interface WaitUntilOptions {
  /** Looks before it fails; 1,000 unless given. */
  readonly steps?: number;
  /** What happens between two looks; a turn of the event loop unless given, such as `() => clock.advance(100)`. */
  readonly step?: () => Promise<unknown>;
  /** State for the message when it fails. */
  readonly dump?: () => unknown;
}

const waitUntilArguments = z.strictObject({
  description: z.string(),
  condition: functionOf<() => boolean | Promise<boolean>>("is no function; give the condition as one"),
  options: optionsOf<WaitUntilOptions>({
    steps: z.number().int().nonnegative().optional(),
    step: functionOf<() => Promise<unknown>>("is no function").optional(),
    dump: functionOf<() => unknown>("is no function").optional(),
  }),
});

/** Resolves when the condition holds. @throws Error that names what was awaited and holds the dump. */
export async function waitUntil(
  description: string,
  condition: () => boolean | Promise<boolean>,
  options: WaitUntilOptions = {},
): Promise<void> {
  check("waitUntil", waitUntilArguments, { description, condition, options });
  const { steps = 1000, step = turn, dump } = options;
  for (let look = 0; look < steps; look += 1) {
    if (await condition()) return;
    await step();
  }
  if (await condition()) return;
  const state = dump === undefined ? "" : `\n${describe(dump())}`;
  throw new Error(`Not within ${steps} steps: ${description}${state}`);
}

function describe(state: unknown): string {
  return typeof state === "string" ? state : JSON.stringify(state, null, 2);
}
