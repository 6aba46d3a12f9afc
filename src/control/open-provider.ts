/**
 * A provider is opened for a session that is about to run: its permit and its slot wait for it, so it has the deadline of a
 * close, and no longer than its load is wanted. What comes too late is closed.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { CoppiceError, describeError, RejectedError, TransientError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { unlessAborted } from "../session/ears.ts";
import { NativeConversation } from "../session/native-conversation.ts";
import type { OpenedProvider } from "../session/session.ts";
import { closedBefore, closeSession } from "./close-session.ts";
import { openNative } from "./native-journal.ts";
import type { Tree } from "./tree.ts";

/** A load that is under way, or the opening of another provider for a loaded session. */
export interface Loading {
  /** A commit has changed what it has read. */
  stale: boolean;
  /** Aborted when there is nothing to load for any more. */
  readonly off: AbortController;
}

export async function whileLoading<T>(
  tree: Tree,
  threadId: ThreadId,
  body: (loading: Loading) => Promise<T>,
): Promise<T> {
  const loading = { stale: false, off: new AbortController() };
  tree.loading.set(threadId, loading);
  try {
    return await body(loading);
  } finally {
    tree.loading.delete(threadId);
  }
}

/** @throws RejectedError `LOAD_FAILED`; the reason of the signal. */
export async function openProvider(
  tree: Tree,
  agent: AgentRecord,
  signal: AbortSignal,
): Promise<OpenedProvider> {
  await unlessAborted(closedBefore(tree, agent.threadId), signal);
  const opening = Promise.try(() => open(tree, agent));
  const late = Promise.withResolvers<never>();
  const timer = tree.shared.clock.setTimer(
    tree.limits.closeDeadlineMs,
    () => late.reject(new TransientError("PROVIDER_STALLED", "the provider does not open a session.")),
    { keepAlive: true },
  );
  try {
    return await unlessAborted(Promise.race([opening, late.promise]), signal);
  } catch (error) {
    // Whoever gives the tree back gives it time to come, and to be closed.
    tree.track(opening.then((provider) => closeSession(tree, { agent, provider })));
    signal.throwIfAborted();
    const retryable = CoppiceError.is(error) ? error.retryable : false;
    const other = CoppiceError.is(error) && error.details["reason"] === "version_unsupported";
    throw loadFailed(agent, other ? "version_unsupported" : "provider_unavailable", retryable, error);
  } finally {
    timer.cancel();
  }
}

async function open(tree: Tree, agent: AgentRecord): Promise<OpenedProvider> {
  const { provider, model, effort } = agent.config;
  const adapter = tree.shared.adapter(provider)!;
  if (adapter.loop === "theirs")
    return new NativeConversation(await openNative(tree, agent, provider), { model, effort });
  const session = await adapter.openSession({ threadId: agent.threadId, path: agent.path, model });
  return { loop: "ours", session, close: () => session.close() };
}

export function loadFailed(
  agent: AgentRecord,
  reason: string,
  retryable: boolean,
  cause?: unknown,
): RejectedError {
  const because = cause === undefined ? "" : `: ${describeError(cause).replace(/\.$/u, "")}`;
  return new RejectedError(
    "LOAD_FAILED",
    `agent ${agent.path} cannot be loaded (${reason})${because}.`,
    {
      path: agent.path,
      reason,
      retryable,
    },
    cause,
  );
}
