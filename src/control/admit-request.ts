/**
 * What a request passes before it is sent: the provider's back-off (RUN-4), then the budgets of every scope above (BUD-2).
 */
import type { PromptMessage } from "../protocol/provider-events.ts";
import type { ToolSpec } from "../protocol/tool.ts";
import { estimateTokens } from "../policy/estimate-tokens.ts";
import { type Admission, estimateRequest, priceOf, type RequestEstimate } from "../policy/budget.ts";
import type { Admitted } from "../session/ports.ts";
import type { Session } from "../session/session.ts";
import { admitRequest } from "./budget-scopes.ts";
import { exhaust } from "./budget.ts";
import { currentRun, holdRun } from "./runs.ts";
import type { Tree } from "./tree.ts";

/** Output of a request that names no maximum, for the reservation of budgets. */
const ASSUMED_OUTPUT_TOKENS = 4096;

/** `offer` is what the request goes with. */
export async function admitToProvider(
  tree: Tree,
  session: Session,
  signal: AbortSignal,
  messages: readonly PromptMessage[],
  offer: { readonly tools: readonly ToolSpec[]; readonly wrapUp: boolean },
): Promise<Admitted> {
  const { provider, model } = session.run!;
  await tree.shared.backOff(provider).beforeRequest(signal);
  const { maxOutputTokens } = session.agent.config;
  const estimate = estimateRequest(
    estimateTokens(messages, offer.tools),
    maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS,
    priceOf(tree.shared.prices, provider, model),
  );
  for (;;) {
    const seen = tree.shared.releases.count;
    const { admission, reservation } = await reserve(tree, session, estimate);
    if (signal.aborted) reservation?.[Symbol.dispose]();
    signal.throwIfAborted();
    if (reservation !== null) return { kind: "go", reservation, maxOutputTokens, ...offer };
    if (admission.kind !== "exhausted") {
      await hold(tree, session, seen);
      return { kind: "ended" };
    }
    if (await endScope(tree, session, estimate)) return { kind: "ended" };
    signal.throwIfAborted();
  }
}

/** Looks once more in the commit: a clock may have come to rest, and a budget may have been raised. False when it fits by now. */
function endScope(tree: Tree, session: Session, estimate: RequestEstimate): Promise<boolean> {
  const { id, threadId } = session.run!;
  return tree.transact((tx) => {
    // Another may have ended all of the scope, this run too; what has begun there since is not to end for it.
    currentRun(tx, id);
    const { reservationsOf } = tree.shared;
    const now = admitRequest(tx.store, tx.tree(), tx.agent(threadId), reservationsOf, estimate);
    if (now.kind === "exhausted") exhaust(tx, now.scope, tree.partialText);
    return now.kind === "exhausted";
  });
}

/** Looks and reserves in one synchronous block, so that two requests cannot both take the last of a budget. */
async function reserve(
  tree: Tree,
  session: Session,
  estimate: RequestEstimate,
): Promise<{ admission: Admission; reservation: Disposable | null }> {
  const { threadId, path } = session.agent;
  let reservation: Disposable | null = null;
  const giveBack = (): void => {
    reservation?.[Symbol.dispose]();
    reservation = null;
  };
  try {
    return await tree.read((view) => {
      giveBack();
      const admission = admitRequest(
        view,
        view.tree(tree.treeId)!,
        view.agent(threadId)!,
        tree.shared.reservationsOf,
        estimate,
      );
      if (admission.kind === "start") reservation = tree.reservations.take(path, estimate);
      return { admission, reservation };
    });
  } catch (error) {
    giveBack();
    throw error;
  }
}

/**
 * What would fit without the outstanding reservations waits for them, its permit given back (BUD-2): the run is suspended
 * and comes back when one has been given back.
 */
async function hold(tree: Tree, session: Session, seen: number): Promise<void> {
  const { id } = session.run!;
  const active = tree.runs.get(session.agent.threadId);
  await tree.transact(
    (tx) => holdRun(tx, id),
    (run) => {
      session.run = run;
      session.lifecycle.send("WAIT");
      active?.grant?.giveBack();
      if (active !== undefined) tree.held.add(active.candidate, seen);
    },
  );
}
