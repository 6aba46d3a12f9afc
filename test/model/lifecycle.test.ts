/**
 * The lifecycle of a session as a model: every simple path through the machine is driven against the table and against
 * the real actor, and both must agree with the machine in every state, for every event (L1 to L3 of
 * `session/lifecycle.ts`).
 */
import { createActor } from "xstate";
import { getSimplePaths } from "xstate/graph";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../../src/protocol/errors.ts";
import {
  createLifecycle,
  LIFECYCLE_EVENTS,
  LIFECYCLE_STATES,
  LIFECYCLE_TABLE,
  type Lifecycle,
  type LifecycleEvent,
  type LifecycleState,
  nextState,
  type SessionInspection,
} from "../../src/session/lifecycle.ts";
import { lifecycleMachine } from "../../src/session/lifecycle-machine.ts";

const paths = getSimplePaths(lifecycleMachine, {
  events: LIFECYCLE_EVENTS.map((type) => ({ type })),
}).map((path) => path.steps.map((step) => step.event.type).filter((type) => isEvent(type)));

/** Simple paths never come back to a state: each is also gone one step further, in every way that there is. */
const walks = paths.flatMap((path) => [
  path,
  ...LIFECYCLE_EVENTS.filter((event) => LIFECYCLE_TABLE[drive(path)][event] !== undefined).map((event) => [
    ...path,
    event,
  ]),
]);

const forms: readonly (readonly [string, () => Lifecycle])[] = [
  ["the table", () => createLifecycle("thread_1")],
  ["the actor", () => createLifecycle("thread_1", () => undefined)],
];

describe("L1 the machine", () => {
  const nodes = Object.values(lifecycleMachine.states);

  test("has the states that are declared, flat, and begins unloaded", () => {
    expect(nodes.map((node) => node.key)).toEqual([...LIFECYCLE_STATES]);
    expect(nodes.filter((node) => node.type !== "atomic")).toEqual([]);
    expect(createActor(lifecycleMachine).getSnapshot().value).toBe("unloaded");
  });

  test("has no guard, no delay, no `always` and no action, and one answer to each event", () => {
    for (const node of nodes) {
      expect(node.always ?? []).toEqual([]);
      expect(node.after).toEqual([]);
      expect([...node.entry, ...node.exit, ...node.invoke]).toEqual([]);
      for (const [event, transitions] of node.transitions) {
        expect(LIFECYCLE_EVENTS).toContain(event);
        expect(transitions).toHaveLength(1);
        const [{ guard, actions, target, reenter }] = transitions as [(typeof transitions)[number]];
        expect([guard, actions, reenter]).toEqual([undefined, [], false]);
        expect(target).toHaveLength(1);
      }
    }
  });

  test("reaches every state and uses every event", () => {
    expect(new Set(paths.map((path) => drive(path))).size).toBe(LIFECYCLE_STATES.length);
    expect(new Set(walks.flat())).toEqual(new Set(LIFECYCLE_EVENTS));
  });
});

describe.each(forms)("%s", (_, create) => {
  test("L3 follows the machine along every simple path, and one step further", () => {
    expect(paths.length).toBeGreaterThanOrEqual(LIFECYCLE_STATES.length);
    for (const path of walks) {
      const lifecycle = create();
      const machine = createActor(lifecycleMachine).start();
      const trail: string[] = [];
      for (const type of path) {
        lifecycle.send(type);
        machine.send({ type });
        trail.push(`${type} → ${lifecycle.state}`);
        const seen = {
          trail,
          state: lifecycle.state,
          can: LIFECYCLE_EVENTS.filter((one) => lifecycle.can(one)),
        };
        const now = machine.getSnapshot();
        const can = LIFECYCLE_EVENTS.filter((one) => now.can({ type: one }));
        expect(seen).toEqual({ trail, state: now.value, can });
      }
    }
  });

  test("L2 refuses what has no entry, says what it was, and stays where it is", () => {
    let refused = 0;
    for (const state of LIFECYCLE_STATES) {
      for (const event of LIFECYCLE_EVENTS) {
        const lifecycle = create();
        for (const type of pathTo(state)) lifecycle.send(type);
        expect(lifecycle.state).toBe(state);
        const target = LIFECYCLE_TABLE[state][event];
        expect(lifecycle.can(event)).toBe(target !== undefined);
        if (target !== undefined) {
          lifecycle.send(event);
          expect(lifecycle.state).toBe(target);
          continue;
        }
        refused += 1;
        expect(() => lifecycle.send(event)).toThrow(InvariantError);
        expect(() => lifecycle.send(event)).toThrow(
          expect.objectContaining({ code: "ILLEGAL_TRANSITION", details: { state, event } }),
        );
        expect(lifecycle.state).toBe(state);
      }
    }
    expect(refused).toBeGreaterThan(80);
  });
});

test("L3 the table has the transitions of the machine, and no others", () => {
  for (const state of LIFECYCLE_STATES) {
    const snapshot = lifecycleMachine.resolveState({ value: state });
    const row = Object.fromEntries(
      LIFECYCLE_EVENTS.flatMap((type) => {
        const actor = createActor(lifecycleMachine, { snapshot }).start();
        if (!actor.getSnapshot().can({ type })) return [];
        actor.send({ type });
        return [[type, actor.getSnapshot().value]];
      }),
    );
    expect(LIFECYCLE_TABLE[state]).toEqual(row);
  }
});

test("L3 an inspected lifecycle shows each event and each state under the name it was given", () => {
  const path = pathTo("interrupting");
  const seen: SessionInspection[] = [];
  const lifecycle = createLifecycle("thread_7", (event) => seen.push(event));
  for (const type of path) lifecycle.send(type);
  const ids = seen.map((event) => event.actorRef.id);
  expect(new Set(ids)).toEqual(new Set(["thread_7"]));
  const events = seen.flatMap((event) => (event.type === "@xstate.event" ? [event.event!.type] : []));
  expect(events.filter((type) => isEvent(type))).toEqual(path);
  const states = seen.flatMap((event) =>
    event.type === "@xstate.snapshot" ? [(event.snapshot as { readonly value: string }).value] : [],
  );
  let state: LifecycleState = "unloaded";
  const expected = path.map((type) => (state = nextState(state, type)));
  expect(states.slice(-expected.length)).toEqual(expected);
});

/** The state behind a path, by the table alone. */
function drive(path: readonly LifecycleEvent[]): LifecycleState {
  let state: LifecycleState = "unloaded";
  for (const event of path) state = nextState(state, event);
  return state;
}

function pathTo(state: LifecycleState): readonly LifecycleEvent[] {
  const found = paths.filter((path) => drive(path) === state).toSorted((a, b) => a.length - b.length)[0];
  if (found === undefined) throw new Error(`no path leads to ${state}`);
  return found;
}

function isEvent(type: string): type is LifecycleEvent {
  return LIFECYCLE_EVENTS.some((event) => event === type);
}
