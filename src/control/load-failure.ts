/** What becomes of an agent that could not be loaded or started (RES-8, RES-9, REC-3). */
import { CoppiceError, describeError } from "../protocol/errors.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { setTrigger } from "./mail-states.ts";
import type { Transaction } from "./transaction.ts";
import type { Candidate, Tree } from "./tree.ts";
import { endWork, worksAskedBy } from "./works.ts";

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
        tx.emit("agent.blocked", tx.agent(candidate.threadId), {}, { code, message: describeError(error) }),
      );
      return;
    }
    if (code !== "LOAD_FAILED") return retryLater(tree, candidate, FIRST_DELAY_MS);
    const retryable = CoppiceError.is(error) && error.details["retryable"] === true;
    const again = await tree.transact((tx) => countFailure(tx, candidate, error, retryable));
    if (again !== null) retryLater(tree, candidate, again);
  } catch (failure) {
    tree.shared.logger.error(
      { threadId: candidate.threadId, err: failure },
      "a failed load could not be recorded",
    );
    retryLater(tree, candidate, FIRST_DELAY_MS);
  }
}

/** Answers the delay before the next try, or null when the pending works were ended. */
function countFailure(
  tx: Transaction,
  candidate: Candidate,
  error: unknown,
  retryable: boolean,
): number | null {
  const agent = tx.agent(candidate.threadId);
  const failures = agent.loadFailures + 1;
  tx.putAgent(agent, { loadFailures: failures });
  tx.emit("agent.load_failed", agent, {}, { message: describeError(error), failures, retryable });
  if (retryable && failures < TRIES) return FIRST_DELAY_MS * 2 ** (failures - 1);
  endPending(tx, agent, error);
  tx.putAgent(tx.agent(agent.threadId), { loadFailures: 0 });
  return null;
}

/** Queue-only mail stays, and the agent stays addressable. */
function endPending(tx: Transaction, agent: AgentRecord, error: unknown): void {
  for (const mail of tx.store.unread(agent.threadId, { limit: tx.limits.mailboxMessages * 2 })) {
    if (!mail.trigger) continue;
    for (const id of worksAskedBy(tx, mail)) {
      endWork(tx, id, {
        ending: "failed",
        text: "",
        error: { code: "LOAD_FAILED", message: describeError(error), status: null },
      });
    }
    const now = tx.store.mail(mail.id);
    if (now?.state === "accepted") setTrigger(tx, now, false);
  }
  for (const work of tx.store.openWorksOf(agent.threadId)) {
    if (work.state !== "awaiting_children") continue;
    endWork(tx, work.id, {
      ending: "failed",
      text: "",
      error: { code: "LOAD_FAILED", message: describeError(error), status: null },
    });
  }
}

function retryLater(tree: Tree, candidate: Candidate, ms: number): void {
  tree.shared.clock.setTimer(
    ms,
    () => {
      if (tree.state === "owned") tree.reactions.wake(tree, candidate);
    },
    { keepAlive: true },
  );
}
