/**
 * A process under the seeded scheduler: the clock, the holds and the wrappers through which everything it waits for becomes a
 * choice. Killing it throws away its choices and timers, so that no line of it runs again, as after `kill -9`; what it shares
 * with others, such as a store, belongs to a process of its own.
 */
import type { Clock, Timer } from "../platform/clock.ts";
import type { ToolHost } from "../protocol/tool.ts";
import type { NativeAdapter, OwnLoopAdapter, ProviderSession } from "../providers/port.ts";
import { holdNative } from "./scheduler-native.ts";
import type { TimerQueue } from "./virtual-clock.ts";

/** Something that may happen. */
export interface Choice {
  readonly owner: SimulatedProcess;
  readonly label: string;
  readonly callback: () => void;
}

export interface SetTimer extends Choice {
  readonly at: number;
}

export type ProcessState = "running" | "frozen" | "killed";

export interface SimulatedProcess {
  readonly name: string;
  /** Time of the scheduler; its timers and what it defers are choices. */
  readonly clock: Clock;
  readonly state: () => ProcessState;
  /** A choice that runs the callback when it is taken. */
  readonly offer: (label: string, callback: () => void) => void;
  /** Resolves when the scheduler chooses it. */
  readonly hold: (label: string) => Promise<void>;
  /** The function with a hold before it and one before its result, or its failure, is seen. */
  wrap<A extends readonly unknown[], R>(
    label: string,
    run: (...input: A) => Promise<R>,
  ): (...input: A) => Promise<R>;
  /** The provider with a hold before each request and each event. */
  wrapProvider(adapter: OwnLoopAdapter): OwnLoopAdapter;
  /** A provider that owns its loop, with a hold before and after each call and before each event. */
  wrapNative(adapter: NativeAdapter): NativeAdapter;
  /** The tools with a hold before each call and each outcome. */
  wrapTools(host: ToolHost): ToolHost;
  /** Nothing of it happens any more; not undone by `thaw`. */
  readonly kill: () => void;
  /** Nothing of it happens until `thaw`; its timers become late. */
  readonly freeze: () => void;
  readonly thaw: () => void;
}

/** What processes share with their scheduler. */
export interface ProcessGround {
  readonly choices: Choice[];
  readonly timers: TimerQueue<SetTimer>;
  readonly now: () => number;
  readonly start: number;
}

export function createProcess(name: string, ground: ProcessGround): SimulatedProcess {
  const { choices, timers, now, start } = ground;
  let state: ProcessState = "running";

  const offer = (label: string, callback: () => void): void => {
    if (state !== "killed") choices.push({ owner: self, label: `${name}: ${label}`, callback });
  };
  const hold = (label: string): Promise<void> => new Promise((resolve) => offer(label, resolve));
  const setTimer = (ms: number, callback: () => void): Timer => {
    if (state === "killed") return { cancel: () => {} };
    return timers.add({ owner: self, label: `${name}: timer`, callback, at: now() + Math.max(0, ms) });
  };
  const wrap =
    <A extends readonly unknown[], R>(label: string, run: (...input: A) => Promise<R>) =>
    async (...input: A): Promise<R> => {
      await hold(label);
      try {
        const result = await run(...input);
        await hold(`${label} done`);
        return result;
      } catch (error) {
        await hold(`${label} failed`);
        throw error;
      }
    };

  const self: SimulatedProcess = {
    name,
    clock: {
      now,
      monotonic: () => now() - start,
      setTimer,
      defer: (callback) => offer("deferred", callback),
    },
    state: () => state,
    offer,
    hold,
    wrap,
    wrapProvider: (adapter) => ({
      ...adapter,
      openSession: async (input) => {
        await hold(`${input.path} opens`);
        return heldSession(await adapter.openSession(input), hold);
      },
    }),
    wrapNative: (adapter) => holdNative(adapter, hold),
    wrapTools: (host) => ({
      specs: (agent, tree) => host.specs(agent, tree),
      execute: (call, context) =>
        wrap(`${context.agent.path} ${call.name}`, () => host.execute(call, context))(),
    }),
    kill() {
      state = "killed";
      const others = choices.filter(({ owner }) => owner !== self);
      choices.splice(0, choices.length, ...others);
      for (const timer of timers.all().filter(({ owner }) => owner === self)) timers.remove(timer);
    },
    freeze() {
      if (state === "running") state = "frozen";
    },
    thaw() {
      if (state === "frozen") state = "running";
    },
  };
  return self;
}

function heldSession(session: ProviderSession, hold: (label: string) => Promise<void>): ProviderSession {
  return {
    async *step(request, signal) {
      await hold(`${request.path} asks`);
      const events = session.step(request, signal)[Symbol.asyncIterator]();
      try {
        for (;;) {
          const next = await events.next().catch(async (error: unknown) => {
            await hold(`${request.path} fails`);
            throw error;
          });
          if (next.done === true) return;
          await hold(`${request.path} ${next.value.type}`);
          yield next.value;
        }
      } finally {
        await events.return?.();
      }
    },
    close: () => session.close(),
  };
}
