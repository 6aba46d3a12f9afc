/**
 * A provider's own rollback (lineage C9.5, C9.6, C9.10): the call, on the session that has the conversation where one is
 * loaded.
 *
 * - K1 Before the call the record says that the conversation cannot be relied on. A crash, or a provider that is gone in the
 *   middle, leaves it so: nobody knows what it still holds, and it is not resumed. An answer puts it right.
 */
import { CoppiceError, describeError, RejectedError } from "../protocol/errors.ts";
import type { NativeThread } from "../protocol/native-events.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { Stages } from "../control/long-commands.ts";
import { openNative } from "../control/native-journal.ts";
import { must, type Transaction } from "../control/transaction.ts";
import type { Tree } from "../control/tree.ts";
import { endsAt } from "../lineage/rollback-native.ts";
import { nativeCall } from "../providers/native-call.ts";
import { named } from "../providers/native-names.ts";
import type { NativeSession } from "../providers/port.ts";
import type { NativeConversation } from "../session/native-conversation.ts";
import type { NativeStep } from "./rollback.ts";
import type { ThreadAgent } from "./verbs.ts";

/** What the provider has answered. */
export type Asked =
  | { readonly kind: "agreed"; readonly thread: NativeThread }
  | { readonly kind: "refused"; readonly error: unknown };

export class NativeRollback {
  readonly #tree: Tree;
  readonly #agent: ThreadAgent;
  readonly #step: NativeStep;
  readonly #stages: Pick<Stages<never>, "begin" | "mark">;
  #before: ProviderThreadRecord | null = null;
  #calling = false;

  constructor(
    tree: Tree,
    agent: ThreadAgent,
    step: NativeStep,
    stages: Pick<Stages<never>, "begin" | "mark">,
  ) {
    this.#tree = tree;
    this.#agent = agent;
    this.#step = step;
    this.#stages = stages;
  }

  /** @throws what the provider fails with, where its rollback is demanded; the thread is as it was. */
  async ask(demanded: boolean): Promise<Asked> {
    const { id } = this.#step;
    const record = await this.#tree.transact((tx) => {
      this.#stages.begin();
      // Nobody takes its id from now on: the commit that ends it could not be written then. Whether it was begun before does not
      // matter: a call that nobody has told the end of has changed nothing but the record, which is in doubt and asked for no
      // more (K1), and a rollback that goes on without it is planned anew from what there is.
      this.#stages.mark?.begin(tx);
      const before = must(tx.store.providerThread(id), "provider thread", id);
      tx.store.putProviderThread({ ...before, status: "error", updatedAt: tx.now });
      return before;
    });
    this.#before = record;
    let thread: NativeThread;
    try {
      thread = await this.#call(record);
    } catch (error) {
      if (!demanded) return { kind: "refused", error };
      const answered = error instanceof RejectedError;
      // What nobody was asked for has not happened.
      if (answered || !this.#calling) await this.#tree.transact((tx) => this.#nothingDone(tx));
      throw answered ? refused(record, error) : error;
    }
    const { boundary, turns } = this.#step;
    if (endsAt(boundary, turns, thread.head)) return { kind: "agreed", thread };
    // What it holds now is not what was asked for, so the record goes on to say that it cannot be relied on.
    const error = new RejectedError(
      "PROVIDER_PROTOCOL",
      `${record.provider} rolled its conversation back to another turn than the one that was named; it is not gone on with.`,
      { providerThreadId: id, head: thread.head?.nativeId ?? null },
    );
    if (demanded) throw error;
    return { kind: "refused", error };
  }

  /** The record as it was before it was asked. */
  answered(tx: Transaction): void {
    if (this.#before !== null) tx.store.putProviderThread(this.#before);
  }

  #nothingDone(tx: Transaction): void {
    this.answered(tx);
    this.#stages.mark?.forget(tx);
  }

  async #call(record: ProviderThreadRecord): Promise<NativeThread> {
    const { boundary, turns } = this.#step;
    const loaded = this.#loaded();
    const session = loaded?.session ?? (await openNative(this.#tree, this.#agent, record.provider));
    try {
      const ref = record.nativeThreadRef!;
      // One that was opened for this has to have the conversation first.
      if (loaded?.thread?.id !== record.id) await session.resumeThread(ref);
      const call = nativeCall(session, "rollbackThread");
      this.#calling = true;
      return named(await call({ thread: ref, boundary, turns }));
    } finally {
      if (loaded === null) await this.#close(session);
    }
  }

  async #close(session: NativeSession): Promise<void> {
    try {
      await session.close();
    } catch (error) {
      const { threadId } = this.#agent;
      this.#tree.shared.logger.warn({ threadId, err: error }, "a provider did not close");
    }
  }

  /** The session of the agent, where it is one with this provider and could take a turn. */
  #loaded(): NativeConversation | null {
    const session = this.#tree.sessions.get(this.#agent.threadId);
    if (session?.provider.loop !== "theirs" || session.provider.spent) return null;
    return session.agent.config.provider === this.#agent.config.provider ? session.provider : null;
  }

  /** In the block of the commit: what is loaded goes on from there. */
  committed(asked: Asked): void {
    const loaded = this.#loaded();
    if (loaded === null || loaded.thread?.id !== this.#step.id) return;
    loaded.thread = asked.kind === "agreed" ? { id: this.#step.id, thread: asked.thread } : null;
  }
}

function refused({ provider }: ProviderThreadRecord, error: RejectedError): RejectedError {
  if (error.code.startsWith("ROLLBACK_")) return error;
  return new RejectedError(
    "ROLLBACK_NATIVE_UNSUPPORTED",
    `${provider} refused to roll its conversation back: ${describeError(error)} Nothing was changed; roll back without demanding that.`,
    { provider, ...(CoppiceError.is(error) ? { cause: error.code } : {}) },
    error,
  );
}
