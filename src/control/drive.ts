/**
 * From an admitted agent to a run that is driven: load, reserve or resume, loop, and what follows when it ends.
 *
 * - V1 An agent is loaded before its run is reserved: what cannot be loaded has no run to lose.
 * - V2 A drive belongs to one generation of its session. After a stop, an unload or a loss it is another's business; its
 *   late answers are refused by the store, which knows the run as settled.
 * - V3 An agent is started once at a time: while it is, nobody else is admitted for it (`dispatch.ts`).
 */
import { describeError, InterruptedError, TransientError } from "../protocol/errors.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import { endSpan, failureOf } from "../platform/telemetry.ts";
import { driveRun } from "../session/run-loop.ts";
import type { Session } from "../session/session.ts";
import { closeSession } from "./close-session.ts";
import { cancel, type Grant } from "./dispatch.ts";
import { drop, letGo } from "./let-go.ts";
import { load, onProviderOfRun } from "./load.ts";
import { loadHasFailed } from "./load-failure.ts";
import { wakeIfDue } from "./recovery.ts";
import { RunClock } from "./run-clock.ts";
import { RunJournal } from "./run-journal.ts";
import { endRunSpan, startRunSpan } from "./run-span.ts";
import { reserveRun, resumeRun } from "./runs.ts";
import type { Transaction } from "./transaction.ts";
import type { Candidate, Tree } from "./tree.ts";

/** How an admitted agent comes to its run. */
interface Way {
  /** Null when there is nothing to do any more. */
  readonly take: (tx: Transaction, session: Session) => RunRecord | "rate" | "elsewhere" | null;
  readonly event: "RESERVE" | "RESUME";
  /** Its first request was composed long ago. */
  readonly composed: boolean;
}

const BEGIN: Way = {
  take: (tx, { agent }) => reserveRun(tx, agent.threadId, agent.config.provider),
  event: "RESERVE",
  composed: false,
};

const GO_ON: Way = {
  take(tx, session) {
    const run = session.run === null ? undefined : tx.store.run(session.run.id);
    return run?.status === "waiting" ? resumeRun(tx, run.id) : null;
  },
  event: "RESUME",
  composed: true,
};

/** An admitted agent begins a new run for its trigger-turn mail. */
export function begin(tree: Tree, candidate: Candidate, grant: Grant): void {
  tree.track(start(tree, candidate, grant, BEGIN));
}

/** An admitted agent goes on after its waits. */
export function goOn(tree: Tree, candidate: Candidate, grant: Grant): void {
  tree.track(
    start(tree, candidate, grant, GO_ON).then((found) => (found ? undefined : wakeAgain(tree, candidate))),
  );
}

/**
 * Its run was over when its turn came, or may not begin yet: mail that waits for the next one has it queued again. An
 * interrupt may have ended all of that meanwhile, so the store is asked.
 */
async function wakeAgain(tree: Tree, { threadId }: Candidate): Promise<void> {
  if (tree.state !== "owned") return;
  try {
    await tree.transact((tx) => wakeIfDue(tx, threadId));
  } catch (error) {
    tree.shared.logger.warn({ threadId, err: error }, "an agent could not be woken");
  }
}

/**
 * Loads the session, takes its run and drives it; a grant that is not used is given back, and what fails is taken care of.
 * Resolves with false when there was nothing to do.
 */
async function start(tree: Tree, candidate: Candidate, grant: Grant, way: Way): Promise<boolean> {
  const { threadId } = candidate;
  const place = tree.starting.hold(threadId);
  const fresh = !tree.sessions.has(threadId);
  let asked = false;
  try {
    const session = await load(tree, threadId);
    if (fresh) grant.slot.commit();
    // A cut-off provider of the run before has its grace time; the next run does not overlap with it.
    await session.drive;
    // Nor with the capture of what a run has left that was settled since this one was admitted.
    await tree.jobs.of(threadId);
    // Nor with a checkpoint that is written back there for another agent; until the run is stored, none is.
    const { workspace } = session.agent.config;
    using _ = workspace === null ? null : await tree.shared.folders.share(workspace);
    // Who dropped it meanwhile sees to its run, and to the wake that follows.
    asked = isLoaded(tree, session);
    let run = asked ? await take(tree, session, candidate, grant, way, fresh) : null;
    // Its mail wants another provider than the session has: that one is opened before this one is let go (lineage C4.16).
    while (run === "elsewhere") {
      await onProviderOfRun(tree, session);
      run = isLoaded(tree, session) ? await take(tree, session, candidate, grant, way, fresh) : null;
    }
    if (run === "rate") {
      // Held first: it would be admitted again at once.
      tree.reactions.rateReached(tree);
      await wakeAgain(tree, candidate);
    }
    if (run === null || run === "rate") {
      grant[Symbol.dispose]();
      return false;
    }
    // Not so when the run was settled, or its session dropped or behind the store, while the commit was under way.
    if (isLoaded(tree, session) && session.run?.id === run.id) startDrive(tree, session);
    else await letGo(tree, threadId, "its run was over before it began", grant);
  } catch (error) {
    if (asked && error instanceof TransientError) {
      // What failed may have been stored all the same.
      tree.shared.logger.warn({ threadId, err: error }, "an agent could not be started");
      await letGo(tree, threadId, describeError(error), grant);
    } else {
      grant[Symbol.dispose]();
      if (fresh) drop(tree, threadId, describeError(error));
      await loadHasFailed(tree, candidate, error);
    }
  } finally {
    place[Symbol.dispose]();
    // What waited for this start to be over; and it may have been the last that waited to run, with nothing to do.
    tree.reactions.drained(tree);
  }
  return true;
}

/** The commit with which the run is this session's. */
async function take(
  tree: Tree,
  session: Session,
  candidate: Candidate,
  grant: Grant,
  { take: taken, event, composed }: Way,
  fresh: boolean,
): Promise<RunRecord | "rate" | "elsewhere" | null> {
  const { threadId } = candidate;
  const found = await tree.transact(
    (tx) => {
      // The first commit of a loaded session says that it is one.
      if (fresh) wasLoaded(tx, threadId);
      const { items } = tx.agent(threadId);
      return { run: taken(tx, session), agent: tx.agent(threadId), items };
    },
    ({ run, agent, items }) => {
      if (run === null || run === "rate" || run === "elsewhere" || !isLoaded(tree, session)) return;
      // It has missed what a commit of unknown outcome stored: the run is not for this session.
      if (session.items.length !== items || (session.run ?? run).id !== run.id) return;
      session.agent = { ...agent, config: session.agent.config };
      session.run = run;
      session.ran = true;
      session.lifecycle.send(event);
      tree.runs.set(threadId, {
        runId: run.id,
        candidate,
        grant,
        clock: null,
        holds: new Set(),
        returning: 0,
        composed,
        drainedSeq: 0,
      });
      // What it still waits for in the queue is this run's by now.
      cancel(tree, threadId);
    },
  );
  return found.run;
}

function isLoaded(tree: Tree, session: Session): boolean {
  return tree.sessions.get(session.agent.threadId) === session;
}

function wasLoaded(tx: Transaction, threadId: ThreadId): void {
  const agent = tx.agent(threadId);
  if (agent.loadFailures > 0) tx.putAgent(agent, { loadFailures: 0 });
  tx.emit("agent.loaded", agent);
  tx.effects.mail.add(threadId);
}

/** Starts the loop of the session's current run. */
function startDrive(tree: Tree, session: Session): void {
  const abort = new AbortController();
  session.abort = abort;
  session.generation += 1;
  const generation = session.generation;
  const driven = drive(tree, session, abort.signal, generation);
  tree.track(driven);
  session.drive = driven.finally(() => {
    if (session.generation !== generation) return;
    session.drive = null;
    // An idle session keeps no signal: it weighs as much as the rest of it.
    session.abort = null;
  });
}

async function drive(tree: Tree, session: Session, signal: AbortSignal, generation: number): Promise<void> {
  const run = session.run!;
  const span = await startRunSpan(tree, session.agent, run);
  try {
    using clock = new RunClock(tree, session);
    const active = tree.runs.get(session.agent.threadId);
    if (active?.runId === run.id) active.clock = clock;
    await driveRun(session, new RunJournal(tree, session, { abort: signal, clock }, span), signal);
    await endRunSpan(tree, span, run);
  } catch (error) {
    endSpan(span, { failure: failureOf(error) }, tree.redact);
    // Stopped, unloaded or lost: whoever did it has seen to the rest.
    const isOthers = (): boolean =>
      session.generation !== generation || signal.aborted || tree.state !== "owned";
    if (isOthers()) return;
    // Of a run that was settled memory hears in a moment. A run that nobody has stopped is not left open by one that says so.
    if (error instanceof InterruptedError && (await isOver(tree, run.id))) return;
    if (isOthers()) return;
    const { threadId } = session.agent;
    tree.shared.logger.error({ threadId, runId: run.id, err: error }, "a run was dropped");
    await letGo(tree, threadId, describeError(error));
  }
}

async function isOver(tree: Tree, runId: RunId): Promise<boolean> {
  try {
    return await tree.read((view) => isSettled(view.run(runId)!));
  } catch (error) {
    tree.shared.logger.warn({ treeId: tree.treeId, runId, err: error }, "a run could not be read");
    return false;
  }
}

/** A run was settled from the store: its drive ends, within the grace time or without being waited for (INT-3). */
export function stop(tree: Tree, threadId: ThreadId, runId: RunId, why: string): void {
  const session = tree.sessions.get(threadId);
  if (session?.run?.id !== runId) return;
  const native = session.provider.loop === "theirs" ? session.provider : null;
  // A turn whose run waited goes on without a drive.
  const drive = session.drive ?? native?.stop() ?? null;
  session.abort?.abort(new InterruptedError("RUN_INTERRUPTED", `run ${runId} was stopped: ${why}.`, { why }));
  session.generation += 1;
  session.partialText = "";
  if (drive === null) return;
  if (session.lifecycle.can("INTERRUPT")) session.lifecycle.send("INTERRUPT");
  const cut = Promise.withResolvers<void>();
  const timer = tree.shared.clock.setTimer(tree.limits.interruptGraceMs, cut.resolve);
  if (session.drive === null) session.ending = drive;
  session.drive = Promise.race([drive, cut.promise]).finally(() => {
    timer.cancel();
    // It has not ended its turn: its session is closed under it, and the next run gets another.
    if (native !== null && native.turn !== null) tree.track(closeSession(tree, session));
    session.drive = null;
    if (session.lifecycle.state === "interrupting") session.lifecycle.send("DRAINED");
    tree.reactions.drained(tree);
  });
}
