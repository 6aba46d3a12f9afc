/** Drives one session of a native adapter for the conformance suite: its conversation, and the turns that are asked of it. */
import assert from "node:assert/strict";
import { EFFECTS } from "../protocol/agent.ts";
import { DEFAULT_LIMITS } from "../protocol/limits.ts";
import { systemClock } from "../platform/clock.ts";
import { unregisteredProcesses } from "../platform/process-group.ts";
import type { NativeEvent, NativeThread, NativeTurn } from "../protocol/native-events.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import type { NativeAdapter, NativeSession } from "../providers/port.ts";

const LOOK = {
  name: "look",
  description: "Looks at one thing.",
  parameters: {
    type: "object",
    properties: { at: { type: "string" } },
    required: ["at"],
    additionalProperties: false,
  },
  effects: [],
} as const;

/** What a provider's process has to end in; far above what one takes. */
const GRACE_MS = 10_000;

type NamedTurn = NativeTurn & { readonly ref: NativeRef };

/** One session, its conversation, and the turns that were asked of it. */
export class Driver {
  readonly session: NativeSession;
  readonly thread: NativeThread;
  readonly #events: AsyncIterator<NativeEvent>;
  #turns = 0;

  private constructor(session: NativeSession, thread: NativeThread) {
    this.session = session;
    this.thread = thread;
    this.#events = session.events()[Symbol.asyncIterator]();
  }

  static async open(adapter: NativeAdapter, resumed?: NativeRef): Promise<Driver> {
    const session = await adapter.openSession({
      treeId: "thread_conformance",
      threadId: "thread_conformance",
      path: "/root",
      model: null,
      workspace: null,
      instructions: null,
      effects: EFFECTS,
      tools: [LOOK],
      transportWaitMs: DEFAULT_LIMITS.transportWaitMs,
      startProcess: unregisteredProcesses(systemClock, GRACE_MS),
    });
    const thread =
      resumed === undefined
        ? await session.ensureThread({ model: null, effort: null })
        : await session.resumeThread(resumed);
    return new Driver(session, thread);
  }

  get can(): ThreadCapabilities {
    return this.session.negotiated;
  }

  start(userMessage: string): Promise<unknown> {
    this.#turns += 1;
    return this.session.startTurn({
      thread: this.thread.ref,
      key: `turn-${this.#turns}`,
      userMessage,
      preambles: [],
      policy: { model: null, effort: null, effects: EFFECTS, workspace: null, maxOutputTokens: null },
      signal: new AbortController().signal,
    });
  }

  /** The events of a turn up to its end. */
  async turn(
    userMessage: string,
    hear: (event: NativeEvent) => Promise<void> = async () => {},
  ): Promise<NativeEvent[]> {
    const started = this.start(userMessage);
    // Told by the events when it is the provider that has gone.
    started.catch(() => undefined);
    const events: NativeEvent[] = [];
    for (;;) {
      const next = await this.#events.next();
      assert.equal(next.done ?? false, false, "the events ended before the turn did");
      const event = next.value as NativeEvent;
      events.push(event);
      await hear(event);
      if (event.type === "turn.terminal") return events;
    }
  }

  async threeTurns(): Promise<readonly NamedTurn[]> {
    const turns: NamedTurn[] = [];
    for (const ordinal of [1, 2, 3]) {
      const { turn } = terminalOf(await this.turn(`message ${ordinal}`));
      assert.ok(turn !== null, "the turn has no name at its end");
      turns.push({ ordinal, ref: turn });
    }
    return turns;
  }

  /** Nothing of a refused turn is told: the session's end is what comes next. */
  async nothingComes(): Promise<void> {
    await this.session.close();
    assert.equal((await this.#events.next()).done, true);
  }
}

export function terminalOf(events: readonly NativeEvent[]) {
  const last = events.at(-1);
  assert.ok(last?.type === "turn.terminal", "the turn has not ended");
  return last;
}
