/**
 * The wait of a host-driven root (HDR-2, HDR-3): it has no run to suspend, so the call itself lasts, and it returns what
 * is in the mailbox.
 *
 * - N1 It subscribes, then looks: what is there already returns at once (WAI-4).
 * - N2 An abort ends the wait and nothing else (WAI-6). Running out of time is a result.
 * - N3 A cursor acknowledges what earlier waits returned, before anything else.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId, WorkId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { Json } from "../protocol/json.ts";
import type { WaitEnd } from "../protocol/wait.ts";
import { headBytes } from "../platform/text.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { unreadOf } from "../control/unread.ts";
import { endForMail } from "../control/wait-ends.ts";
import { judgeTimeout, resolveWait, type WaitInput, type WaitTargets } from "../control/wait-request.ts";
import type { News } from "../control/watchers.ts";

export interface HostWaitOptions {
  readonly signal: AbortSignal;
  /** The transport's limit; null when there is none. */
  readonly longestMs: number | null;
}

type HostWaitEnd = Extract<WaitEnd, "settled" | "activity" | "new_input" | "timed_out"> | "cut_short";

export async function hostWait(
  control: AgentControl,
  root: ThreadId,
  input: WaitInput,
  options: HostWaitOptions,
): Promise<Json> {
  const { tree } = control;
  const { timeoutMs, clampedToMs } = judgeTimeout(tree.limits, input.timeoutMs);
  await requireHostDriven(control, root);
  const targets = await control.read((view) => resolveWait(view, tree.treeId, view.agent(root)!, input));
  if (input.cursor !== undefined) await control.hostAcknowledge(root, input.cursor);
  const cutShort = options.longestMs !== null && options.longestMs < timeoutMs;
  const milliseconds = cutShort ? options.longestMs! : timeoutMs;
  const over = cutShort && tree.profile.richWait ? "cut_short" : "timed_out";
  const end = await untilEnd(control, root, targets, milliseconds, options.signal, over);
  const mail = await control.hostMail(root, null);
  return {
    ...(tree.profile.richWait
      ? { ended_by: end, timed_out: end === "timed_out" }
      : { message: SUMMARIES[end], timed_out: end === "timed_out" }),
    ...(clampedToMs === null ? {} : { timeout_raised_to_ms: clampedToMs }),
    messages: mail.messages,
    ...(mail.more ? { more: true } : {}),
    ...(targets.works.length === 0 ? {} : { works: await worksOf(control, root, targets.works) }),
    cursor: mail.cursor ?? input.cursor ?? null,
  };
}

/** The mail of an agent with runs goes into its requests; nobody else may take it. */
async function requireHostDriven(control: AgentControl, root: ThreadId): Promise<void> {
  const agent = await control.read((view) => view.agent(root));
  if (agent?.hostDriven === true) return;
  throw new RejectedError(
    "SUBAGENT_PARENT_NOT_ACTIVE",
    "only a host-driven root can wait outside of a run; open its tree with `hostDriven`.",
    { threadId: root },
  );
}

const SUMMARIES: Readonly<Record<HostWaitEnd, string>> = {
  settled: "There was activity.",
  activity: "There was activity.",
  new_input: "The wait was interrupted by new input.",
  timed_out: "The wait ran out of time.",
  cut_short: "The wait ran out of time.",
};

async function untilEnd(
  control: AgentControl,
  root: ThreadId,
  targets: WaitTargets,
  milliseconds: number,
  signal: AbortSignal,
  over: HostWaitEnd,
): Promise<HostWaitEnd> {
  const timeout = new AbortController();
  const timer = control.tree.shared.clock.setTimer(milliseconds, () => timeout.abort(), { keepAlive: true });
  const either = AbortSignal.any([signal, timeout.signal]);
  try {
    const topics = [root, ...targets.works];
    return await control.tree.watchers.until(newsOf(control, root, targets), either, topics);
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.signal.aborted && error === timeout.signal.reason) return over;
    throw error;
  } finally {
    timer.cancel();
  }
}

/** Each look reads what is new alone: works that the commit has ended, mail behind the newest that was seen. */
function newsOf(
  control: AgentControl,
  root: ThreadId,
  { works, agents, need }: WaitTargets,
): (news: News) => Promise<HostWaitEnd | undefined> {
  const settled = new Set<WorkId>();
  let seenSeq = 0;
  const wait = { sinceSeq: 0, works, agents };
  // What was handed out before is known to the host; it does not end another wait.
  const endsEarly = (mail: MailRecord): boolean =>
    mail.handedOut === 0 && endForMail(wait, mail) === "new_input";
  return async (news) => {
    const named = works.filter((id) => news === null || news.has(id));
    const hasMail = news === null || news.has(root);
    const found = await control.read((view) => {
      if (works.length === 0) return { ended: [], mail: view.unread(root, { limit: 1 }) };
      const ended = named.filter((id) => view.work(id)?.state === "ended");
      return { ended, mail: hasMail ? [...unreadOf(view, root, seenSeq)] : [] };
    });
    if (works.length === 0) return found.mail.length > 0 ? "activity" : undefined;
    // A read may be made twice: what it has found is kept when it is over.
    for (const id of found.ended) settled.add(id);
    seenSeq = found.mail.at(-1)?.seq ?? seenSeq;
    if (settled.size >= need) return "settled";
    return found.mail.some(endsEarly) ? "new_input" : undefined;
  };
}

/** States of the works waited for. A result that came as mail to this root stands in the messages. */
function worksOf(control: AgentControl, root: ThreadId, works: readonly WorkId[]): Promise<Json> {
  return control.read((view) =>
    works.map((id) => {
      const work = view.work(id)!;
      const mail = work.resultMailId === null ? undefined : view.mail(work.resultMailId);
      const text = work.outcome === null || mail?.recipient === root ? null : work.outcome.text;
      return {
        work_id: id,
        agent: work.executorPath,
        state: work.outcome?.ending ?? work.state,
        ...(text === null ? {} : { text: headBytes(text, control.tree.limits.artifactHeadBytes) }),
      };
    }),
  );
}
