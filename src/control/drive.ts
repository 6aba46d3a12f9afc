/**
 * From an admitted agent to a run that is driven: load, reserve or resume, loop, and what follows when it ends.
 *
 * - V1 An agent is loaded before its run is reserved: what cannot be loaded has no run to lose.
 * - V2 A drive belongs to one generation of its session. After a stop, an unload or a loss it is another's business; its
 *   late answers are refused by the store, which knows the run as settled.
 */
import { describeError, InterruptedError, TransientError } from "../protocol/errors.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { endSpan, failureOf } from "../platform/telemetry.ts";
import { driveRun } from "../session/run-loop.ts";
import type { Session } from "../session/session.ts";
import { closeSession } from "./close-session.ts";
import type { Grant } from "./dispatch.ts";
import { forget, load } from "./load.ts";
import { loadHasFailed } from "./load-failure.ts";
import { RunClock } from "./run-clock.ts";
import { RunJournal } from "./run-journal.ts";
import { endRunSpan, startRunSpan } from "./run-span.ts";
import { reserveRun, resumeRun } from "./runs.ts";
import type { Transaction } from "./transaction.ts";
import type { Candidate, Tree } from "./tree.ts";

/** An admitted agent begins a new run for its trigger-turn mail. */
export function begin(tree: Tree, candidate: Candidate, grant: Grant): void {
  void withGrant(tree, candidate, grant, async (session, tellLoad) => {
    const reserved = await tree.transact(
      (tx) => {
        tellLoad(tx);
        const run = reserveRun(tx, candidate.threadId);
        return run === null || run === "rate" ? run : { run, agent: tx.agent(candidate.threadId) };
      },
      (value) => {
        if (value === null || value === "rate" || !isLoaded(tree, session)) return;
        session.agent = { ...value.agent, config: session.agent.config };
        session.run = value.run;
        session.ran = true;
        session.lifecycle.send("RESERVE");
        tree.runs.set(candidate.threadId, {
          runId: value.run.id,
          candidate,
          grant,
          composed: false,
          drainedSeq: 0,
        });
      },
    );
    if (reserved === "rate") tree.reactions.rateReached(tree, candidate);
    if (reserved === null || reserved === "rate" || !isOurs(tree, session, reserved.run.id)) return false;
    startDrive(tree, session);
    return true;
  });
}

/** An admitted agent goes on after its waits. */
export function goOn(tree: Tree, candidate: Candidate, grant: Grant): void {
  void resume(tree, candidate, grant).then((resumed) => (resumed ? undefined : wakeAgain(tree, candidate)));
}

function resume(tree: Tree, candidate: Candidate, grant: Grant): Promise<boolean> {
  return withGrant(tree, candidate, grant, async (session, tellLoad) => {
    const runId = session.run?.id;
    const resumed = await tree.transact(
      (tx) => {
        tellLoad(tx);
        const run = runId === undefined ? undefined : tx.store.run(runId);
        return run?.status === "waiting"
          ? { run: resumeRun(tx, run.id), agent: tx.agent(candidate.threadId) }
          : null;
      },
      (value) => {
        if (value === null || !isLoaded(tree, session)) return;
        session.agent = { ...value.agent, config: session.agent.config };
        session.run = value.run;
        session.lifecycle.send("RESUME");
        tree.runs.set(candidate.threadId, {
          runId: value.run.id,
          candidate,
          grant,
          composed: true,
          drainedSeq: 0,
        });
      },
    );
    if (resumed === null || !isOurs(tree, session, resumed.run.id)) return false;
    startDrive(tree, session);
    return true;
  });
}

/** Its run was over when its turn came; mail that waits for the next one may have stood behind it in the queue. */
async function wakeAgain(tree: Tree, { threadId }: Candidate): Promise<void> {
  if (tree.state !== "owned") return;
  try {
    await tree.transact((tx) => {
      const due = tx.agent(threadId).currentRun === null && tx.store.mailbox(threadId).triggers > 0;
      if (due) tx.effects.wake.add(threadId);
    });
  } catch (error) {
    tree.shared.logger.warn({ threadId, err: error }, "an agent could not be woken");
  }
}

/** Not so when the run was settled, or the tree given up, while its commit was under way. */
function isOurs(tree: Tree, session: Session, runId: RunId): boolean {
  return tree.state === "owned" && isLoaded(tree, session) && session.run?.id === runId;
}

function isLoaded(tree: Tree, session: Session): boolean {
  return tree.sessions.get(session.agent.threadId) === session;
}

/**
 * Loads the session and hands it on; a grant that is not used is given back, and what fails is taken care of. Resolves with
 * false when there was nothing to do.
 */
async function withGrant(
  tree: Tree,
  candidate: Candidate,
  grant: Grant,
  use: (session: Session, tellLoad: (tx: Transaction) => void) => Promise<boolean>,
): Promise<boolean> {
  const { threadId } = candidate;
  const fresh = !tree.sessions.has(threadId);
  // The first commit of a loaded session says that it is one.
  const tellLoad = (tx: Transaction): void => {
    if (fresh) wasLoaded(tx, threadId);
  };
  tree.starting.add(threadId);
  try {
    const session = await load(tree, threadId);
    if (fresh) grant.slot.commit();
    // A cut-off provider of the run before has its grace time; the next run does not overlap with it.
    await session.drive;
    // Who dropped it meanwhile sees to its run, and to the wake that follows.
    const used = tree.sessions.get(threadId) === session && (await use(session, tellLoad));
    if (!used) grant[Symbol.dispose]();
    return used;
  } catch (error) {
    if (error instanceof TransientError) await settleDoubt(tree, threadId);
    grant[Symbol.dispose]();
    if (fresh) drop(tree, threadId);
    await loadHasFailed(tree, candidate, error);
    return true;
  } finally {
    tree.starting.delete(threadId);
    // It may have been the last that waited to run, and have had nothing to do.
    tree.watchers.changed();
  }
}

function wasLoaded(tx: Transaction, threadId: ThreadId): void {
  const agent = tx.agent(threadId);
  if (agent.loadFailures > 0) tx.putAgent(agent, { loadFailures: 0 });
  tx.emit("agent.loaded", agent);
  tx.effects.mail.add(threadId);
}

/** Out of memory, with its slot; what is stored knows nothing of it. */
function drop(tree: Tree, threadId: ThreadId): void {
  const session = tree.sessions.get(threadId);
  forget(tree, threadId);
  tree.residency.release(threadId);
  if (session !== undefined) void closeSession(tree, session);
}

/** What failed may have been stored all the same: the permit is held until the store has decided about the run (EXE-4). */
async function settleDoubt(tree: Tree, threadId: ThreadId): Promise<void> {
  const runId = await tree.read((view) => view.agent(threadId)?.currentRun ?? null).catch(() => null);
  const session = tree.sessions.get(threadId);
  // One that is driven was begun by another wake, which was told.
  const driven = session?.run?.id === runId && (session?.drive ?? null) !== null;
  if (runId !== null && !driven) await tree.reactions.dropped(tree, runId);
}

/** Starts the loop of the session's current run. */
function startDrive(tree: Tree, session: Session): void {
  const abort = new AbortController();
  session.abort = abort;
  session.generation += 1;
  const generation = session.generation;
  session.drive = drive(tree, session, abort.signal, generation).finally(() => {
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
    await driveRun(
      session,
      new RunJournal(tree, session, { abort: signal, timeUp: clock.over }, span),
      signal,
    );
    await endRunSpan(tree, span, run);
  } catch (error) {
    endSpan(span, { failure: failureOf(error) }, tree.redact);
    // Stopped, unloaded or lost: whoever did it has seen to the rest.
    if (session.generation !== generation || signal.aborted || tree.state !== "owned") return;
    if (error instanceof InterruptedError) return;
    await dropRun(tree, session, error);
  }
}

/**
 * The store or the runtime itself has failed under a run. Memory must not run ahead of the store (REC-3): the session is
 * forgotten, and what is stored decides what happens next, as after a crash.
 */
async function dropRun(tree: Tree, session: Session, error: unknown): Promise<void> {
  const { threadId } = session.agent;
  const runId = session.run?.id;
  tree.shared.logger.error({ threadId, runId, err: error }, "a run was dropped");
  const grant = tree.runs.get(threadId)?.grant;
  forget(tree, threadId);
  tree.residency.release(threadId);
  session.abort?.abort(new InterruptedError("RUN_INTERRUPTED", describeError(error)));
  void closeSession(tree, session);
  if (runId !== undefined) await tree.reactions.dropped(tree, runId);
  // Until the store has it settled the run counts as running (EXE-4).
  grant?.[Symbol.dispose]();
}

/** Memory has missed what was stored of this agent: it is forgotten, and loaded again when it has something to do. */
export async function dropStale(tree: Tree, session: Session): Promise<void> {
  if (isLoaded(tree, session))
    await dropRun(
      tree,
      session,
      new InterruptedError("RUN_INTERRUPTED", "its transcript went on without it"),
    );
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
    if (native !== null && native.turn !== null) void closeSession(tree, session);
    session.drive = null;
    if (session.lifecycle.state === "interrupting") session.lifecycle.send("DRAINED");
    tree.reactions.drained(tree);
  });
}
