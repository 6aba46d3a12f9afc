/**
 * The record of a result's way home: from the run that has answered to whoever is owed it. Its handoff is the text that the mail
 * carries, and says what of the run that is (lineage C4.11, C8.6).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { TransferId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { HandoffRecord } from "../protocol/transfer.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { byteLength } from "../platform/text.ts";
import { type HandoffAbout, readyHandoff } from "../lineage/handoff-record.ts";
import { resolvePortable, resultTransfer } from "../lineage/transfer.ts";
import { headOf, newestStep } from "./thread-point.ts";
import type { Transaction } from "./transaction.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";

/** `staleBase`: it rests on a run that was taken back, and is told to nobody by itself (C8.9). */
export function putResultTransfer(
  tx: Transaction,
  work: WorkRecord,
  target: AgentRecord,
  text: string,
  staleBase: boolean,
): TransferId {
  const { runId, ending } = work.outcome!;
  const executor = tx.agent(work.executor);
  const run = runId === null ? undefined : tx.store.run(runId);
  const answer = run === undefined ? null : answerOf(tx, executor, run);
  const pending = resultTransfer({
    id: tx.id("xfr"),
    treeId: tx.treeId,
    workId: work.id,
    source: executor.threadId,
    target: target.threadId,
    sourcePoint: { ...headOf(tx.store, executor, run), turnItemId: answer },
    sourceProvider: run?.provider ?? executor.config.provider,
    targetProvider: target.config.provider,
    at: tx.now,
    ending,
  });
  const handoff = readyHandoff({
    id: tx.id("hnd"),
    transfer: pending,
    text,
    // Of what did not complete something is told of each of its steps.
    coveredRanges: run === undefined ? [] : rangesOf(ending === "completed" ? answer : null, run, executor),
    redact: tx.context.redact,
    at: tx.now,
    about: aboutOf(tx, run, ending === "completed" && answer !== null, byteLength(text)),
  });
  const transfer = { ...resolvePortable(pending, handoff, tx.now), staleBase };
  tx.store.putTransfer(transfer);
  tx.store.putHandoff(handoff);
  tx.emit(
    "transfer.created",
    executor,
    { workId: work.id, runId },
    {
      transferId: transfer.id,
      type: transfer.type,
      target: target.path,
      ...(staleBase ? { staleBase } : {}),
    },
  );
  return transfer.id;
}

/** A work has to end whatever has become of what it did: null also where its transcript cannot be read. */
function answerOf(tx: Transaction, executor: AgentRecord, run: RunRecord): number | null {
  return unlessCorrupt(() => newestStep(tx.store, executor, run), null);
}

function rangesOf(
  answer: number | null,
  run: RunRecord,
  { items }: AgentRecord,
): HandoffRecord["coveredRanges"] {
  if (answer !== null) return [[answer, answer + 1]];
  return items > run.firstItem ? [[run.firstItem, items]] : [];
}

function aboutOf(
  { profile, limits }: Transaction,
  run: RunRecord | undefined,
  answered: boolean,
  used: number,
): Partial<HandoffAbout> {
  const limit = Math.max(used, profile.boundedResults ? limits.mailInlineBytes : 0);
  const budget = { limit, used, unit: "bytes" } as const;
  if (run === undefined) return { budget };
  const { ordinal, providerThreadId, checkpoint } = run;
  return {
    budget,
    fromProviderThreadIds: providerThreadId === null ? [] : [providerThreadId],
    coveredRuns: [[ordinal, ordinal]],
    coveredRunOrdinals: { from: ordinal, to: ordinal },
    payload: {
      sections: [answered ? "dialogue" : "failures"],
      items: answered ? 1 : 0,
      omittedItemIds: [],
      checkpointRef: checkpoint?.id ?? null,
      snapshotRef: null,
    },
  };
}
