/**
 * The conversation of a provider whose loop is ours: the part of the transcript that it has seen, which goes with every
 * request, and whether that still leaves room in the model's window for another run.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { LINEAGE_BOUNDS } from "../protocol/lineage-limits.ts";
import { holdsOrdinal, NO_ORDINALS } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import { foreignBefore, retainedBefore, type RunsBefore } from "../lineage/coverage.ts";
import { roomOf } from "../lineage/handoff/budget.ts";
import { byteLength } from "../platform/text.ts";
import { estimateTokens } from "../policy/estimate-tokens.ts";
import { buildMessages } from "../session/prompt.ts";
import { conversationOf, type Foreign } from "../session/session.ts";
import type { StoreView } from "../store/port.ts";
import type { Look } from "./transaction.ts";

/** Runs that went to other provider threads, or were rolled back: their items are no part of this conversation. */
export function foreignRuns(
  view: StoreView,
  before: RunsBefore & { readonly threadId: ThreadId },
  known: Pick<ProviderThreadRecord, "nativeRunOrdinals">,
): Foreign | null {
  const runs = new Set<RunId>();
  for (const [from, to] of foreignBefore(before, known)) {
    for (let at = from; at <= to; at += 1) {
      const run = view.runAt(before.threadId, at);
      if (run !== undefined) runs.add(run.id);
    }
  }
  // What stands before the first run is part of the conversation that had the first of the runs that are left.
  const first = retainedBefore(before)[0]?.[0];
  const inherited = first !== undefined && !holdsOrdinal(known.nativeRunOrdinals, first);
  return runs.size === 0 && !inherited ? null : { runs, inherited };
}

/** What the messages that began a run say. */
export function messageOf(view: StoreView, { causes }: Pick<RunRecord, "causes">): string {
  return causes.map(({ mailId }) => view.mail(mailId)?.content.text ?? "").join("\n");
}

/**
 * Whether a run that goes on with it would begin with less of the window left than is kept for a run (C18.11). It is gone on
 * with where the window has no room for a handoff beside what the run brings: a new conversation could be told nothing;
 * and where a new one would hold about as much, because of what goes with each of them.
 */
export function isConversationFull(
  look: Look,
  agent: AgentRecord,
  before: RunsBefore & Pick<RunRecord, "causes"> & { readonly threadId: ThreadId },
  known: ProviderThreadRecord,
  { items, window }: { readonly items: readonly TranscriptItem[]; readonly window: number },
): boolean {
  const { store, context } = look;
  const room = roomOf(window, context.lineage);
  const handoff = Math.min(context.lineage.handoffTokens, room - byteLength(messageOf(store, before)));
  if (handoff < LINEAGE_BOUNDS.handoffTokens[0]) return false;
  const held = (one: Parameters<typeof foreignRuns>[2]): number =>
    estimateTokens(buildMessages(agent, conversationOf(items, foreignRuns(store, before, one))), []);
  const told = held(known);
  // A budget counts bytes as tokens; no estimate counts more than one for two of them.
  return told > room && told - held(NEW) > handoff / 2;
}

/** Goes with every conversation: instructions, and texts of runs that no provider took. */
const NEW = { nativeRunOrdinals: NO_ORDINALS };
