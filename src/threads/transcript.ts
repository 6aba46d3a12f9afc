/**
 * The conversation of a thread as its reader sees it (lineage C15): its own entries behind those of its ancestors, each up to
 * where it was forked. Derived from what is stored; nothing is copied.
 *
 * - V1 Paging goes from the newest entry backwards: the thread itself, then the nearest ancestor from its cut, then up.
 *   A place names a thread and an index in it, so pages never overlap, whatever is written meanwhile.
 * - V2 What stands in two threads under one id is shown where it is older (C15.6).
 * - V3 What an ancestor has said can be copied and linked to, and nothing can be done to it here (C15.3).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RequestId, RunId, ThreadId } from "../protocol/ids.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { HandoffRecord } from "../protocol/transfer.ts";
import { ancestorsOf } from "../lineage/chain.ts";
import type { StoreView } from "../store/port.ts";
import { originsIn } from "./thread-view.ts";

/** Where an entry of a transcript stands. */
export interface EntryPlace {
  /** The same for as long as the thread exists. */
  readonly id: string;
  /** Whose it is: where a link leads. */
  readonly threadId: ThreadId;
  /** Of an ancestor. */
  readonly readOnly: boolean;
}

/** An item, a handoff with its state, or the line between a thread and its fork. */
export type TranscriptEntry =
  | (EntryPlace & {
      readonly kind: "item";
      readonly item: TranscriptItem;
      /** Its run was rolled back, in a fork before the fork was made (C9.3). */
      readonly historical: boolean;
      /** Questions and approvals in it that can be answered now. */
      readonly answerable: readonly RequestId[];
    })
  /** Context that was handed over, with what has become of it (C15.8). */
  | (EntryPlace & {
      readonly kind: "handoff";
      readonly item: TranscriptItem;
      readonly historical: boolean;
      readonly handoff: Pick<
        HandoffRecord,
        "id" | "transferId" | "kind" | "strategy" | "status" | "deliveredAt" | "supersededBy" | "coveredRuns"
      > | null;
    })
  /** Behind it begins what the fork has said itself. */
  | (EntryPlace & { readonly kind: "divider"; readonly parent: ThreadId; readonly child: ThreadId });

/** A page of a conversation with that of its ancestors. */
export interface ThreadTranscript {
  /** Oldest first. */
  readonly entries: readonly TranscriptEntry[];
  /** Pass it as `before`; null when there is nothing before. */
  readonly before: string | null;
  /** False where the line of forks is longer than a transcript goes. */
  readonly complete: boolean;
}

/** A thread of the line, nearest first. */
interface Stretch {
  readonly agent: AgentRecord;
  /** Index after its last item here. */
  readonly end: number;
  /** When the next one was forked from it; null for the thread itself. */
  readonly leftAt: number | null;
}

export function transcriptOf(
  view: StoreView,
  agent: AgentRecord,
  { before, limit }: { readonly before: string | null; readonly limit: number },
  depth: number,
): ThreadTranscript {
  const { stretches, complete } = lineOf(view, agent, depth);
  const place = before === null ? { at: 0, index: agent.items } : placeOf(stretches, before);
  const entries: TranscriptEntry[] = [];
  let { at, index } = place;
  while (entries.length < limit) {
    const stretch = stretches[at]!;
    if (index > 0) {
      const from = Math.max(0, index - (limit - entries.length));
      const items = view.items(stretch.agent.threadId, from, index - from);
      for (const item of items.toReversed()) {
        if (!isCopy(view, stretches.slice(at + 1), item)) entries.push(entryOf(view, stretch, item));
      }
      index = from;
      continue;
    }
    const above = stretches[at + 1];
    if (above === undefined) return { entries: entries.toReversed(), before: null, complete };
    entries.push(dividerOf(above, stretch));
    at += 1;
    index = above.end;
  }
  const { threadId } = stretches[at]!.agent;
  const nothingLeft = index === 0 && at === stretches.length - 1;
  return {
    entries: entries.toReversed(),
    before: nothingLeft ? null : `${threadId}:${index}`,
    complete,
  };
}

function lineOf(view: StoreView, agent: AgentRecord, depth: number) {
  const { segments, complete } = ancestorsOf(agent.threadId, originsIn(view), depth);
  const stretches: Stretch[] = [{ agent, end: agent.items, leftAt: null }];
  for (const { threadId, until, child } of segments.toReversed()) {
    const found = view.agent(threadId)!;
    const leftAt = view.agent(child)!.createdAt;
    stretches.push({ agent: found, end: Math.min(until.items, found.items), leftAt });
  }
  return { stretches, complete };
}

function placeOf(stretches: readonly Stretch[], before: string): { at: number; index: number } {
  const [threadId, given = ""] = before.split(":");
  const at = stretches.findIndex(({ agent }) => agent.threadId === threadId);
  const index = /^\d{1,15}$/.test(given) ? Number(given) : -1;
  if (at >= 0 && index >= 0 && index <= stretches[at]!.end) return { at, index };
  throw new RejectedError(
    "INVALID_ARGUMENT",
    "this place is not in the transcript; pass the `before` of a page of it, or leave it out.",
    { argument: "before" },
  );
}

/** A message has one id wherever it stands; everything else is named by its place. */
function idOf(threadId: ThreadId, item: TranscriptItem): string {
  const mailId = "mailId" in item ? item.mailId : null;
  return mailId ?? `${threadId}:${item.index}`;
}

/** It was sent to an ancestor, which shows it. */
function isCopy(view: StoreView, above: readonly Stretch[], item: TranscriptItem): boolean {
  const mailId = "mailId" in item ? item.mailId : null;
  if (mailId === null || above.length === 0) return false;
  const recipient = view.mail(mailId)?.recipient;
  return above.some(({ agent }) => agent.threadId === recipient);
}

function entryOf(view: StoreView, { agent, leftAt }: Stretch, item: TranscriptItem): TranscriptEntry {
  const { threadId } = agent;
  const readOnly = leftAt !== null;
  const placed = { id: idOf(threadId, item), threadId, readOnly };
  const historical = item.runId !== null && isHistorical(view, item.runId, leftAt);
  if (item.kind === "context" && item.topic === "handoff") {
    const found = item.handoffId === undefined ? undefined : view.handoff(item.handoffId);
    return {
      ...placed,
      kind: "handoff",
      item,
      historical,
      handoff: found === undefined ? null : shown(found),
    };
  }
  return {
    ...placed,
    kind: "item",
    item,
    historical,
    answerable: readOnly ? [] : requestsIn(item).filter((id) => view.request(id)?.status === "pending"),
  };
}

/** What was rolled back after a fork was made is still what the fork was made of (C9.9). */
function isHistorical(view: StoreView, runId: RunId, leftAt: number | null): boolean {
  const rolledBack = view.run(runId)?.rolledBack ?? null;
  return rolledBack !== null && (leftAt === null || rolledBack.at <= leftAt);
}

function requestsIn(item: TranscriptItem): readonly RequestId[] {
  if (item.kind !== "assistant") return [];
  return item.parts.flatMap((part) => (part.type === "request" ? [part.requestId] : []));
}

function shown(handoff: HandoffRecord) {
  const { id, transferId, kind, strategy, status, deliveredAt, supersededBy, coveredRuns } = handoff;
  return { id, transferId, kind, strategy, status, deliveredAt, supersededBy, coveredRuns };
}

function dividerOf(above: Stretch, below: Stretch): TranscriptEntry {
  const parent = above.agent.threadId;
  const child = below.agent.threadId;
  return { kind: "divider", id: `${parent}:${child}`, threadId: child, readOnly: true, parent, child };
}
