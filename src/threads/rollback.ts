/**
 * Rolling a thread back to one of its runs (lineage C9): what is taken back is planned from one look at the store, the
 * provider is asked where its own conversation has to follow, and everything is written in one commit, planned again in it.
 *
 * - B1 Success is told after the provider has agreed, and what it refuses changes nothing where it was demanded (C9.10).
 *   Where it was not, its conversation is given up, and the next run begins another with what is left (C9.6).
 * - B2 No run of the thread starts while a provider rolls back: the thread's place among those that start is held.
 */
import { describeError, RejectedError } from "../protocol/errors.ts";
import type { CheckpointId, ThreadId } from "../protocol/ids.ts";
import type { NativeThread, NativeTurn } from "../protocol/native-events.ts";
import { type OrdinalRange, without } from "../protocol/ordinals.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { ForkDraft } from "../protocol/thread.ts";
import { allOf } from "../control/family.ts";
import type { Stages } from "../control/long-commands.ts";
import { readerOf } from "../control/thread-reader.ts";
import type { Look, Transaction } from "../control/transaction.ts";
import type { Tree } from "../control/tree.ts";
import type { ProviderThreadStep } from "../lineage/rollback-native.ts";
import { lastOrdinal } from "../lineage/coverage.ts";
import { nativeTurns } from "../lineage/native-turns.ts";
import { planRollback, type RollbackPlan } from "../lineage/rollback-plan.ts";
import { requireTarget, type RollbackFacts, type RollbackRequest } from "../lineage/rollback-target.ts";
import { NativeRollback } from "./rollback-call.ts";
import { writeRollback } from "./rollback-write.ts";
import { requireOpenThread, type ThreadAgent, threadOf } from "./verbs.ts";

/** Up to where a thread is rolled back. */
export type RollbackTo =
  /** The last run that stays; 0 takes back all of them. */
  | { readonly kind: "ordinal"; readonly ordinal: number }
  | { readonly kind: "checkpoint"; readonly checkpointId: CheckpointId }
  /** Place of the user's message that is taken back with all that follows: 1, 2, 3 … in the transcript. */
  | { readonly kind: "before_message"; readonly seq: number };

/** What a rollback takes back, and whether the provider has to follow. */
export interface RollbackOptions {
  readonly to: RollbackTo;
  /** `demanded`: with the provider's own rollback or not at all. */
  readonly native?: "allowed" | "demanded" | undefined;
  /** The provider that the thread was seen on; it is refused when that is another by now. */
  readonly provider?: string | undefined;
}

/** What a rollback has come to. */
export interface RolledBack {
  /** The last run that stays. */
  readonly target: number;
  readonly runs: readonly OrdinalRange[];
  readonly draft: Pick<ForkDraft, "text" | "sourceMessageId"> | null;
  /** `given_up`: the next run begins on a new conversation of its provider. */
  readonly native: "not_needed" | "rolled_back" | "given_up";
  /** In the words of the provider. */
  readonly refusal: string | null;
}

/** What the provider of the active provider thread can do; null where it is not there to be asked. */
export interface Able {
  readonly capabilities: ThreadCapabilities | null;
  readonly loop: "ours" | "theirs";
}

/**
 * @throws RejectedError `ROLLBACK_ACTIVE_RUN`, `ROLLBACK_TARGET_INVALID`, `ROLLBACK_PROVIDER_CHANGED`; where the provider's
 * own rollback is demanded, `ROLLBACK_NATIVE_UNSUPPORTED`, `ROLLBACK_TURN_UNAVAILABLE` or what the provider fails with.
 */
export async function rollBack(
  tree: Tree,
  threadId: ThreadId,
  options: RollbackOptions,
  stages: Stages<RolledBack>,
): Promise<RolledBack> {
  const { begin, done } = stages;
  using _ = holdStarts(tree, threadId);
  const agent = await tree.look((look) => openThreadOf(look, threadId));
  const able = await ableOf(tree, agent, options.native === "demanded");
  const request: RollbackRequest = {
    to:
      options.to.kind === "before_message"
        ? { kind: "before_message", index: options.to.seq - 1 }
        : options.to,
    provider: options.provider ?? agent.config.provider,
    native: options.native ?? "allowed",
  };
  const planned = await tree.look((look) => planFor(look, threadId, request, able));
  if (planned.rolledBack.length === 0) {
    const nothing = answer(planned, "not_needed", null);
    await tree.transact((tx) => {
      begin();
      done(tx, nothing);
    });
    return nothing;
  }
  const step = planned.providerThreads.find(needsProvider);
  if (step === undefined) {
    return tree.transact(
      (tx) => {
        const plan = planFor(tx, threadId, request, able);
        return commitPlan(tx, plan, null, answer(plan, outcomeOf(plan), null));
      },
      () => nothingUntold(tree, threadId),
    );
  }
  const call = new NativeRollback(tree, agent, step, stages);
  const asked = await call.ask(request.native === "demanded");
  const settled: RollbackRequest = asked.kind === "agreed" ? request : { ...request, native: "avoided" };
  return tree.transact(
    (tx) => {
      call.answered(tx);
      const plan = planFor(tx, threadId, settled, able);
      return asked.kind === "agreed"
        ? commitPlan(tx, plan, asked.thread, answer(plan, "rolled_back", null))
        : commitPlan(tx, plan, null, answer(plan, "given_up", describeError(asked.error)));
    },
    () => {
      call.committed(asked);
      nothingUntold(tree, threadId);
    },
  );

  function commitPlan(
    tx: Transaction,
    plan: RollbackPlan,
    thread: NativeThread | null,
    come: RolledBack,
  ): RolledBack {
    begin();
    writeRollback(tx, threadOf(tx, threadId), plan, thread);
    done(tx, come);
    return come;
  }
}

/** What runs have left that a provider was not told yet is taken back with them. */
function nothingUntold(tree: Tree, threadId: ThreadId): void {
  const session = tree.sessions.get(threadId);
  if (session?.provider.loop === "theirs") session.provider.told = session.items.length;
}

type Steps = Extract<ProviderThreadStep, { action: "roll_back" }>;
export type NativeStep = Steps & { readonly boundary: NonNullable<Steps["boundary"]> };

function needsProvider(step: ProviderThreadStep): step is NativeStep {
  return step.action === "roll_back" && step.boundary !== null;
}

function answer(
  { target, rolledBack, draft }: RollbackPlan,
  native: RolledBack["native"],
  refusal: string | null,
): RolledBack {
  return { target, runs: rolledBack, draft, native, refusal };
}

/** Of a plan for which nobody was asked. */
function outcomeOf({ activeProviderThreadId, providerThreads }: RollbackPlan): RolledBack["native"] {
  const lost =
    activeProviderThreadId === null && providerThreads.some(({ action }) => action === "divergent");
  return lost ? "given_up" : "not_needed";
}

/** @throws RejectedError `ROLLBACK_ACTIVE_RUN` while somebody else has it. */
function holdStarts(tree: Tree, threadId: ThreadId): Disposable {
  if (tree.starting.has(threadId)) {
    throw new RejectedError(
      "ROLLBACK_ACTIVE_RUN",
      `a run of ${threadId} is about to begin, or another rollback is under way; wait for its end, then roll back.`,
      { threadId },
    );
  }
  const place = tree.starting.hold(threadId);
  return {
    [Symbol.dispose]: () => {
      place[Symbol.dispose]();
      // What waited for it is looked at again.
      if (tree.state === "owned") tree.reactions.drained(tree);
    },
  };
}

function openThreadOf(look: Look, threadId: ThreadId): ThreadAgent {
  const agent = threadOf(look, threadId);
  requireOpenThread(agent);
  return agent;
}

/** One that does not say what it can is not there to be asked, save where its own rollback is demanded (C9.6). */
async function ableOf(tree: Tree, { threadId, thread }: ThreadAgent, demanded: boolean): Promise<Able> {
  const active = thread.activeProviderThreadId;
  const record = active === null ? undefined : await tree.read((view) => view.providerThread(active));
  const adapter = record === undefined ? undefined : tree.shared.adapter(record.provider);
  if (adapter === undefined) return { capabilities: null, loop: "theirs" };
  if (adapter.loop === "ours") return { capabilities: adapter.threads, loop: "ours" };
  const loaded = tree.sessions.get(threadId);
  const open = loaded?.provider.loop === "theirs" && loaded.agent.config.provider === record!.provider;
  if (open && loaded.provider.loop === "theirs")
    return { capabilities: loaded.provider.session.negotiated, loop: "theirs" };
  try {
    return { capabilities: await adapter.capabilities(), loop: "theirs" };
  } catch (error) {
    if (demanded) throw error;
    tree.shared.logger.warn({ threadId, err: error }, "a provider does not say what it can roll back");
    return { capabilities: null, loop: "theirs" };
  }
}

/** @throws as `rollBack`, before anything is changed. */
function planFor(look: Look, threadId: ThreadId, request: RollbackRequest, able: Able): RollbackPlan {
  const agent = openThreadOf(look, threadId);
  return planRollback(factsOf(look, agent, request, able));
}

function factsOf(look: Look, agent: ThreadAgent, request: RollbackRequest, able: Able): RollbackFacts {
  const { store } = look;
  const { threadId, thread } = agent;
  const facts = {
    ...able,
    reader: readerOf(store, agent),
    request,
    activeRun: agent.currentRun,
    provider: agent.config.provider,
    activeProviderThreadId: thread.activeProviderThreadId,
    handoffs: [...allOf((page) => store.handoffsOf(threadId, page))],
    transfers: [...allOf((page) => store.transfersOf(threadId, page))].filter(
      ({ targetThreadId }) => targetThreadId === threadId,
    ),
    revision: thread.currentContext?.revision ?? 0,
  };
  const { target } = requireTarget(facts);
  const turnsOf = (record: ProviderThreadRecord): readonly NativeTurn[] => {
    const stays = without(record.nativeRunOrdinals, target < agent.runs ? [[target + 1, agent.runs]] : []);
    return nativeTurns(record, (ordinal) => store.runAt(threadId, ordinal), lastOrdinal(stays));
  };
  const asked = (record: ProviderThreadRecord): boolean =>
    able.loop === "theirs" && record.id === thread.activeProviderThreadId;
  return {
    ...facts,
    providerThreads: store
      .providerThreadsOf(threadId)
      .map((record) => ({ ...record, turns: asked(record) ? turnsOf(record) : [] })),
  };
}
