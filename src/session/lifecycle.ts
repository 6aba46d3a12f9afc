/**
 * The lifecycle of a session (runtime.md, "Words of state"). The machine's transition table is derived once at load and
 * sessions use the table. What is done at a transition stands beside the call, not in the machine. No type of xstate is
 * part of what this file exports, so that a program's compiler needs none.
 *
 * - L2 An absent entry is an `ILLEGAL_TRANSITION`, a bug and never a refusal.
 * - L3 With `inspect`, loaded sessions run as real actors of the same machine; a test holds both equal.
 */
import { createActor, getNextTransitions } from "xstate";
import { InvariantError } from "../protocol/errors.ts";
import { lifecycleMachine } from "./lifecycle-machine.ts";

export const LIFECYCLE_STATES = [
  "unloaded",
  "loading",
  "idle",
  "reserved",
  "running",
  "waiting",
  "interrupting",
  "unloading",
  "closed",
] as const;
export type LifecycleState = (typeof LIFECYCLE_STATES)[number];

export const LIFECYCLE_EVENTS = [
  "LOAD",
  "LOADED",
  "LOAD_FAILED",
  "RESERVE",
  "ACCEPT",
  "WAIT",
  "RESUME",
  "SETTLE",
  "INTERRUPT",
  "DRAINED",
  "UNLOAD",
  "KEEP",
  "UNLOADED",
  "CLOSE",
] as const;
export type LifecycleEvent = (typeof LIFECYCLE_EVENTS)[number];

type Table = Readonly<Record<LifecycleState, Readonly<Partial<Record<LifecycleEvent, LifecycleState>>>>>;

/** Walks the machine once and writes down where every event leads. */
function deriveTable(): Table {
  const table = {} as Record<LifecycleState, Partial<Record<LifecycleEvent, LifecycleState>>>;
  for (const state of LIFECYCLE_STATES) {
    const snapshot = lifecycleMachine.resolveState({ value: state });
    const row: Partial<Record<LifecycleEvent, LifecycleState>> = {};
    for (const transition of getNextTransitions(snapshot)) {
      const target = transition.target?.[0];
      if (target !== undefined) row[transition.eventType as LifecycleEvent] = target.key as LifecycleState;
    }
    table[state] = row;
  }
  return table;
}

export const LIFECYCLE_TABLE: Table = deriveTable();

/** One of xstate's inspection events, by what it has in any of its forms. */
export interface SessionInspection {
  /** `@xstate.actor` for a load, `@xstate.event` before a transition, `@xstate.snapshot` after it; xstate has more. */
  readonly type: string;
  readonly rootId: string;
  /** `id` is the thread id. */
  readonly actorRef: { readonly sessionId: string; readonly id?: string };
  readonly event?: { readonly type: string };
  readonly snapshot?: unknown;
}

interface Inspector {
  next?(event: SessionInspection): void;
}

/** A function, or an observer: xstate's own inspectors fit. */
export type Inspect = Inspector | Required<Inspector>["next"];

/** The state of one session. */
export interface Lifecycle {
  readonly state: LifecycleState;
  /** @throws InvariantError `ILLEGAL_TRANSITION` where the table has no entry. */
  send(event: LifecycleEvent): void;
  can(event: LifecycleEvent): boolean;
}

class TableLifecycle implements Lifecycle {
  state: LifecycleState = "unloaded";

  send(event: LifecycleEvent): void {
    this.state = nextState(this.state, event);
  }

  can(event: LifecycleEvent): boolean {
    return LIFECYCLE_TABLE[this.state][event] !== undefined;
  }
}

export function nextState(state: LifecycleState, event: LifecycleEvent): LifecycleState {
  const next = LIFECYCLE_TABLE[state][event];
  if (next === undefined) {
    throw new InvariantError(
      `a session in state ${state} has no transition for ${event}`,
      { state, event },
      "ILLEGAL_TRANSITION",
    );
  }
  return next;
}

/** A table lookup, or a real actor when somebody inspects. `id` names it to the inspector. */
export function createLifecycle(id: string, inspect?: Inspect): Lifecycle {
  if (inspect === undefined) return new TableLifecycle();
  const actor = createActor(lifecycleMachine, { id, inspect: guarded(inspect) }).start();
  const current = (): LifecycleState => actor.getSnapshot().value as LifecycleState;
  return {
    get state() {
      return current();
    },
    send(event) {
      nextState(current(), event);
      actor.send({ type: event });
    },
    can: (event) => actor.getSnapshot().can({ type: event }),
  };
}

/** An inspector that throws is told no less, and disturbs nobody (OBS-4). */
function guarded(inspect: Inspect): (event: SessionInspection) => void {
  return (event) => {
    try {
      if (typeof inspect === "function") inspect(event);
      else inspect.next?.(event);
    } catch {
      // An observer's fault is its own.
    }
  };
}
