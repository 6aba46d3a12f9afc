/** What is known before a run starts: the facts of `resolveStartContext`, read from the store in one look (lineage C4.1, C4.17). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ProviderThreadId } from "../protocol/ids.ts";
import type { NativeTurn } from "../protocol/native-events.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { ContextSourcePoint, HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { ForkSource } from "../lineage/fork-availability.ts";
import { nativeTurns } from "../lineage/native-turns.ts";
import type { ForkFacts, StartFacts, StartTarget } from "../lineage/start-plan.ts";
import { endOfRun } from "../lineage/thread-reader.ts";
import { candidateOf, divergentOf } from "../lineage/start-candidates.ts";
import type { StoreView } from "../store/port.ts";
import { isConversationFull } from "./own-conversation.ts";
import { readerOf } from "./thread-reader.ts";
import type { Look } from "./transaction.ts";

/** What attempts of this start have taught that no record holds. */
export interface StartMemory {
  readonly failedResume: readonly ProviderThreadId[];
  readonly deltaFits: boolean | null;
  readonly nativeFailed: boolean;
  /** A conversation that is full was not to be told anew: it is gone on with. */
  readonly goesOnFull: boolean;
}

export const NOTHING_TRIED: StartMemory = {
  failedResume: [],
  deltaFits: null,
  nativeFailed: false,
  goesOnFull: false,
};

/** The provider that the run goes to, as far as it does not depend on the thread's records. */
export interface Destination extends Pick<
  StartTarget,
  "provider" | "instanceId" | "driver" | "model" | "capabilities"
> {
  /** The context window of the model that the run goes to, in tokens. */
  readonly window: number;
  /** What the adapter says to a change between two models of one conversation. */
  readonly change: (from: string | null, to: string | null) => StartTarget["change"];
}

export function startFacts(
  look: Look,
  agent: AgentRecord & { readonly thread: ThreadFacts },
  run: Pick<RunRecord, "ordinal" | "causes">,
  items: readonly TranscriptItem[],
  destination: Destination,
  memory: StartMemory,
): StartFacts {
  const { store: view } = look;
  const { thread, threadId } = agent;
  const providerThreads = view.providerThreadsOf(threadId);
  const pending = view.pendingTransfersTo(threadId);
  const { change, window, ...target } = destination;
  const base = {
    threadId,
    target: {
      ...target,
      cleanContext: thread.selection?.provider === destination.provider && thread.selection.cleanContext,
      contextFull: false,
      change: "apply_next_turn" as StartTarget["change"],
      deltaFits: memory.deltaFits,
    },
    providerThreads,
    failedResume: memory.failedResume,
  };
  const candidate = candidateOf(base);
  if (candidate !== null) {
    base.target.change = change(candidate.model, destination.model);
    base.target.contextFull =
      !memory.goesOnFull &&
      look.context.loop(destination.provider) === "ours" &&
      isConversationFull(
        look,
        agent,
        { ...thread, threadId, ordinal: run.ordinal, causes: run.causes },
        candidate,
        {
          items,
          window,
        },
      );
  }
  const fork = pending.findLast(({ type }) => type === "fork");
  return {
    ...base,
    rolledBack: thread.rolledBack,
    voided: thread.voided,
    continuity: thread.continuity,
    ordinal: run.ordinal,
    // Of no other provider thread does it matter what it was told.
    handoffs: [candidate, divergentOf(base)].flatMap((one) => deliveredInto(view, one)),
    pending,
    fork: fork === undefined ? null : forkFacts(look, fork, memory),
    limits: look.context.lineage,
  };
}

/** What a provider thread was told; nothing where there is none. */
export function deliveredInto(
  view: StoreView,
  providerThread: Pick<ProviderThreadRecord, "handoffIds"> | null,
): readonly HandoffRecord[] {
  return (providerThread?.handoffIds ?? []).flatMap((id) => view.handoff(id) ?? []);
}

/** The conversation that a point names, such as a subagent's; else the one that its run went through. */
export function conversationAt(
  view: StoreView,
  { threadId, providerThreadRef }: ContextSourcePoint,
  ofRun: ProviderThreadId | null,
): ProviderThreadRecord | undefined {
  const named =
    providerThreadRef === null
      ? undefined
      : view
          .providerThreadsOf(threadId)
          .find(
            ({ nativeThreadRef: ref }) =>
              ref?.driver === providerThreadRef.driver && ref.nativeId === providerThreadRef.nativeId,
          );
  return named ?? (ofRun === null ? undefined : view.providerThread(ofRun));
}

/** A conversation that is to be forked at a run, as availability looks at it. */
export function sourceOf(view: StoreView, record: ProviderThreadRecord, ordinal: number): ForkSource {
  return {
    ...record,
    turns: turnsFrom(view, record, ordinal),
    ofChild: record.ownerNodeId !== null,
    busy: record.status === "active",
  };
}

/** Its turns from this run on; a conversation of ours has none. */
export function turnsFrom(
  view: StoreView,
  record: ProviderThreadRecord,
  ordinal: number,
): readonly NativeTurn[] {
  if (record.nativeThreadRef === null) return [];
  return nativeTurns(record, (at) => view.runAt(record.appThreadId, at), ordinal);
}

/** What lies at the point of a fork; null when its source is gone. */
function forkFacts(look: Look, transfer: TransferRecord, memory: StartMemory): ForkFacts | null {
  const { sourcePoint: point, sourceThreadId } = transfer;
  const run = look.store.runAt(sourceThreadId, point.ordinal);
  const thread = look.store.agent(sourceThreadId);
  if (thread === undefined) return null;
  // A named message may stand at the very end of a run, which providers can name where they cannot name items.
  const wholeRun = point.items === endOfRun(readerOf(look.store, thread), point.ordinal);
  const source = conversationAt(look.store, point, run?.providerThreadId ?? null);
  return {
    point: {
      source: source === undefined ? null : sourceOf(look.store, source, point.ordinal),
      ordinal: point.ordinal,
      wholeRun,
      item: null,
      cut: point.cut,
      carries: transfer.requestedStrategy !== "none",
    },
    replay: look.context.lineage.replay,
    nativeFailed: memory.nativeFailed,
  };
}
