/** What becomes of an agent that could not be loaded or started (RES-8, RES-9, REC-3). */
import { CoppiceError, describeError } from "../protocol/errors.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { MailRecord } from "../protocol/mail.ts";
import { keepUnsent } from "./drafts.ts";
import { closeOpenCalls } from "./interrupt.ts";
import { setTrigger } from "./mail-states.ts";
import { appendItems } from "./runs.ts";
import { settleRun } from "./settle.ts";
import type { Transaction } from "./transaction.ts";
import type { Candidate, Tree } from "./tree.ts";
import { resumeWhenFree } from "./wait-ends.ts";
import { endWork, worksAskedBy } from "./works.ts";
import { unreadOf } from "./unread.ts";

/** Loads are tried so often while their failure is retryable. */
const TRIES = 3;
const FIRST_DELAY_MS = 500;

export async function loadHasFailed(tree: Tree, candidate: Candidate, error: unknown): Promise<void> {
  if (tree.state !== "owned") return;
  const code = CoppiceError.is(error) ? error.code : "INVARIANT_BROKEN";
  tree.shared.logger.warn(
    { threadId: candidate.threadId, path: candidate.path, err: error },
    "an agent could not be started",
  );
  try {
    if (code === "PROVIDER_NOT_CONFIGURED" || code === "TOOL_NOT_CONFIGURED") {
      await tree.transact((tx) =>
        tx.emit(
          "agent.blocked",
          tx.agent(candidate.threadId),
          {},
          { code, message: tx.context.redact(describeError(error)) },
        ),
      );
      return;
    }
    // Nothing is left to load it for: `RUN_INTERRUPTED` says so of a load that was under way.
    if (code === "AGENT_CLOSED" || code === "RUN_INTERRUPTED") return;
    // The store has failed, not the load: what is stored says what is to be done.
    if (code !== "LOAD_FAILED" && code !== "THREAD_CONTEXT_TAMPERED") return tree.reactions.doubtful(tree);
    const retryable = CoppiceError.is(error) && error.details["retryable"] === true;
    const again = await tree.transact((tx) => countFailure(tx, candidate, error, retryable));
    if (again !== null) retryLater(tree, candidate, again);
  } catch (failure) {
    tree.shared.logger.error(
      { threadId: candidate.threadId, err: failure },
      "a failed load could not be recorded",
    );
    tree.reactions.doubtful(tree);
  }
}

/** Answers the delay before the next try, or null when the pending works were ended. */
function countFailure(
  tx: Transaction,
  candidate: Candidate,
  error: unknown,
  retryable: boolean,
): number | null {
  const before = tx.agent(candidate.threadId);
  const failures = before.loadFailures + 1;
  const agent = tx.putAgent(before, { loadFailures: failures });
  tx.emit(
    "agent.load_failed",
    agent,
    {},
    {
      reason: CoppiceError.is(error) ? (error.details["reason"] ?? null) : null,
      message: tx.context.redact(describeError(error)),
      failures,
      retryable,
    },
  );
  if (retryable && failures < TRIES) return FIRST_DELAY_MS * 2 ** (failures - 1);
  endPending(tx, agent, error);
  tx.putAgent(tx.agent(agent.threadId), { loadFailures: 0 });
  return null;
}

/**
 * Queue-only mail stays, and the agent stays addressable. A run that was parked ends with its works; what the user has asked
 * for and nobody was sent is a draft (C4.9).
 */
function endPending(tx: Transaction, agent: AgentRecord, error: unknown): void {
  const code = CoppiceError.is(error) ? error.code : "LOAD_FAILED";
  const failure = { code, message: tx.context.redact(describeError(error)), status: null };
  const run = agent.currentRun === null ? undefined : tx.store.run(agent.currentRun);
  if (run !== undefined) {
    appendItems(tx, agent, run, closeOpenCalls(tx, run, "aborted: the agent could not be loaded"));
    settleRun(tx, run.id, { status: "failed", reason: "failed", text: run.text, error: failure });
  }
  const unsent: MailRecord[] = [];
  for (const mail of unreadOf(tx.store, agent.threadId)) {
    if (!mail.trigger) continue;
    for (const id of worksAskedBy(tx, mail)) {
      endWork(tx, id, {
        ending: "failed",
        text: "",
        error: failure,
      });
    }
    const now = tx.store.mail(mail.id);
    if (now?.state === "accepted") setTrigger(tx, now, false);
    else unsent.push(mail);
  }
  keepUnsent(tx, agent.threadId, unsent);
  tx.effects.wake.delete(agent.threadId);
  for (const work of tx.store.openWorksOf(agent.threadId)) {
    if (work.state !== "awaiting_children") continue;
    endWork(tx, work.id, {
      ending: "failed",
      text: "",
      error: failure,
    });
  }
}

function retryLater(tree: Tree, candidate: Candidate, ms: number): void {
  tree.shared.clock.setTimer(ms, () => void again(tree, candidate), { keepAlive: true });
}

/** What is stored says whether there is still a run to begin, or one to go on with. */
async function again(tree: Tree, candidate: Candidate): Promise<void> {
  const { threadId } = candidate;
  if (tree.state !== "owned") return;
  try {
    await tree.transact((tx) => {
      const { currentRun } = tx.agent(threadId);
      if (currentRun !== null) resumeWhenFree(tx, threadId, currentRun);
      else if (tx.store.mailbox(threadId).triggers > 0) tx.effects.wake.add(threadId);
    });
  } catch (error) {
    tree.shared.logger.warn({ threadId, err: error }, "an agent could not be started again");
    tree.reactions.doubtful(tree);
  }
}
