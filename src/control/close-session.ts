/** The end of a provider's session, wherever its own session is dropped from memory. */
import type { Session } from "../session/session.ts";
import type { Tree } from "./tree.ts";

/** Resolves when it is closed; a provider that fails at it is told to the operator and hinders nobody. */
export async function closeSession(tree: Pick<Tree, "shared">, session: Session): Promise<void> {
  try {
    await session.provider.close();
  } catch (error) {
    const { threadId } = session.agent;
    tree.shared.logger.warn({ threadId, err: error }, "closing a provider session failed");
  }
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
