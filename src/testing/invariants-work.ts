/** Formulas over works: each ends once, each open one can go on, each answer comes once (WRK, and the note under Words of state). */
import type { WorkId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import { isSettled } from "../protocol/run.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { spentScope } from "../control/spent-scope.ts";
import { broken, type Formula, type Picture, type Violation } from "./invariants-picture.ts";

function* endings(picture: Picture): Iterable<Violation> {
  for (const work of picture.works) {
    const before = picture.memory.works.get(work.id);
    if (before === work) continue;
    if ((work.state === "ended") !== (work.outcome !== null)) {
      yield broken(
        "WRK-3",
        `work ${work.id} is ${work.state} and its outcome is ${work.outcome?.ending ?? "missing"}`,
      );
    }
    if (before?.state === "ended" && (work.state !== "ended" || !sameOutcome(picture, before, work))) {
      yield broken(
        "WRK-3",
        `work ${work.id} had ended ${before.outcome?.ending} and is now ${work.state} ${work.outcome?.ending}`,
      );
    }
    if (work.state === "ended" && work.servedBy !== null)
      yield broken("WRK-3", `work ${work.id} has ended and is served`);
  }
  for (const id of picture.memory.works.keys()) {
    if (!picture.workOf.has(id)) yield broken("MBX-1", `work ${id} is gone`);
  }
}

function sameOutcome({ view }: Picture, a: WorkRecord, b: WorkRecord): boolean {
  // A result is kept back because who had asked for it was rolled back, or is sent after all (lineage C8.9).
  const sent = a.resultMailId === null && b.resultMailId !== null;
  const held = a.resultMailId !== null && b.resultMailId === null;
  const keptBack = held && view.mail(a.resultMailId)?.state === "superseded";
  const same = a.outcome?.ending === b.outcome?.ending && a.outcome?.endedAt === b.outcome?.endedAt;
  if (sent || keptBack) return same;
  return same && a.outcome?.text === b.outcome?.text && a.resultMailId === b.resultMailId;
}

function* openUnder(picture: Picture): Iterable<Violation> {
  const counted = new Map<string, number>();
  for (const work of picture.works) {
    if (work.state === "ended" && !work.resultPending) continue;
    for (const id of work.holds) counted.set(id, (counted.get(id) ?? 0) + 1);
  }
  for (const work of picture.works) {
    const under = counted.get(work.id) ?? 0;
    if (work.openUnder !== under)
      yield broken("WRK-4", `openUnder of ${name(work)} is ${work.openUnder}, counted ${under}`);
    if (work.state === "ended" && under > 0)
      yield broken("WRK-4", `${name(work)} has ended and ${under} works still hold it`);
    if (work.state === "awaiting_children" && under === 0)
      yield broken("WRK-4", `${name(work)} awaits nothing`);
  }
}

/** Every open work has a running or queued run of its executor, an open work under it, or mail that will start one. */
function* alive(picture: Picture): Iterable<Violation> {
  for (const work of picture.works) {
    if (work.state === "ended") continue;
    const executor = picture.agentOf.get(work.executor);
    if (executor === undefined || executor.state !== "open") {
      yield broken("INT-7", `${name(work)} is open and its executor is ${executor?.state ?? "unknown"}`);
      continue;
    }
    const fault = faultOf(picture, work);
    if (fault !== null) yield broken("WRK-4", `${name(work)} is ${work.state} and ${fault}`);
  }
}

function faultOf(picture: Picture, work: WorkRecord): string | null {
  const { view } = picture;
  switch (work.state) {
    case "queued": {
      const asks = [work.requestMailId, work.retryMailId].map((id) =>
        id === null ? undefined : view.mail(id),
      );
      // Where an interrupt turns requests queue-only, the next trigger takes them along.
      const shelved = picture.profile.interruptQueuesTriggers;
      return asks.some((mail) => mail?.state === "accepted" && (mail.trigger || shelved))
        ? null
        : "no mail will start a run for it";
    }
    case "running": {
      const run = work.servedBy === null ? undefined : view.run(work.servedBy);
      if (run === undefined) return "no run serves it";
      if (isSettled(run)) return `its run ${run.id} is ${run.status}`;
      return run.threadId === work.executor && run.serves.includes(work.id)
        ? null
        : `its run ${run.id} does not serve it`;
    }
    case "awaiting_children":
      return awaitingFault(picture, work);
    case "ended":
      return null;
  }
}

function awaitingFault(picture: Picture, work: WorkRecord): string | null {
  const executor = picture.agentOf.get(work.executor);
  const under = picture.view.worksUnder(work.id).filter((child) => child.holds.includes(work.id));
  if (under.some((child) => child.state !== "ended")) return null;
  const pending = under.filter((child) => child.resultPending);
  const results = (picture.mailOf.get(work.executor) ?? []).filter(
    (mail) => mail.state === "accepted" && pending.some((child) => child.id === mail.resultOf),
  );
  if (results.some((mail) => mail.trigger || executor?.currentRun !== null)) return null;
  return `the results under it (${results.map((mail) => mail.seq).join(", ") || "none unread"}) will start no run`;
}

/** One result mail and one transfer for each ended work that an agent is owed, and none for any other. */
function* results(picture: Picture): Iterable<Violation> {
  if (picture.profile.results !== "per_work") return;
  const mails = new Map<string, MailRecord[]>();
  for (const rows of picture.mailOf.values()) {
    for (const mail of rows) {
      if (mail.resultOf === null || mail.kind !== "final_answer") continue;
      // Kept back because of a rollback before anybody had it (lineage C8.9).
      if (mail.state === "superseded" && mail.runId === null) continue;
      mails.set(mail.resultOf, [...(mails.get(mail.resultOf) ?? []), mail]);
    }
  }
  const transfers = new Map<string, number>();
  const kept = new Set<WorkId>();
  for (const transfer of picture.transfers) {
    if (transfer.staleBase && transfer.workId !== null) kept.add(transfer.workId);
    const key = transfer.type === "subagent_spawn" ? transfer.targetThreadId : transfer.workId;
    const about = `${transfer.type} ${key}`;
    transfers.set(about, (transfers.get(about) ?? 0) + 1);
  }
  for (const work of picture.works) {
    const wanted = work.state === "ended" && work.replyTo !== null ? 1 : 0;
    const sent = mails.get(work.id)?.length ?? 0;
    const moved = transfers.get(`subagent_result ${work.id}`) ?? 0;
    if (sent !== (kept.has(work.id) ? 0 : wanted))
      yield broken("WRK-5", `${name(work)} is ${work.state} and has ${sent} result mails`);
    if (moved !== wanted)
      yield broken("WRK-5", `${name(work)} is ${work.state} and has ${moved} result transfers`);
  }
  for (const agent of picture.agents) {
    const spawned = transfers.get(`subagent_spawn ${agent.threadId}`) ?? 0;
    if (spawned !== (agent.parent === null ? 0 : 1))
      yield broken("SPN-2", `${agent.path} has ${spawned} spawn transfers`);
  }
}

/** `resultPending` says whether the result is still on its way. */
function* pendingResults(picture: Picture): Iterable<Violation> {
  for (const work of picture.works) {
    if (!work.resultPending) continue;
    const carried = picture.agents.some((agent) =>
      picture.mailOf
        .get(agent.threadId)
        ?.some((mail) => mail.resultOf === work.id && mail.state === "accepted"),
    );
    if (!carried) yield broken("WRK-4", `the result of ${name(work)} is pending and no mail carries it`);
  }
}

/** No work ends `completed` by a run that has not taken its request. */
function* answered(picture: Picture): Iterable<Violation> {
  for (const work of picture.works) {
    if (picture.memory.works.get(work.id) === work || work.outcome?.ending !== "completed") continue;
    const request = picture.view.mail(work.requestMailId);
    const taken = request?.state === "delivered" || request?.state === "settled";
    // Its run was rolled back since.
    if (!taken && request?.state !== "superseded") {
      yield broken("MBX-4", `${name(work)} is completed and its request is ${request?.state ?? "unknown"}`);
    }
  }
}

/** A result that no parent holds wakes an idle agent whose last run was completed, unless it was asked never to. */
function* wakes(picture: Picture): Iterable<Violation> {
  if (picture.profile.results !== "per_work") return;
  for (const agent of picture.agents) {
    if (agent.state !== "open" || agent.currentRun !== null || agent.lastOutcome?.status !== "completed")
      continue;
    // A rollback and its undo change the last outcome and start nothing: what was kept back then waits for the next run.
    if (agent.thread?.lastRollback?.of === agent.runs) continue;
    for (const mail of picture.mailOf.get(agent.threadId) ?? []) {
      if (mail.state !== "accepted" || mail.trigger || mail.resultOf === null || mail.redirectedFrom !== null)
        continue;
      const work = picture.workOf.get(mail.resultOf);
      if (work === undefined || work.wake === "never" || work.holds.length > 0) continue;
      // What a spent budget ends wakes nobody in its scope (BUD-2).
      if (work.outcome?.ending === "budget_exhausted") continue;
      if (spentScope(picture.tree.exhausted, agent.path) !== null) continue;
      yield broken("WAI-1", `${agent.path} is idle and the result of ${name(work)} does not wake it`);
    }
  }
}

export const workFormulas: readonly Formula[] = [
  endings,
  openUnder,
  alive,
  results,
  pendingResults,
  answered,
  wakes,
];

function name(work: WorkRecord): string {
  return `work ${work.id} of ${work.executorPath}`;
}
