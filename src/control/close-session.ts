/** The end of a provider's session, wherever its own session is dropped from memory. */
import type { ThreadId } from "../protocol/ids.ts";
import type { Session } from "../session/session.ts";
import type { Tree } from "./tree.ts";

/** Resolves when it is closed; a provider that fails at it is told to the operator and hinders nobody. */
export async function closeSession({ shared }: Pick<Tree, "shared">, session: Session): Promise<void> {
  const { threadId } = session.agent;
  const closed = Promise.try(() => session.provider.close()).catch((error: unknown) => {
    shared.logger.warn({ threadId, err: error }, "closing a provider session failed");
  });
  shared.closing.set(threadId, closed);
  await closed;
  if (shared.closing.get(threadId) === closed) shared.closing.delete(threadId);
}

/** Two sessions of one conversation would write over each other: the one before has its time to close. */
export async function closedBefore(tree: Tree, threadId: ThreadId): Promise<void> {
  const closing = tree.shared.closing.get(threadId);
  if (closing !== undefined) await inTime(tree, closing);
}

/** A request that was cut off has the time of a close to come to its end; after that its provider is closed under it (INT-7). */
export async function closeInTime(tree: Tree, session: Session): Promise<void> {
  await inTime(tree, session.ending);
  await closeSession(tree, session);
}

/** Resolves with what ends, or with the deadline of a close. */
export async function inTime(
  { shared, limits }: Pick<Tree, "shared" | "limits">,
  ending: Promise<unknown> | null,
): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = shared.clock.setTimer(limits.closeDeadlineMs, late.resolve, { keepAlive: true });
  await Promise.race([ending, late.promise]);
  timer.cancel();
}
