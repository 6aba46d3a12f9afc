/**
 * Native forks that a crash has left in doubt (lineage C5.19, C14.7): each is looked for at its provider, by the conversation it
 * was to be forked from, and taken in; where there is none, or nobody can say whose it is, the intent is taken back and the
 * next run asks again.
 *
 * - F1 Only of a thread without a run: one that is under way settles its own. Nor of one whose provider has not answered yet: it
 *   may still make what is looked for.
 * - F2 Looked for outside of any commit, decided again in it: an intent that has moved meanwhile is left.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { CoppiceError, RejectedError } from "../protocol/errors.ts";
import type { IntentId } from "../protocol/ids.ts";
import type { NativeThread } from "../protocol/native-events.ts";
import type { NativeRef, ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { indeterminate, orphansAmong, putAside, takeBack, takeFork } from "../control/fork-intents.ts";
import { liveOwner } from "../control/live-owner.ts";
import { conversationAt } from "../control/start-facts.ts";
import { newProviderThread } from "../control/start-write.ts";
import type { Look, Transaction } from "../control/transaction.ts";
import { hasNative, nativeCall } from "../providers/native-call.ts";
import type { StoreView } from "../store/port.ts";
import { openToRead } from "./native-history.ts";
import type { ThreadPorts } from "./ports.ts";
import { requireThread } from "./thread-view.ts";

type Asked = TransferRecord & { readonly intent: { readonly id: IntentId } };

interface Doubtful {
  readonly agent: AgentRecord;
  readonly transfer: Asked;
  /** What was to be forked; null where it is not there any more. */
  readonly source: (ProviderThreadRecord & { readonly nativeThreadRef: NativeRef }) | null;
}

/**
 * @throws RejectedError `PROVIDER_UNAVAILABLE`; `FORK_NATIVE_INDETERMINATE` where the provider does not answer: the intent
 * stays then.
 */
export async function settleForkIntents(ports: ThreadPorts, id: string): Promise<void> {
  const { treeId } = await ports.store.read((view) => requireThread(view, id));
  const doubtful = await ports.look(treeId, (look) => doubtfulIn(look, ports, id));
  for (const one of doubtful) {
    const found = await forksOf(ports, one);
    await ports.apply(treeId, (tx) => settle(tx, one, found));
  }
}

function doubtfulIn({ store, context }: Look, ports: ThreadPorts, id: string): Doubtful[] {
  const agent = requireThread(store, id);
  const others = !ports.isMine(agent.treeId) && liveOwner(store, agent.treeId, ports.provenDead) !== null;
  if (others || agent.currentRun !== null || ports.forking.has(agent.threadId)) return [];
  return intentsOf(store, agent).map((transfer) => {
    const { sourcePoint: point, sourceThreadId } = transfer;
    const ofRun = store.runAt(sourceThreadId, point.ordinal)?.providerThreadId ?? null;
    const behind = conversationAt(store, point, ofRun);
    if (behind === undefined || behind.nativeThreadRef === null) return { agent, transfer, source: null };
    context.requireProvider(behind.provider, agent.config.effects);
    return { agent, transfer, source: { ...behind, nativeThreadRef: behind.nativeThreadRef } };
  });
}

/** An archived thread is not changed any more, and asks for none. */
function intentsOf(view: StoreView, { threadId, state }: AgentRecord): Asked[] {
  if (state === "archived") return [];
  return view
    .pendingTransfersTo(threadId)
    .filter((one): one is Asked => one.type === "fork" && one.status === "pending" && one.intent !== null);
}

/** What the provider has; nothing where it lists none, for what nobody can find is nobody's. */
async function forksOf(
  ports: ThreadPorts,
  { agent, transfer, source }: Doubtful,
): Promise<readonly NativeThread[]> {
  const adapter = source === null ? undefined : ports.providers[source.provider];
  if (source === null || adapter?.loop !== "theirs") return [];
  // A session of its own: one that is loaded may have died with the fork.
  const session = await openToRead(adapter, agent, await ports.processesOf(agent));
  try {
    if (!hasNative(session, "findForks")) return [];
    return await nativeCall(session, "findForks")(source.nativeThreadRef);
  } catch (error) {
    if (error instanceof RejectedError && error.code === "PROVIDER_UNAVAILABLE") throw error;
    throw CoppiceError.is(error) && error.family === "transient" ? error : indeterminate(transfer.id, error);
  } finally {
    await session.close().catch(() => undefined);
  }
}

function settle(tx: Transaction, { transfer, source }: Doubtful, found: readonly NativeThread[]): void {
  const agent = tx.agent(transfer.targetThreadId);
  const now = intentsOf(tx.store, agent).find(({ intent }) => intent.id === transfer.intent.id);
  if (now === undefined || agent.currentRun !== null) return;
  const recordOf = (): ProviderThreadRecord => {
    const { treeId, threadId } = agent;
    const about = { treeId, threadId, provider: source!.provider, model: source!.model };
    return {
      ...newProviderThread(about, source!, tx.id("pth"), tx.now),
      forkedFrom: source!.nativeThreadRef,
    };
  };
  const driver = source?.nativeThreadRef.driver ?? "";
  const { orphans, mine } = orphansAmong(tx.store, now, driver, found);
  if (mine !== null) takeFork(tx, now.id, mine, recordOf(), null);
  else {
    putAside(tx, orphans, recordOf);
    takeBack(tx, now.id);
  }
  // What was planned before this is planned anew.
  tx.putAgent(agent, {});
}
