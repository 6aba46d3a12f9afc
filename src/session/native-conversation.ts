/**
 * A native session as one agent's: its conversation, the turn under way, and the events that come of it. It lives as long as
 * the agent is loaded, so a turn goes on while its run waits and is not driven.
 *
 * - N1 Events are taken one by one, by whoever drives the run; what nobody has taken yet stays.
 * - N2 A session that is gone, or has not ended its turn in time, is replaced before another turn begins.
 */
import type { MailId, RunId } from "../protocol/ids.ts";
import type { NativeEvent, NativeRequest, NativeThread } from "../protocol/native-events.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import { named } from "../providers/native-names.ts";
import type { NativeSelection, NativeSession } from "../providers/port.ts";
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

/** What a turn says and does; it waits for the results of the calls before it. */
export type HeldEvent = Extract<NativeEvent, { type: "delta" | "item" }>;

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
  /** Aborted before its provider was told of it. */
  unsent = false;
  ref: NativeRef | null = null;
  /** What it has said since the last step that was stored. */
  step = new Response();
  /** That holds a text which is whole. */
  wholeText = false;
  /** Requests that wait for `respond`, by call id. */
  readonly asked = new Map<string, NativeRequest>();
  /** Calls and questions that it has asked for. */
  readonly known = new Set<string>();
  /** Calls that were begun. */
  readonly started = new Set<string>();
  /** An event has told what it uses. */
  reported = false;
  /** Events that came while a call was open: what a step asked for is stored with its results first. */
  readonly held: HeldEvent[] = [];
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
  /** What the session was opened for. */
  opened: NativeSelection;
  source: EventSource;
  thread: NativeThreadHandle | null = null;
  /** Made, and no run was accepted in it. */
  unused: NativeThread | null = null;
  turn: OpenTurn | null = null;
  #closing: Promise<void> | null = null;
  turns = 0;
  /** Results that waits have handed out and that it has not taken: they come again, as mail (WAI-3). */
  readonly unheard = new Set<MailId>();
  /** It may have read already what it is told next. */
  doubtful = false;
  /** Turns that it may have taken before its conversation had a record, and that nobody here knows the outcome of. */
  unsure = 0;
  /** Transcript items that the provider's conversation has taken in or given; what comes after them is told first. */
  told = 0;

  constructor(session: NativeSession, opened: NativeSelection) {
    this.session = session;
    this.opened = opened;
    this.source = new EventSource(session);
  }

  /** The session cannot be used for another turn: its provider is gone, or has not ended the last one. */
  get spent(): boolean {
    return this.#closing !== null || this.source.over || this.turn !== null;
  }

  /** A conversation in which no run was accepted; what an earlier session answers late is not this one's. */
  async empty(selection: NativeSelection): Promise<NativeThread> {
    const { session } = this;
    const made = this.unused ?? named(await session.ensureThread(selection));
    if (this.session === session) this.unused = made;
    return made;
  }

  /** The one before is closed. */
  replace(session: NativeSession, opened: NativeSelection): void {
    this.session = session;
    this.opened = opened;
    this.source = new EventSource(session);
    this.thread = null;
    this.unused = null;
    this.turn = null;
    this.#closing = null;
  }

  /**
   * Stops the turn under way, and resolves when it is over; null when there is none. How long that may last is for those to
   * say who wait for it (INT-3).
   */
  stop(): Promise<void> | null {
    const { turn } = this;
    if (turn === null || this.#closing !== null) return null;
    this.session.interruptTurn(turn.thread.thread.ref, turn.key).catch(IGNORE);
    return this.#untilOver(turn, this.source);
  }

  async #untilOver(turn: OpenTurn, source: EventSource): Promise<void> {
    try {
      for (;;) {
        const event = await (turn.accepted ? source.next() : Promise.race([source.next(), turn.refused]));
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

  /** Resolves when its session is closed, whoever has asked for it first. */
  close(): Promise<void> {
    this.#closing ??= Promise.try(() => this.session.close());
    return this.#closing;
  }
}
