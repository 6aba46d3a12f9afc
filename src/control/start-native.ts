/**
 * The part of a start in which a provider that owns its loop is asked: to resume its conversation, or to fork another one
 * (lineage C4.15, C5.19). What it answers is in memory and, for a fork, in the store before a text is built or sent.
 *
 * - A1 A conversation that cannot be resumed is given up once, for a new one that is told everything; never in silence.
 * - A2 The intent to fork stands in the store before the call, and is taken back or resolved after it. A crash in between
 *   leaves it, and the fork is looked for before another is asked for. While the provider has not answered, nobody looks.
 * - A3 Who is not signed in is told so: no other way is tried.
 */
import { CoppiceError, describeError, RejectedError, TransientError } from "../protocol/errors.ts";
import type { ProviderThreadId, RunId, TransferId } from "../protocol/ids.ts";
import type { NativeThread } from "../protocol/native-events.ts";
import type { NativeRef, ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { abortable } from "../platform/abortable.ts";
import { delay } from "../platform/clock.ts";
import { intendNative } from "../lineage/transfer.ts";
import type { StartBase } from "../lineage/start-plan.ts";
import { hasNative, nativeCall } from "../providers/native-call.ts";
import { named } from "../providers/native-names.ts";
import { unlessAborted } from "../session/ears.ts";
import type { NativeConversation } from "../session/native-conversation.ts";
import type { Session } from "../session/session.ts";
import { indeterminate, isKnown, orphansAmong, putAside, takeBack, takeFork } from "./fork-intents.ts";
import type { RunClock } from "./run-clock.ts";
import { currentRun } from "./runs.ts";
import { conversationAt, type Destination, turnsFrom } from "./start-facts.ts";
import { newProviderThread } from "./start-write.ts";
import { forkAnew } from "./transfer-moves.ts";
import { must, type Transaction } from "./transaction.ts";
import type { Tree } from "./tree.ts";

type NativeFork = Extract<StartBase, { kind: "native_fork" }>;

export class NativeStart {
  readonly #tree: Tree;
  readonly #session: Session;
  readonly #native: NativeConversation;
  readonly #to: Destination;
  readonly #signal: AbortSignal;
  readonly #clock: RunClock;
  /** Its session may be at another run by the time that a provider answers. */
  readonly #runId: RunId;

  constructor(
    tree: Tree,
    session: Session,
    native: NativeConversation,
    to: Destination,
    signal: AbortSignal,
    clock: RunClock,
  ) {
    this.#tree = tree;
    this.#session = session;
    this.#native = native;
    this.#to = to;
    this.#signal = signal;
    this.#clock = clock;
    this.#runId = session.run!.id;
  }

  /** True when the conversation goes on; false when it is given up, which its record says. */
  async resume(record: ProviderThreadRecord): Promise<boolean> {
    const { id, nativeThreadRef: ref } = record;
    if (ref === null || this.#native.thread?.id === id) return true;
    for (let attempt = 1; ; attempt += 1) {
      try {
        // What comes after the run was stopped is let go: the next one may be elsewhere by then.
        const resumed = await unlessAborted(this.#native.session.resumeThread(ref), this.#signal);
        this.#native.thread = { id, thread: named(resumed) };
        return true;
      } catch (error) {
        this.#signal.throwIfAborted();
        refuseUnauthenticated(error);
        const { retries } = this.#tree.limits;
        const decision = this.#tree.shared
          .backOff(this.#to.provider)
          .failed(error, attempt, false, error instanceof TransientError ? retries : 0);
        if (decision.retry) {
          await delay(this.#tree.shared.clock, decision.delayMs, this.#signal);
          continue;
        }
        const { threadId } = this.#session.agent;
        this.#tree.shared.logger.warn({ threadId, err: error }, "a provider's conversation was given up");
        await this.#tree.transact((tx) => giveUp(tx, id));
        return false;
      }
    }
  }

  /** A new conversation in place of one that is given up. @throws TransientError `PROVIDER_RESUME_FAILED`. */
  async begin(): Promise<void> {
    const { model, effort } = this.#session.run!;
    try {
      await unlessAborted(this.#native.empty({ model, effort }), this.#signal);
    } catch (error) {
      this.#signal.throwIfAborted();
      throw new TransientError(
        "PROVIDER_RESUME_FAILED",
        `the provider could neither resume its conversation nor begin another: ${describeError(error)}`,
        { provider: this.#to.provider },
        { cause: error },
      );
    }
  }

  /**
   * Forks the source's conversation at the point. False when the provider refused and text may be tried instead.
   * @throws RejectedError `FORK_NATIVE_FAILED` where it may not.
   */
  async fork({ transferId: pending, sourceRef, boundary }: NativeFork): Promise<boolean> {
    const asked = await this.#tree.transact((tx) => this.#intend(tx, pending));
    const { transferId, intent, turns, strict } = asked;
    let forked: NativeThread;
    try {
      const forkThread = nativeCall(this.#native.session, "forkThread");
      const given = { source: sourceRef, boundary, turns, intentId: intent, signal: this.#signal };
      const answer = await this.#clock.stoppedDuring(() => this.#untilAnswered(forkThread(given)));
      forked = await this.#nobodys(named(answer), sourceRef);
    } catch (error) {
      this.#signal.throwIfAborted();
      // A provider that is gone may have forked before it went: that is looked for, not asked for again.
      const gone = CoppiceError.is(error) && error.code === "PROVIDER_UNREACHABLE";
      if (gone) throw indeterminate(transferId, error);
      await this.#tree.transact((tx) => takeBack(tx, transferId));
      refuseUnauthenticated(error);
      if (!strict) return false;
      throw new RejectedError(
        "FORK_NATIVE_FAILED",
        `the provider refused to fork its conversation: ${describeError(error)}. Try again, or fork with \`replay\`.`,
        { transferId },
        error,
      );
    }
    await this.#adopt(transferId, forked, sourceRef);
    return true;
  }

  /** The run may be stopped, and given up, before it is. */
  async #untilAnswered<T>(call: Promise<T>): Promise<T> {
    const { forking } = this.#tree.shared;
    const { threadId } = this.#session.agent;
    const over = call.then(IGNORE, IGNORE);
    forking.set(threadId, over);
    try {
      return await call;
    } finally {
      forking.delete(threadId);
    }
  }

  /** @throws RejectedError `PROVIDER_PROTOCOL` for a conversation that somebody has: two threads never share one. */
  async #nobodys(forked: NativeThread, { driver, nativeId }: NativeRef): Promise<NativeThread> {
    const { threadId } = this.#session.agent;
    const named = { driver, nativeId: forked.ref.nativeId };
    const taken = await this.#tree.read((view) => isKnown(view, threadId, named, "in_use"));
    if (forked.ref.nativeId !== nativeId && !taken) return forked;
    throw new RejectedError(
      "PROVIDER_PROTOCOL",
      "the adapter of the provider answered a fork with a conversation that is in use already; it has to be mended.",
      { nativeId: forked.ref.nativeId },
    );
  }

  /**
   * After a crash in the middle of a fork: one that is there and nobody's is taken; else the intent is taken back. Where it
   * cannot be said whose they are, none is taken, now or later: siblings were cut elsewhere.
   */
  async settleIntent(transfer: TransferRecord, sourceRef: NativeRef): Promise<void> {
    const { session } = this.#native;
    // Asked for by a run that was stopped: until the provider has answered, what it makes is not there to be found (C5.19).
    const asked = this.#tree.shared.forking.get(this.#session.agent.threadId);
    if (asked !== undefined) await this.#clock.stoppedDuring(() => abortable(this.#signal, () => asked));
    if (!hasNative(session, "findForks")) throw indeterminate(transfer.id);
    const asking = nativeCall(session, "findForks")(sourceRef);
    const found = await unlessAborted(asking, this.#signal).catch((error: unknown) => {
      this.#signal.throwIfAborted();
      refuseUnauthenticated(error);
      throw error instanceof TransientError ? error : indeterminate(transfer.id, error);
    });
    this.#signal.throwIfAborted();
    const { orphans, mine } = await this.#tree.read((view) =>
      orphansAmong(view, transfer, sourceRef.driver, found),
    );
    if (mine !== null) return this.#adopt(transfer.id, mine, sourceRef);
    await this.#tree.transact((tx) => {
      putAside(tx, orphans, () => this.#forkOf(tx, sourceRef));
      takeBack(tx, transfer.id);
    });
  }

  #forkOf(tx: Transaction, forkedFrom: NativeRef): ProviderThreadRecord {
    const run = currentRun(tx, this.#runId);
    return { ...newProviderThread(run, this.#to, tx.id("pth"), tx.now), forkedFrom };
  }

  #intend(tx: Transaction, id: TransferId) {
    const given = must(tx.store.transfer(id), "transfer", id);
    const transfer = given.status === "pending" ? given : forkAnew(tx, given);
    const intent = tx.id("int");
    tx.store.putTransfer(intendNative(transfer, intent, tx.now));
    const { sourcePoint: point, sourceThreadId, requestedStrategy } = transfer;
    const ofRun = tx.store.runAt(sourceThreadId, point.ordinal)?.providerThreadId ?? null;
    const source = conversationAt(tx.store, point, ofRun);
    const turns = source === undefined ? [] : turnsFrom(tx.store, source, point.ordinal);
    return { transferId: transfer.id, intent, turns, strict: requestedStrategy === "native" };
  }

  async #adopt(id: TransferId, forked: NativeThread, sourceRef: NativeRef): Promise<void> {
    const made = await this.#tree.transact((tx): ProviderThreadId => {
      const run = currentRun(tx, this.#runId);
      const record = this.#forkOf(tx, sourceRef);
      takeFork(tx, id, forked, record, run.id);
      return record.id;
    });
    this.#native.thread = { id: made, thread: forked };
  }
}

const IGNORE = (): void => undefined;

function giveUp(tx: Transaction, id: ProviderThreadId): void {
  const record = must(tx.store.providerThread(id), "provider thread", id);
  tx.store.putProviderThread({ ...record, status: "error", updatedAt: tx.now });
}

/** @throws the refusal itself: somebody has to sign in, and nothing else helps (C5.14). */
function refuseUnauthenticated(error: unknown): void {
  if (error instanceof RejectedError && error.code === "PROVIDER_UNAVAILABLE") throw error;
}
