/**
 * Handoffs at somebody's wish (lineage C3.11): written anew, or in the user's own words. Only one that is ready and was not
 * delivered; a new record takes its place and the old one keeps its text (C1.10).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { HandoffId } from "../protocol/ids.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import { requireText } from "../platform/text.ts";
import { chosenProvider } from "../control/chosen-provider.ts";
import type { Stages } from "../control/long-commands.ts";
import { startingRun } from "../control/runs.ts";
import { destinationOf } from "../control/start.ts";
import { planStart } from "../control/start-run.ts";
import { builtHandoff, replaceText } from "../control/start-write.ts";
import { must, type Look, type Transaction } from "../control/transaction.ts";
import type { Tree } from "../control/tree.ts";
import { readyHandoff } from "../lineage/handoff-record.ts";
import { roomOf } from "../lineage/handoff/budget.ts";
import { handoffOf } from "../lineage/transfer.ts";
import type { StoreView } from "../store/port.ts";
import { itemsOf } from "./items.ts";
import { toldTexts } from "./told-texts.ts";
import { requireUnarchived } from "./verbs.ts";

interface Found {
  readonly handoff: HandoffRecord;
  readonly transfer: TransferRecord;
}

/** @throws RejectedError `TRANSFER_SOURCE_UNRESOLVABLE`. */
export function requireHandoff(view: StoreView, id: string): HandoffRecord {
  const handoff = view.handoff(id as HandoffId);
  if (handoff !== undefined) return handoff;
  const shown = id.slice(0, 80);
  throw new RejectedError(
    "TRANSFER_SOURCE_UNRESOLVABLE",
    `no handoff \`${shown}\` is in this store; list those of the thread.`,
    { id: shown },
  );
}

/** @throws RejectedError `TRANSFER_STATE_INVALID`. */
function editable(look: Look, id: string): Found {
  const handoff = requireHandoff(look.store, id);
  requireUnarchived(look.agent(handoff.threadId));
  if (handoff.status !== "ready" || handoff.deliveredAt !== null) {
    const state = handoff.deliveredAt === null ? handoff.status : "delivered";
    throw new RejectedError(
      "TRANSFER_STATE_INVALID",
      `handoff ${id} is ${state} and cannot be changed any more; its text stays as it is for the record.`,
      { id, status: state },
    );
  }
  const transfer = must(look.store.transfer(handoff.transferId), "transfer", handoff.transferId);
  if (transfer.type === "subagent_spawn" || transfer.type === "subagent_result") {
    throw new RejectedError(
      "TRANSFER_STATE_INVALID",
      `handoff ${id} tells of what was said between agents, as it was said, and cannot be changed; send a message instead.`,
      { id, status: handoff.status },
    );
  }
  const starting = startingRun(look, handoff.threadId);
  if (starting !== null) {
    throw new RejectedError(
      "TRANSFER_STATE_INVALID",
      `${starting} of ${handoff.threadId} is about to begin with what is ready now; change the handoff when the provider has refused it.`,
      { id, status: handoff.status, runId: starting },
    );
  }
  if (transfer.status === "resolved_portable" && handoffOf(transfer) === handoff.id)
    return { handoff, transfer };
  throw new RejectedError(
    "TRANSFER_STATE_INVALID",
    `handoff ${id} is not what ${transfer.id} would be told by: that is ${transfer.status}; its text stays as it is for the record.`,
    { id, status: transfer.status },
  );
}

/**
 * The user's own text in place of the built one; it is sent as it is.
 * @throws RejectedError `INVALID_ARGUMENT` for one that is longer than a handoff may be, or than the model it is for has room for.
 */
export function editHandoff(tx: Transaction, id: string, text: string): HandoffRecord {
  const { handoff, transfer } = editable(tx, id);
  const limit = roomFor(tx, handoff);
  requireText("text", text, limit, "shorten it, or choose a model with a larger window");
  const { kind, fromProviderThreadIds, toProviderThreadId, coveredRuns, coveredRunOrdinals } = handoff;
  const bytes = Buffer.byteLength(text);
  return replaceText(tx, transfer, {
    ...readyHandoff({
      id: tx.id("hnd"),
      transfer,
      text,
      coveredRanges: handoff.coveredRanges,
      redact: tx.context.redact,
      at: tx.now,
      about: {
        kind,
        strategy: "manual_context",
        fromProviderThreadIds,
        toProviderThreadId,
        coveredRuns,
        coveredRunOrdinals,
        payload: { ...handoff.payload, sections: ["manual"], omittedItemIds: [], mergeBackIds: [] },
        budget: { limit, used: bytes, unit: "bytes" },
        createdByProvider: null,
      },
    }),
    targetRunId: handoff.targetRunId,
  });
}

/** Bytes that the model which it was written for has room for, before anything is said there. */
function roomFor(look: Look, { targetRunId, threadId }: HandoffRecord): number {
  const { lineage } = look.context;
  const run = targetRunId === null ? undefined : look.store.run(targetRunId);
  const { provider, model } = run ?? look.agent(threadId).config;
  return Math.min(lineage.handoffBytes, Math.max(0, roomOf(look.context.windowOf(provider, model), lineage)));
}

/** Built again from what the thread is now. */
export async function regenerateHandoff(
  tree: Tree,
  id: string,
  { begin, done }: Stages<HandoffRecord>,
): Promise<HandoffRecord> {
  const found = await tree.look((look) => {
    const one = editable(look, id);
    return { ...one, effects: look.agent(one.handoff.threadId).config.effects };
  });
  const provider = found.transfer.targetProvider ?? "";
  tree.requireProvider(provider, found.effects);
  const adapter = tree.shared.adapter(provider)!;
  const capabilities = adapter.loop === "ours" ? adapter.threads : await adapter.capabilities();
  const { texts } = await toldTexts(tree.shared.summariser, (memory) =>
    tree.look((look) => {
      const agent = look.agent(found.handoff.threadId) as AgentRecord & { readonly thread: ThreadFacts };
      const chosen = chosenProvider(agent, { provider });
      const model = chosen.model ?? adapter.defaultModel;
      const run = { ordinal: agent.runs + 1, causes: [] };
      const to = destinationOf(adapter, { provider, model }, capabilities);
      const planned = planStart(look, agent, run, itemsOf(look.store, agent), to, memory);
      // The user's own text is what is to be replaced.
      const anew = planned.texts.map((text) => ({ ...text, build: text.anew ?? text.build }));
      return { planned: { ...planned, texts: anew } };
    }),
  );
  const text = texts.find(({ transferId }) => transferId === found.transfer.id);
  const built = text?.built ?? null;
  if (built === null) {
    throw new RejectedError(
      "TRANSFER_SOURCE_UNRESOLVABLE",
      `what handoff ${id} told of is not to be told any more; the next run decides anew.`,
      { id },
    );
  }
  return tree.transact((tx) => {
    begin();
    const { handoff, transfer } = editable(tx, id);
    const made = replaceText(tx, transfer, builtHandoff(tx, transfer, built, handoff));
    done(tx, made);
    return made;
  });
}
