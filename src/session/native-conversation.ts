/**
 * A native session as one agent's: its conversation, the turn under way, and the events that come of it. It lives as long as
 * the agent is loaded, so a turn goes on while its run waits and is not driven.
 *
 * - N1 Events are taken one by one, by whoever drives the run; what nobody has taken yet stays.
 * - N2 A session that is gone, or has not ended its turn in time, is replaced before another turn begins.
 */
import type { RunId } from "../protocol/ids.ts";
import type { NativeEvent, NativeRequest, NativeThread } from "../protocol/native-events.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import type { NativeSession } from "../providers/port.ts";
import { asProviderFailure } from "./native-failure.ts";
import type { NativeThreadHandle, NextInput } from "./ports.ts";
import { Response } from "./response.ts";

const IGNORE = (): void => undefined;

/** The events of one session. */
export class EventSource {
  readonly #events: AsyncIterator<NativeEvent>;
  #coming: Promise<NativeEvent | null> | null = null;
  /** The next event is there, or there will be none. */
  ready = false;
  /** The provider is gone. */
  over = false;

  constructor(session: NativeSession) {
    this.#events = session.events()[Symbol.asyncIterator]();
    // Listened to from the start: a provider that is gone while nothing runs is found out before it is asked.
    void this.next();
  }

  /** The next event, the same until it is taken; null at the end. */
  next(): Promise<NativeEvent | null> {
    if (this.#coming !== null) return this.#coming;
    const coming = this.#events.next().then(
      ({ done, value }) => (done === true ? null : value),
      (error: unknown) => Promise.reject(asProviderFailure(error) as Error),
    );
    const settled = (over: boolean): void => {
      if (this.#coming === coming) this.ready = true;
      this.over ||= over;
    };
    coming.then(
      (event) => settled(event === null),
      () => settled(true),
    );
    this.#coming = coming;
    return coming;
  }

  take(): void {
    this.#coming = null;
    this.ready = false;
    void this.next();
  }
}

/** A turn that was asked for and is not over. */
export class OpenTurn {
  readonly key: string;
  readonly runId: RunId;
  readonly thread: NativeThreadHandle;
  readonly input: NextInput;
  /** The last one that its run may have, in which nothing is called any more (RUN-3). */
  readonly wrapUp: boolean;
  /** Rejects when the provider has refused it; never resolves. */
  readonly refused: Promise<never>;
  readonly refuse: (error: unknown) => void;
  accepted = false;
  ref: NativeRef | null = null;
  /** What it has said since the last step that was stored. */
  step = new Response();
  /** That holds a text which is whole. */
  wholeText = false;
  /** Requests that wait for `respond`, by call id. */
  readonly asked = new Map<string, NativeRequest>();
  /** Calls that were begun. */
  readonly started = new Set<string>();
  /** Events that came while a call was open: what a step asked for is stored with its results first. */
  readonly held: NativeEvent[] = [];
  /** It is cut off for a limit of its run: nothing of it is stored any more. */
  cut = false;
  /** Newest mail that was there when mail was last looked for. */
  seen: number;

  constructor(given: Pick<OpenTurn, "key" | "runId" | "thread" | "input" | "wrapUp" | "seen">) {
    this.key = given.key;
    this.runId = given.runId;
    this.thread = given.thread;
    this.input = given.input;
    this.wrapUp = given.wrapUp;
    this.seen = given.seen;
    const refused = Promise.withResolvers<never>();
    refused.promise.catch(IGNORE);
    this.refused = refused.promise;
    this.refuse = refused.reject;
  }
}

export class NativeConversation {
  readonly loop = "theirs";
  session: NativeSession;
  source: EventSource;
  thread: NativeThreadHandle | null = null;
  /** Made, and no run was accepted in it. */
  unused: NativeThread | null = null;
  turn: OpenTurn | null = null;
  #closed = false;
  turns = 0;
  /** Transcript items that the provider's conversation has taken in or given; what comes after them is told first. */
  told = 0;

  constructor(session: NativeSession) {
    this.session = session;
    this.source = new EventSource(session);
  }

  /** The session cannot be used for another turn: its provider is gone, or has not ended the last one. */
  get spent(): boolean {
    return this.#closed || this.source.over || this.turn !== null;
  }

  replace(session: NativeSession): void {
    if (!this.#closed) this.close().catch(IGNORE);
    this.session = session;
    this.source = new EventSource(session);
    this.thread = null;
    this.unused = null;
    this.turn = null;
    this.#closed = false;
  }

  /**
   * Stops the turn under way, and resolves when it is over; null when there is none. How long that may last is for those to
   * say who wait for it (INT-3).
   */
  stop(): Promise<void> | null {
    const { turn } = this;
    if (turn === null || this.#closed) return null;
    this.session.interruptTurn(turn.thread.thread.ref, turn.key).catch(IGNORE);
    return this.#untilOver(turn, this.source);
  }

  async #untilOver(turn: OpenTurn, source: EventSource): Promise<void> {
    try {
      for (;;) {
        const event = await Promise.race([source.next(), turn.accepted ? NEVER : turn.refused]);
        source.take();
        if (event === null) break;
        if (event.key !== turn.key) continue;
        turn.accepted = true;
        if (event.type === "turn.terminal") break;
      }
    } catch {
      // Refused, or gone with its session; the next turn finds out which.
    }
    if (this.turn === turn) this.turn = null;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.session.close();
  }
}

const NEVER = new Promise<never>(IGNORE);
