/**
 * The lifecycle of a session as one flat xstate machine: the source of the table that sessions use (`lifecycle.ts`).
 *
 * - L1 No guards, no delayed and no `always` transitions: a pair of state and event has one answer.
 */
import { createMachine } from "xstate";
import type { LifecycleEvent } from "./lifecycle.ts";

export const lifecycleMachine = createMachine({
  id: "session",
  types: {} as { events: { type: LifecycleEvent } },
  initial: "unloaded",
  states: {
    unloaded: { on: { LOAD: "loading", CLOSE: "closed" } },
    loading: { on: { LOADED: "idle", LOAD_FAILED: "unloaded", CLOSE: "closed" } },
    idle: { on: { RESERVE: "reserved", WAIT: "waiting", UNLOAD: "unloading", CLOSE: "closed" } },
    reserved: {
      on: { ACCEPT: "running", WAIT: "waiting", SETTLE: "idle", INTERRUPT: "interrupting", CLOSE: "closed" },
    },
    running: { on: { WAIT: "waiting", SETTLE: "idle", INTERRUPT: "interrupting", CLOSE: "closed" } },
    waiting: {
      on: {
        RESUME: "running",
        SETTLE: "idle",
        INTERRUPT: "interrupting",
        UNLOAD: "unloading",
        CLOSE: "closed",
      },
    },
    // Settled in the store; what ignores the abort signal has the grace time to end.
    interrupting: { on: { DRAINED: "idle", CLOSE: "closed" } },
    unloading: { on: { UNLOADED: "unloaded", KEEP: "idle", WAIT: "waiting", CLOSE: "closed" } },
    closed: {},
  },
});
