/**
 * A page of a thread as another model reads it (XTR, SEC-3): what was said and done, bounded, from the newest backwards.
 * Items that another provider's run has left are shown without secrets.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { Redact } from "../platform/redact.ts";
import { byteLength, headBytes } from "../platform/text.ts";
import type { StoreView } from "../store/port.ts";
import { statusOf } from "../control/status.ts";
import { type TranscriptEntry, transcriptOf } from "./transcript.ts";

const ITEM_BYTES = 4096;
const PAGE_BYTES = 48 * 1024;

export interface ReadPage {
  readonly before?: string | undefined;
  readonly limit: number;
  readonly depth: number;
  readonly redact: Redact;
}

export function pageFor(
  view: StoreView,
  reader: AgentRecord,
  thread: AgentRecord,
  { before, limit, depth, redact }: ReadPage,
): JsonObject {
  const page = transcriptOf(view, thread, { before: before ?? null, limit }, depth);
  const own = reader.config.provider;
  const wordsOf = (item: TranscriptItem, owner: AgentRecord["threadId"]): Redact => {
    const run = item.runId === null ? undefined : view.run(item.runId);
    const by = run?.provider ?? view.agent(owner)?.config.provider;
    return by === own ? (text) => text : redact;
  };
  // From the newest: what does not fit is the next page's.
  const shown: JsonObject[] = [];
  let bytes = 0;
  let left: string | null = page.before;
  for (const entry of page.entries.toReversed()) {
    const line = showEntry(entry, wordsOf);
    bytes += byteLength(JSON.stringify(line));
    // A place is that of an item: where a fork was made alone says nothing of how far the page goes.
    if (bytes > PAGE_BYTES && shown.some((one) => "item" in one)) break;
    shown.unshift(line);
    left = entry === page.entries[0] ? page.before : placeBefore(entry, left);
  }
  return {
    thread_id: thread.threadId,
    title: redactedTitle(thread, redact),
    state: thread.state,
    status: statusOf(view, thread).kind,
    runs: thread.runs,
    entries: shown,
    before: left,
  };
}

/** Who has given it is not known: a user, or an agent of any provider. */
export function redactedTitle({ thread }: AgentRecord, redact: Redact): string | null {
  const title = thread?.title ?? null;
  return title === null ? null : redact(title);
}

/** Where a page begins that ends right before this entry. */
function placeBefore(entry: TranscriptEntry, known: string | null): string | null {
  if (entry.kind === "divider") return known;
  return `${entry.threadId}:${entry.item.index}`;
}

type WordsOf = (item: TranscriptItem, owner: AgentRecord["threadId"]) => Redact;

function showEntry(entry: TranscriptEntry, wordsOf: WordsOf): JsonObject {
  if (entry.kind === "divider") return { kind: "forked_from", thread_id: entry.parent };
  const { item } = entry;
  const cut = (text: string): string => headBytes(wordsOf(item, entry.threadId)(text), ITEM_BYTES);
  return {
    item: item.index,
    ...(entry.readOnly ? { thread_id: entry.threadId } : {}),
    ...(entry.historical ? { rolled_back: true } : {}),
    ...showItem(item, cut),
  };
}

function showItem(item: TranscriptItem, cut: (text: string) => string): JsonObject {
  switch (item.kind) {
    case "user":
      return { kind: "user", text: cut(item.text) };
    case "mail":
      return { kind: "mail", from: item.author, text: cut(item.text) };
    case "context":
      return { kind: "note", topic: item.topic, text: cut(item.text) };
    case "tool_result": {
      const output = typeof item.output === "string" ? item.output : JSON.stringify(item.output);
      return { kind: "tool_result", tool: item.name, failed: item.isError, output: cut(output) };
    }
    case "assistant": {
      const text = item.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
      const calls = item.parts.flatMap((part): Json[] =>
        part.type === "tool_call" ? [{ tool: part.name, input: cut(part.input) }] : [],
      );
      return {
        kind: "assistant",
        phase: item.phase,
        ...(text === "" ? {} : { text: cut(text) }),
        ...(calls.length === 0 ? {} : { calls }),
      };
    }
  }
}
