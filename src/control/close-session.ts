/**
 * The end of a provider's session, wherever its own session is dropped from memory. A provider may never come to an end
 * with it: whoever waits for one waits in time, and no slot waits at all.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { OpenedProvider, Session } from "../session/session.ts";
import { within } from "../platform/clock.ts";
import type { Tree } from "./tree.ts";

const IGNORE = (): void => undefined;

interface Closable {
  readonly agent: Pick<AgentRecord, "threadId">;
  readonly provider: Pick<OpenedProvider, "close">;
}

/** Resolves when it is closed; a provider that fails at it is told to the operator and hinders nobody. */
export async function closeSession(
  { shared }: Pick<Tree, "shared">,
  { agent: { threadId }, provider }: Closable,
): Promise<void> {
  const closed = Promise.try(() => provider.close()).catch((error: unknown) => {
    shared.logger.warn({ threadId, err: error }, "closing a provider session failed");
  });
  // One that was closed before may have its end yet to come.
  const all = Promise.all([shared.closing.get(threadId), closed]).then(IGNORE);
  shared.closing.set(threadId, all);
  await all;
  if (shared.closing.get(threadId) === all) shared.closing.delete(threadId);
}

/** Two sessions of one conversation would write over each other: those before have their time to close. */
export async function closedBefore(tree: Tree, threadId: ThreadId): Promise<void> {
  const closing = tree.shared.closing.get(threadId);
  if (closing !== undefined) await inTime(tree, closing);
}

/** A request that was cut off has the time of a close to come to its end; after that its provider is closed under it (INT-7). */
export async function closeInTime(tree: Tree, session: Session): Promise<void> {
  await inTime(tree, session.ending);
  await inTime(tree, closeSession(tree, session));
}

/** Resolves when that has ended, or with the deadline of a close. */
export async function inTime(
  { shared, limits }: Pick<Tree, "shared" | "limits">,
  ending: Promise<unknown> | null,
): Promise<void> {
  await within(shared.clock, limits.closeDeadlineMs, Promise.resolve(ending));
}
