/** The run that a rollback goes back to, and when there is none (lineage C9.1, C9.2). */
import { RejectedError } from "../protocol/errors.ts";
import type { CheckpointId, ProviderThreadId, RunId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { holdsOrdinal } from "../protocol/ordinals.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import { isSettled } from "../protocol/run.ts";
import type { ForkDraft, RollbackRecord, ThreadFacts } from "../protocol/thread.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { NamedThread } from "./native-turns.ts";
import { hasCheckpoint, isRolledBack, lastRetained, runOfItem, type ThreadReader } from "./thread-reader.ts";

export interface RollbackRequest {
  readonly to:
    /** The last run that stays; 0 takes back all of them. */
    | { readonly kind: "ordinal"; readonly ordinal: number }
    | { readonly kind: "checkpoint"; readonly checkpointId: CheckpointId }
    /** Index of the user's message that is taken back with all that follows. */
    | { readonly kind: "before_message"; readonly index: number };
  /** The provider that the thread ran on when this was asked; null where that is no matter. */
  readonly provider: string | null;
  /** `demanded`: the provider's own rollback or none. `avoided`: it has refused, and is not asked again. */
  readonly native: "demanded" | "allowed" | "avoided";
}

export interface RollbackFacts {
  readonly reader: ThreadReader;
  readonly request: RollbackRequest;
  /** The run that is not over, if there is one. */
  readonly activeRun: RunId | null;
  /** The provider that the thread is bound to. */
  readonly provider: string;
  readonly activeProviderThreadId: ProviderThreadId | null;
  /** Of the adapter of the active provider thread; null where it is not there to be asked. */
  readonly capabilities: ThreadCapabilities | null;
  /** Whose loop that adapter has; a conversation of ours is the transcript, and nobody has to be asked. */
  readonly loop: "ours" | "theirs";
  /** With the turns of the active one, from the last one that stays on; of no other one is a turn named. */
  readonly providerThreads: readonly NamedThread[];
  /** Handoffs for this thread. */
  readonly handoffs: readonly HandoffRecord[];
  /** Transfers into this thread, those that are over too. */
  readonly transfers: readonly TransferRecord[];
  /** The newest revision of the snapshot; 0 for none. */
  readonly revision: number;
}

export interface RollbackTarget {
  readonly target: number;
  readonly draft: Pick<ForkDraft, "text" | "sourceMessageId"> | null;
}

/** @throws RejectedError `ROLLBACK_ACTIVE_RUN`, `ROLLBACK_TARGET_INVALID` or `ROLLBACK_PROVIDER_CHANGED`. */
export function requireTarget(facts: Omit<RollbackFacts, "providerThreads">): RollbackTarget {
  const { reader, request, activeRun, provider } = facts;
  if (activeRun !== null) {
    throw new RejectedError(
      "ROLLBACK_ACTIVE_RUN",
      `${activeRun} is under way in ${reader.threadId}; interrupt it or wait for its end, then roll back.`,
      { threadId: reader.threadId, runId: activeRun },
    );
  }
  const found = targetOf(reader, request);
  if (found.target > 0) requireRun(reader, found.target);
  if (request.provider !== null && request.provider !== provider) {
    throw new RejectedError(
      "ROLLBACK_PROVIDER_CHANGED",
      `${reader.threadId} runs on ${provider} and ran on ${request.provider} when this was asked; look at it again, then ask again.`,
      { threadId: reader.threadId, asked: request.provider, provider },
    );
  }
  return found;
}

function targetOf(reader: ThreadReader, { to }: RollbackRequest): RollbackTarget {
  if (to.kind === "ordinal") {
    if (Number.isSafeInteger(to.ordinal) && to.ordinal >= 0 && to.ordinal <= reader.runs) {
      return { target: to.ordinal, draft: null };
    }
    throw invalid(
      `${reader.threadId} has runs 1 to ${reader.runs} and no run ${to.ordinal}; name one of them, or 0.`,
      {
        ordinal: to.ordinal,
        runs: reader.runs,
      },
    );
  }
  if (to.kind === "checkpoint") {
    const run = reader.runOfCheckpoint(to.checkpointId);
    if (run !== undefined && run.threadId === reader.threadId) return { target: run.ordinal, draft: null };
    throw invalid(`${reader.threadId} has no checkpoint ${to.checkpointId}; name a run of it.`, {
      checkpointId: to.checkpointId,
    });
  }
  return beforeMessage(reader, to.index);
}

function beforeMessage(reader: ThreadReader, index: number): RollbackTarget {
  const item = reader.item(index);
  const run = item === undefined ? undefined : runOfItem(reader, item);
  if (item?.kind !== "user" || run === undefined) {
    const seq = index + 1;
    throw invalid(`Message ${seq} of ${reader.threadId} is not the user's; name one that is.`, { seq });
  }
  if (isRolledBack(reader, run)) throw goneAlready(run.ordinal);
  for (let at = run.firstItem; at < index; at += 1) {
    if (reader.item(at)?.kind === "context") continue;
    // Runs are taken back whole: a message that came while one went on cannot be taken back alone.
    throw invalid(
      `The message came while run ${run.ordinal} was under way; name the message that began it, or fork at this one.`,
      { seq: index + 1, ordinal: run.ordinal },
    );
  }
  return {
    target: lastRetained(reader, run.ordinal - 1),
    draft: { text: item.text, sourceMessageId: item.mailId },
  };
}

/** The rollback that can be undone; none when a run has started since (C9). */
export function undoableRollback(
  { lastRollback }: Pick<ThreadFacts, "lastRollback">,
  runs: number,
): RollbackRecord | null {
  return lastRollback !== null && !lastRollback.undone && lastRollback.of === runs ? lastRollback : null;
}

function requireRun(reader: ThreadReader, ordinal: number): void {
  const run = reader.runAt(ordinal);
  if (run === undefined)
    throw invalid(`${reader.threadId} has no run ${ordinal}; list its runs.`, { ordinal });
  if (isRolledBack(reader, run)) throw goneAlready(ordinal);
  if (holdsOrdinal(reader.voided, ordinal)) {
    throw invalid(`No provider ever took run ${ordinal}; go back to the run before it.`, { ordinal });
  }
  if (!isSettled(run) || !hasCheckpoint(run)) {
    throw invalid(`The checkpoint of run ${ordinal} is not there; go back to another run.`, {
      ordinal,
      workspace: run.checkpoint?.workspace.status ?? null,
    });
  }
}

function goneAlready(ordinal: number): RejectedError {
  return invalid(`Run ${ordinal} was rolled back already; name a run that the thread still has.`, {
    ordinal,
  });
}

function invalid(text: string, details: JsonObject): RejectedError {
  return new RejectedError("ROLLBACK_TARGET_INVALID", text, details);
}
