/**
 * Named gates: places where a scripted agent, a tool or a test's own code waits until it is let through. They replace every
 * sleep in a test: the test awaits the arrival, looks, and opens.
 *
 * - G1 A gate exists as soon as it is named and is closed until it is opened; an open gate holds nobody.
 * - G2 Those who wait go through in the order in which they arrived.
 */
import { z } from "zod";
import { check } from "../../platform/check.ts";

/** Places at which scripted agents wait until a test lets them pass. */
export interface Gates {
  /** Opens a gate for good: for those who wait and for all who come. */
  open(name: string): void;
  /** Lets the given number of those who wait through, all when none is given, and stays closed. */
  letThrough(name: string, count?: number): void;
  close(name: string): void;
  /** Opens every gate, those not yet named too. */
  openAll(): void;
  /** Resolves when at least this many arrivals have happened since the gate exists. */
  arrived(name: string, count?: number): Promise<void>;
  /** How many wait there now. */
  waiting(name: string): number;
  /** Waits there; rejects with the signal's reason when it is aborted first. */
  pass(name: string, signal?: AbortSignal): Promise<void>;
  /** Gates with somebody waiting, for messages. */
  occupied(): readonly string[];
}

interface Gate {
  open: boolean;
  arrivals: number;
  readonly waiting: Set<() => void>;
  readonly watchers: Set<() => void>;
}

const counts = z.strictObject({ count: z.number().int().nonnegative().optional() });

/** Makes gates, all of them closed. */
export function createGates(): Gates {
  const gates = new Map<string, Gate>();
  let allOpen = false;
  const named = (name: string): Gate => {
    let gate = gates.get(name);
    if (gate === undefined) {
      check("a gate", z.string().min(1, "A gate needs a name; give one"), name);
      gate = { open: allOpen, arrivals: 0, waiting: new Set(), watchers: new Set() };
      gates.set(name, gate);
    }
    return gate;
  };
  const letThrough = (name: string, count?: number): void => {
    check("letThrough", counts, { count });
    const { waiting } = named(name);
    for (const go of [...waiting].slice(0, count)) go();
  };
  const open = (name: string): void => {
    named(name).open = true;
    letThrough(name);
  };
  return {
    open,
    letThrough,
    close: (name) => {
      named(name).open = false;
    },
    openAll() {
      allOpen = true;
      for (const name of gates.keys()) open(name);
    },
    arrived(name, count = 1) {
      check("arrived", counts, { count });
      const gate = named(name);
      return new Promise((resolve) => {
        const look = (): void => {
          if (gate.arrivals < count) return;
          gate.watchers.delete(look);
          resolve();
        };
        gate.watchers.add(look);
        look();
      });
    },
    waiting: (name) => named(name).waiting.size,
    pass(name, signal) {
      const gate = named(name);
      return new Promise((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(signal.reason as Error);
          return;
        }
        const leave = (): void => {
          gate.waiting.delete(go);
          signal?.removeEventListener("abort", onAbort);
        };
        const go = (): void => {
          leave();
          resolve();
        };
        const onAbort = (): void => {
          leave();
          reject(signal!.reason as Error);
        };
        gate.waiting.add(go);
        signal?.addEventListener("abort", onAbort, { once: true });
        gate.arrivals += 1;
        for (const look of gate.watchers) look();
        if (gate.open) go();
      });
    },
    occupied: () => [...gates].filter(([, { waiting }]) => waiting.size > 0).map(([name]) => name),
  };
}
