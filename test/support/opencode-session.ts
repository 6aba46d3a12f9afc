/** A session with the server of `opencode-server.mjs`, and its turns. */
import { expect, onTestFinished } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { unregisteredProcesses } from "../../src/platform/process-group.ts";
import { EFFECTS } from "../../src/protocol/agent.ts";
import type { NativeAnswer, NativeEvent } from "../../src/protocol/native-events.ts";
import type { OpenCodeOptions } from "../../src/providers/opencode/opencode-provider.ts";
import type { NativePolicy, NativeSession, NativeSessionInput } from "../../src/providers/port.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type FakeOpenCode, fakeOpenCode } from "./opencode.ts";

export const until = (what: string, there: () => boolean) => waitUntil(what, there, { steps: 200_000 });
/** What it fails with. */
export const failure = (pending: Promise<unknown>): Promise<unknown> =>
  pending.then(
    () => expect.unreachable("it did not fail"),
    (error: unknown) => error,
  );

export const decide = (verdict: "approved" | "denied", note: string | null = null): NativeAnswer => ({
  kind: "decision",
  decision: { verdict, note },
});

const LOOK = { name: "look", description: "Looks.", parameters: { type: "object" }, effects: [] };
export const INPUT: NativeSessionInput = {
  treeId: "tree",
  threadId: "thread",
  path: "/root",
  model: null,
  workspace: null,
  instructions: null,
  effects: EFFECTS,
  tools: [LOOK],
  transportWaitMs: 45_000,
  startProcess: unregisteredProcesses(systemClock, 2_000),
};
const POLICY: NativePolicy = {
  model: null,
  effort: null,
  effects: EFFECTS,
  workspace: null,
  maxOutputTokens: null,
};

/** A session of an adapter whose server has these ways, with a conversation. */
export async function open(
  ways: object = {},
  options: Partial<OpenCodeOptions> = {},
  input: Partial<NativeSessionInput> = {},
) {
  const server: FakeOpenCode = fakeOpenCode();
  const session: NativeSession = await server.adapter(ways, options).openSession({ ...INPUT, ...input });
  onTestFinished(() => session.close());
  const events = session.events()[Symbol.asyncIterator]();
  const thread = await session.ensureThread({ model: null, effort: null });
  let key = 0;
  const start = (steps: readonly object[], policy: Partial<NativePolicy> = {}) =>
    session.startTurn({
      thread: thread.ref,
      key: `t${(key += 1)}`,
      userMessage: `go <<${JSON.stringify(steps)}>>`,
      preambles: [{ kind: "note", channel: "synthetic_user", text: "the note" }],
      policy: { ...POLICY, ...policy },
      signal: new AbortController().signal,
    });
  /** The events of one turn. */
  const turn = async (
    steps: readonly object[],
    hear: (event: NativeEvent) => Promise<void> = async () => undefined,
    policy: Partial<NativePolicy> = {},
  ): Promise<NativeEvent[]> => {
    const told: NativeEvent[] = [];
    start(steps, policy).catch(() => undefined);
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) throw new Error("the events have ended");
      told.push(value);
      await hear(value);
      if (value.type === "turn.terminal") return told;
    }
  };
  return { server, session, thread, events, start, turn };
}
