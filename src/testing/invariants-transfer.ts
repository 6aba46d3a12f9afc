/**
 * Formulas over transfers, handoffs and what provider threads know: nothing counts before a provider has accepted it, and
 * nobody is told anything twice (lineage C1.9, C1.10, C2.5 to C2.7, C4.5, C4.13).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { HandoffId, ProviderThreadId } from "../protocol/ids.ts";
import { describeOrdinals, holdsOrdinal, type OrdinalRange, overlap, unite } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { HandoffRecord, TransferRecord, TransferStatus } from "../protocol/transfer.ts";
import { canonicalJson } from "../platform/canonical-json.ts";
import { handoffOf } from "../lineage/transfer.ts";
import { broken, type Formula, type Picture, type Violation } from "./invariants-picture.ts";
import { runsOf, threads } from "./invariants-thread.ts";

const OPEN: readonly TransferStatus[] = ["pending", "resolved_native", "resolved_portable"];

function* moves(picture: Picture): Iterable<Violation> {
  const { memory } = picture;
  for (const transfer of picture.transfers) {
    const { id, type, status, intent } = transfer;
    if (intent !== null && status !== "pending")
      yield broken("C5.19", `transfer ${id} is ${status} and a fork of it is still about to be asked for`);
    const before = memory.transfers.get(id);
    if (before === undefined || before === transfer) continue;
    const ended = !OPEN.includes(before.status);
    const back = status === "pending" && before.status !== "pending";
    const crossed =
      status !== before.status && before.status.startsWith("resolved") && status.startsWith("resolved");
    if (back || crossed || (ended && status !== before.status))
      yield broken("C2.5", `the ${type} transfer ${id} went from ${before.status} to ${status}`);
    if (before.digest !== transfer.digest) yield broken("C1.9", `the transfer ${id} has another digest`);
  }
}

/** Taken in by a run that was accepted, with a text that was delivered; and what was delivered was taken in. */
function* barrier(picture: Picture): Iterable<Violation> {
  const { view, handoffOf: handoffs, memory } = picture;
  for (const transfer of picture.transfers) {
    if (memory.transfers.get(transfer.id) === transfer) continue;
    const { id, status, targetRunId, resolution, requestedStrategy, type } = transfer;
    const text = textOf(picture, transfer);
    if (status === "consumed") {
      const run = targetRunId === null ? undefined : view.run(targetRunId);
      if (targetRunId !== null && (run?.acceptedAt ?? null) === null)
        yield broken(
          "C4.13",
          `the ${type} transfer ${id} is consumed and its run is ${run?.status ?? "not there"}`,
        );
      if (text === "missing" || (typeof text === "object" && text?.deliveredAt === null))
        yield broken("C4.13", `the ${type} transfer ${id} is consumed and its text was not delivered`);
    } else if (typeof text === "object" && text !== null && text.deliveredAt !== null)
      yield broken("C4.13", `the text of transfer ${id} was delivered, and it is ${status}`);
    if (requestedStrategy === "none" && resolution !== null)
      yield broken("C1.9", `transfer ${id} carries nothing and was resolved`);
  }
  for (const handoff of handoffs.values()) {
    if (handoff.status !== "ready" || handoff.deliveredAt !== null) continue;
    const transfer = view.transfer(handoff.transferId);
    if (transfer === undefined || !OPEN.includes(transfer.status))
      yield broken(
        "C2.6",
        `handoff ${handoff.id} waits and its transfer is ${transfer?.status ?? "not there"}`,
      );
    else if (handoffOf(transfer) !== handoff.id)
      yield broken("C1.10", `handoff ${handoff.id} waits and its transfer names another`);
  }
}

function textOf(
  { handoffOf: handoffs, view }: Picture,
  transfer: TransferRecord,
): HandoffRecord | "missing" | null {
  const id = handoffOf(transfer);
  return id === null ? null : (handoffs.get(id) ?? view.handoff(id) ?? "missing");
}

/** The words of a text never change, nor does it go back (C1.10). */
function* texts(picture: Picture): Iterable<Violation> {
  for (const handoff of picture.handoffOf.values()) {
    const before = picture.memory.handoffs.get(handoff.id);
    if (before === undefined || before === handoff) continue;
    const kept = (one: HandoffRecord): string =>
      canonicalJson([
        one.summaryText,
        one.coveredRuns,
        one.coveredRanges,
        one.kind,
        one.strategy,
        one.digest,
      ]);
    if (kept(before) !== kept(handoff))
      yield broken("C1.10", `the text of handoff ${handoff.id} has changed`);
    if (before.status === "superseded" && handoff.status !== "superseded")
      yield broken("C2.6", `handoff ${handoff.id} was superseded and is ${handoff.status}`);
    if (before.deliveredAt !== null && before.deliveredAt !== handoff.deliveredAt)
      yield broken("C2.6", `handoff ${handoff.id} was delivered twice`);
  }
}

/** What a provider thread says it knows has been sent to it. */
function* coverage(picture: Picture): Iterable<Violation> {
  for (const agent of threads(picture)) {
    const { threadId, thread, path } = agent;
    const own = ownOf(picture, agent);
    const runs = runsOf(picture, agent);
    const holder = new Map<HandoffId, ProviderThreadId>();
    for (const record of own) {
      for (const [from, to] of record.nativeRunOrdinals) {
        for (let ordinal = from; ordinal <= to; ordinal += 1) {
          const run = runs[ordinal - 1];
          if ((run?.acceptedAt ?? null) === null || run?.providerThreadId !== record.id)
            yield broken("C1.6", `${record.id} counts run ${ordinal} of ${path}, which did not go to it`);
        }
      }
      for (const id of record.handoffIds) {
        const handoff = picture.handoffOf.get(id);
        const other = holder.get(id);
        if (other !== undefined) yield broken("C1.6", `handoff ${id} is in ${other} and in ${record.id}`);
        holder.set(id, record.id);
        if ((handoff?.deliveredAt ?? null) === null || handoff?.threadId !== threadId)
          yield broken("C1.6", `${record.id} has handoff ${id}, which was never delivered to ${path}`);
      }
      const before = picture.memory.providerThreads.get(record.id);
      if (before?.continuity === "divergent" && record.continuity === "ok")
        yield broken("C2.7", `${record.id} knew too much and is gone on with`);
    }
    for (const run of runs) {
      if (run.acceptedAt === null || run.binding === null) continue;
      // Later a rollback may have taken it out of there again.
      const before = picture.memory.runs.get(run.id);
      if (before === undefined || before.acceptedAt !== null) continue;
      const record = own.find(({ id }) => id === run.providerThreadId);
      if (record === undefined || !holdsOrdinal(record.nativeRunOrdinals, run.ordinal))
        yield broken("C4.13", `run ${run.ordinal} of ${path} was accepted and no provider thread knows it`);
      if (thread.activeProviderThreadId !== run.providerThreadId || agent.config.provider !== run.provider)
        yield broken("C4.16", `run ${run.ordinal} of ${path} was accepted and its thread is bound elsewhere`);
      for (const id of run.contextHandoffIds)
        if (holder.get(id) !== run.providerThreadId)
          yield broken("C4.13", `run ${run.ordinal} of ${path} was accepted without its handoff ${id}`);
    }
    const active = thread.activeProviderThreadId;
    if (active !== null && own.find(({ id }) => id === active)?.continuity !== "ok")
      yield broken("C2.7", `${path} is bound to ${active}, which is not its own or diverges`);
  }
}

/** A delta tells of what its provider thread does not know; only a whole history may tell again (S3-7). */
function* toldOnce(picture: Picture): Iterable<Violation> {
  for (const agent of threads(picture)) {
    for (const record of ownOf(picture, agent)) {
      if (record.continuity === "divergent") continue;
      let known: readonly OrdinalRange[] = record.nativeRunOrdinals;
      for (const id of record.handoffIds) {
        const handoff = picture.handoffOf.get(id);
        if (handoff === undefined || handoff.sourceThreadId !== agent.threadId) continue;
        const { coveredRuns, kind } = handoff;
        if (kind === "delta_context" && overlap(known, coveredRuns))
          yield broken(
            "S3-7",
            `${record.id} of ${agent.path} knew of ${describeOrdinals(known)} and was told of ${describeOrdinals(coveredRuns)}`,
          );
        known = unite(known, coveredRuns);
      }
    }
  }
}

export const transferFormulas: readonly Formula[] = [moves, barrier, texts, coverage, toldOnce];

/** Conversations of the thread itself, not those of a provider's own subagents. */
function ownOf({ providerThreadsOf }: Picture, { threadId }: AgentRecord): readonly ProviderThreadRecord[] {
  return (providerThreadsOf.get(threadId) ?? []).filter(({ ownerNodeId }) => ownerNodeId === null);
}
