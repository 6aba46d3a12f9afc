/** Who acts, filled in from a token, a run or the surface; never from a parameter (MBX-11, SEC-1). */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { MailAuthor } from "../protocol/mail.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import type { Caller } from "../protocol/tool.ts";
import type { ReplyTo, Requester } from "../protocol/work.ts";
import type { Look } from "./transaction.ts";

export interface Acting {
  readonly requester: Requester;
  /** The agent in whose name it is done; null for user, CLI and library. */
  readonly agent: AgentRecord | null;
  readonly run: RunRecord | null;
  readonly author: MailAuthor;
  readonly replyTo: ReplyTo;
}

/**
 * Resolves a caller inside a plan.
 * @throws RejectedError `SUBAGENT_PARENT_NOT_ACTIVE` when an agent asks outside of a run and is no host-driven root.
 */
export function actingAs(tx: Look, caller: Caller): Acting {
  if (caller.kind === "user") {
    const user = { kind: "user", name: caller.name } as const;
    return { requester: user, agent: null, run: null, author: user, replyTo: null };
  }
  const agent = tx.agent(caller.threadId);
  const identity = { kind: "agent", threadId: agent.threadId, path: agent.path } as const;
  const run = caller.runId === null ? undefined : tx.store.run(caller.runId);
  if (!agent.hostDriven && (run === undefined || isSettled(run) || run.threadId !== agent.threadId)) {
    throw new RejectedError(
      "SUBAGENT_PARENT_NOT_ACTIVE",
      `agent ${agent.path} has no active run and cannot ask for work.`,
      {
        path: agent.path,
      },
    );
  }
  return { requester: identity, agent, run: run ?? null, author: identity, replyTo: identity };
}
