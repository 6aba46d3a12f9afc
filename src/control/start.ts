/** The start of a drive: what its run gets, which of the transcript its provider has seen, and what a refusal leaves behind. */
import type { ProviderAdapter } from "../providers/port.ts";
import { CoppiceError, describeError, InvariantError, RejectedError } from "../protocol/errors.ts";
import type { RunId } from "../protocol/ids.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import { fail } from "../lineage/transfer.ts";
import type { Session } from "../session/session.ts";
import { foreignRuns } from "./own-conversation.ts";
import { currentRun } from "./runs.ts";
import { settleRun } from "./settle.ts";
import { windowOf } from "./shared.ts";
import type { Destination } from "./start-facts.ts";
import { type Driven, prepareStart, type RunStart } from "./start-run.ts";
import { askForkAgain, tellMoved } from "./transfer-moves.ts";
import type { Look, Transaction } from "./transaction.ts";
import type { Tree } from "./tree.ts";

/** Null where nothing is to be carried because the run goes on, or has no thread; `refused` when it was settled. */
export async function beginStart(
  tree: Tree,
  session: Session,
  driven: Driven,
): Promise<RunStart | null | "refused"> {
  const run = session.run!;
  try {
    const start =
      run.acceptedAt === null ? await prepareStart(tree, session, destination(tree, session), driven) : null;
    session.foreign = await tree.look((look) => foreignOf(look, run, start?.providerThread ?? null));
    return start;
  } catch (error) {
    driven.signal.throwIfAborted();
    if (!isRefusal(error)) throw error;
    await tree.transact((tx) => refuse(tx, run.id, error));
    return "refused";
  }
}

/** What says that the run cannot start; everything else is a fault of the store or of ours. */
function isRefusal(error: unknown): error is CoppiceError {
  return (
    CoppiceError.is(error) && (error instanceof RejectedError || error.code === "PROVIDER_RESUME_FAILED")
  );
}

function destination(tree: Tree, session: Session): Destination {
  const { provider, model } = session.run!;
  const adapter = tree.shared.adapter(provider)!;
  const capabilities = adapter.loop === "ours" ? adapter.threads : native(session).negotiated;
  return destinationOf(adapter, { provider, model }, capabilities);
}

export function destinationOf(
  adapter: ProviderAdapter,
  { provider, model }: Pick<Destination, "provider" | "model">,
  capabilities: ThreadCapabilities,
): Destination {
  return {
    provider,
    instanceId: adapter.instanceId ?? provider,
    driver: adapter.driver,
    model,
    capabilities,
    window: windowOf(adapter, model),
    change: (from, to) => changeOf(adapter, from, to),
  };
}

function native({ provider }: Session) {
  if (provider.loop === "ours")
    throw new InvariantError("a session without a loop of its own was asked for one");
  return provider.session;
}

function changeOf(adapter: ProviderAdapter, from: string | null, to: string | null) {
  if (adapter.loop === "ours") return "apply_next_turn";
  const change = adapter.classifySelectionChange({ model: from, effort: null }, { model: to, effort: null });
  if (typeof change === "string") return change;
  throw new RejectedError("PROVIDER_CAPABILITY_MISSING", change.reject, {
    capability: "sessions.modelSwitch",
  });
}

/** What its provider has not seen of the transcript; nothing for an agent from before threads. */
function foreignOf(
  look: Look,
  { threadId, ordinal, providerThreadId }: RunRecord,
  starting: ProviderThreadRecord | null,
): Session["foreign"] {
  const { thread } = look.agent(threadId);
  if (thread === null) return null;
  const known =
    starting ?? (providerThreadId === null ? undefined : look.store.providerThread(providerThreadId));
  return known === undefined ? null : foreignRuns(look.store, { ...thread, threadId, ordinal }, known);
}

/** Nothing was sent: the run ends with what refuses it, and a strict fork has failed (C4.9, C5.13). */
function refuse(tx: Transaction, id: RunId, error: CoppiceError): void {
  const run = currentRun(tx, id);
  const agent = tx.agent(run.threadId);
  if (error.code === "FORK_NATIVE_UNSUPPORTED" || error.code === "FORK_NATIVE_FAILED") {
    for (const transfer of tx.store.pendingTransfersTo(run.threadId)) {
      if (transfer.type !== "fork") continue;
      const failed = fail(transfer, `${error.code}: ${error.message}`, tx.now);
      tx.store.putTransfer(failed);
      tellMoved(tx, agent, failed, run.id);
      // No later message is sent without what the fork was to be given: it is asked for again, as strictly.
      askForkAgain(tx, transfer);
    }
  }
  settleRun(tx, id, {
    status: "failed",
    reason: "provider_error",
    text: "",
    error: { code: error.code, message: tx.context.redact(describeError(error)), status: null },
  });
}
