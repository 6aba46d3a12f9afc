/**
 * Formulas over threads: their runs in order, the chain of their contexts, what was rolled back, and where a fork was taken
 * (lineage C1, C2.11, C5, C9, C11). Records from before threads have none of this and are left alone.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { holdsOrdinal } from "../protocol/ordinals.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import type { ContextReference, ThreadFacts } from "../protocol/thread.ts";
import { canonicalJson } from "../platform/canonical-json.ts";
import { EMPTY_CONTEXT, verifySnapshot } from "../lineage/snapshot.ts";
import { broken, type Formula, type Picture, type Violation } from "./invariants-picture.ts";

type Thread = AgentRecord & { readonly thread: ThreadFacts };

function* oneRunAndTheLast(picture: Picture): Iterable<Violation> {
  for (const agent of threads(picture)) {
    const open = runsOf(picture, agent).filter((run) => !isSettled(run));
    const last = open.at(-1);
    if (open.length > 1 || (last !== undefined && last.ordinal !== agent.runs))
      yield broken(
        "C1.1",
        `${agent.path} has ${agent.runs} runs, and unsettled are ${open.map(({ ordinal }) => ordinal).join(", ")}`,
      );
  }
}

/** What a thread is given at its birth. */
function* lasting(picture: Picture): Iterable<Violation> {
  for (const agent of threads(picture)) {
    const before = picture.memory.agents.get(agent.threadId);
    if (before === undefined || before === agent || before.thread === null) continue;
    if (agent.revision < before.revision)
      yield broken("C1.1", `${agent.path} went from revision ${before.revision} to ${agent.revision}`);
    const kept = ({ thread }: Thread): string =>
      canonicalJson({ agentId: thread.agentId, lineage: thread.lineage, forkedFrom: thread.forkedFrom });
    if (kept(agent) !== kept(before as Thread))
      yield broken("C1.1", `agent, lineage or origin of ${agent.path} has changed`);
  }
}

/** Gapless, each as it was sealed, and never written again. */
function* contexts(picture: Picture): Iterable<Violation> {
  const { view, memory } = picture;
  for (const agent of threads(picture)) {
    const { threadId, thread, path } = agent;
    const known = memory.contexts.get(threadId) ?? [];
    const newest = thread.currentContext?.revision ?? 0;
    if (newest < known.length)
      yield broken("C1.1", `the context of ${path} went from revision ${known.length} to ${newest}`);
    const digests = [...known];
    for (let revision = known.length + 1; revision <= newest; revision += 1) {
      const record = view.snapshot(threadId, revision);
      const digest = record?.digest ?? "";
      digests.push(digest);
      try {
        verifySnapshot(record, { threadId, revision, digest });
      } catch {
        yield broken(
          "C2.11",
          `revision ${revision} of the context of ${path} is missing or not as it was sealed`,
        );
      }
    }
    const { revision, digest } = thread.currentContext ?? EMPTY_CONTEXT;
    if (
      revision > 0 &&
      (digests[revision - 1] !== digest || view.snapshot(threadId, revision)?.digest !== digest)
    )
      yield broken("C1.1", `${path} names another digest of revision ${revision} than its snapshot has`);
    if (view.snapshot(threadId, newest + 1) !== undefined)
      yield broken("C11.6", `${path} stands at revision ${newest} and has a snapshot beyond`);
    memory.contexts.set(threadId, digests);
  }
}

/** Each run opens on the newest snapshot and, once settled, leaves the next one; what lies between was left by rollbacks. */
function* chain(picture: Picture): Iterable<Violation> {
  const { view, memory } = picture;
  for (const agent of threads(picture)) {
    const { threadId, path } = agent;
    const digests = memory.contexts.get(threadId) ?? [];
    let revision = 0;
    for (const run of runsOf(picture, agent)) {
      const { binding, ordinal } = run;
      if (binding === null) continue;
      const settledNow = memory.runs.get(run.id) !== run;
      const opened = binding.contextRevision;
      if (settledNow) {
        const digest = opened === 0 ? EMPTY_CONTEXT.digest : digests[opened - 1];
        if (binding.id !== threadId || binding.contextDigest !== digest)
          yield broken("C11.10", `run ${ordinal} of ${path} does not name what it opened on by its digest`);
        for (let at = revision + 1; at <= opened; at += 1)
          if (view.snapshot(threadId, at)?.supersedesRevisions === undefined)
            yield broken("C2.11", `no run and no rollback has left revision ${at} of the context of ${path}`);
        const inherited = opened === 0 ? (agent.thread.forkedFrom?.context ?? null) : null;
        if (canonicalJson(binding.inherited ?? null) !== canonicalJson(inherited))
          yield broken("C5.5", `run ${ordinal} of ${path} does not name what its thread inherits`);
        if (opened < revision) yield broken("C2.11", `run ${ordinal} of ${path} opened on an old context`);
        const next = run.nextContextRevision;
        if (isSettled(run) ? next !== opened + 1 : next !== null)
          yield broken(
            "C1.3",
            `run ${ordinal} of ${path} opened on ${opened}, is ${run.status} and has left ${next}`,
          );
      }
      revision = run.nextContextRevision ?? opened;
    }
  }
}

/** The sets that a thread holds of its runs say the same as the runs. */
function* takenBack(picture: Picture): Iterable<Violation> {
  for (const agent of threads(picture)) {
    const { thread, path } = agent;
    for (const run of runsOf(picture, agent)) {
      if (run.binding === null) continue;
      const gone = holdsOrdinal(thread.rolledBack, run.ordinal);
      if (gone !== (run.status === "rolled_back") || gone !== (run.rolledBack !== null))
        yield broken(
          "C9.3",
          `${path} holds run ${run.ordinal} as ${gone ? "rolled back" : "retained"}, and it is ${run.status}`,
        );
      const isVoid = isSettled(run) && run.acceptedAt === null;
      if (holdsOrdinal(thread.voided, run.ordinal) !== isVoid)
        yield broken(
          "C4.5",
          `run ${run.ordinal} of ${path} was ${isVoid ? "never" : ""} accepted; its thread says otherwise`,
        );
    }
  }
}

/** A message is the user's again, or it was sent; never both (C2.9). */
function* drafts(picture: Picture): Iterable<Violation> {
  const { view } = picture;
  for (const agent of threads(picture)) {
    const draft = view.draft(agent.threadId);
    if (draft === undefined) continue;
    const { clearedAt, createdAt, sourceMessageId, threadId } = draft;
    if (threadId !== agent.threadId || (sourceMessageId !== null && view.mail(sourceMessageId) === undefined))
      yield broken("C1.15", `the draft of ${agent.path} is of a thread or a message that is not there`);
    const sent = runsOf(picture, agent).find(
      ({ acceptedAt, causes }) =>
        acceptedAt !== null &&
        acceptedAt > createdAt &&
        causes.some(({ mailId }) => view.mail(mailId)?.kind === "user"),
    );
    if (clearedAt === null && sent !== undefined)
      yield broken(
        "C2.9",
        `run ${sent.ordinal} of ${agent.path} was accepted and the draft from before is still there`,
      );
  }
}

/** What a fork points at is there, and as it was. */
function* origins(picture: Picture): Iterable<Violation> {
  const { view, memory } = picture;
  for (const agent of threads(picture)) {
    const origin = agent.thread.forkedFrom;
    if (origin === null || memory.agents.get(agent.threadId)?.revision === agent.revision) continue;
    const { point, context } = origin;
    const source = view.agent(point.threadId);
    const inside = source !== undefined && point.ordinal <= source.runs && point.items <= source.items;
    if (!inside || (point.runId !== null && view.run(point.runId)?.threadId !== point.threadId))
      yield broken("C5.4", `${agent.path} was forked from a point that ${point.threadId} does not have`);
    if (context !== null && !same(view.snapshot(context.threadId, context.revision), context))
      yield broken("C5.5", `the context that ${agent.path} inherits is not what it was at the fork`);
    if (view.transfer(origin.transferId)?.type !== "fork")
      yield broken("C5.4", `${agent.path} was forked and has no transfer of it`);
  }
}

function same(found: ContextReference | undefined, wanted: ContextReference): boolean {
  return found?.revision === wanted.revision && found.digest === wanted.digest;
}

export const threadFormulas: readonly Formula[] = [
  oneRunAndTheLast,
  lasting,
  contexts,
  chain,
  takenBack,
  drafts,
  origins,
];

export function* threads({ agents }: Picture): Iterable<Thread> {
  for (const agent of agents) if (agent.thread !== null) yield agent as Thread;
}

export function runsOf(picture: Picture, { threadId }: AgentRecord): readonly RunRecord[] {
  return (picture.runsOf.get(threadId) ?? []).toSorted((a, b) => a.ordinal - b.ordinal);
}
