/**
 * Roots of other trees as a wait sees them (XTR-4): whether there is something new, and what is told of it. A look at the
 * store and nothing else, so it is the same for trees of this process, of another one, and of none.
 *
 * - G1 A thread has news when it rests (idle, closed, or asking somebody) and was not seen so before.
 * - G2 A cursor says how each thread of its wait was seen, and no other: it does not grow from wait to wait. What is unchanged since is named without its words.
 */
import type { AgentRecord, AgentStatus } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { WaitRecord } from "../protocol/wait.ts";
import type { Redact } from "../platform/redact.ts";
import { headBytes } from "../platform/text.ts";
import type { StoreView } from "../store/port.ts";
import { statusOf } from "./status.ts";

const OUTCOME_BYTES = 2048;

const AT_REST: ReadonlySet<AgentStatus["kind"]> = new Set(["idle", "closed", "awaiting_approval"]);

interface Glance {
  readonly agent: AgentRecord;
  readonly status: AgentStatus;
  /** Differs between two looks that differ in what a wait is for. */
  readonly mark: string;
}

function glance(view: StoreView, id: ThreadId): Glance | null {
  const agent = view.agent(id);
  if (agent === undefined) return null;
  const status = statusOf(view, agent);
  const asked = status.kind === "awaiting_approval" ? (view.openRequestsOf(id)[0]?.id ?? "") : "";
  return { agent, status, mark: `${agent.runs}.${status.kind}${asked === "" ? "" : `.${asked}`}` };
}

/** False for a wait that is for something else. */
export function threadsHaveNews(view: StoreView, { threads, cursor }: WaitNews): boolean {
  if (threads === undefined) return false;
  const seen = readCursor(cursor);
  return threads.some((id) => {
    const now = glance(view, id);
    return now !== null && AT_REST.has(now.status.kind) && seen.get(id) !== now.mark;
  });
}

type WaitNews = Pick<WaitRecord, "threads" | "cursor">;

/** For whom it is shown: words of another provider's agent are shown without secrets (SEC-3). */
interface Reader {
  readonly reader: AgentRecord;
  readonly redact: Redact;
}

export function showThreads(
  view: StoreView,
  threads: readonly ThreadId[],
  cursor: string | null,
  to: Reader,
): JsonObject {
  const seen = readCursor(cursor);
  const marks: string[] = [];
  const shown: Json[] = [];
  for (const id of threads) {
    const now = glance(view, id);
    if (now === null) continue;
    shown.push(showThread(now, seen.get(id) !== now.mark, to));
    marks.push(`${id}=${now.mark}`);
  }
  return { threads: shown, cursor: marks.join(",") };
}

function showThread({ agent, status }: Glance, changed: boolean, { reader, redact }: Reader): Json {
  const { threadId, thread, lastOutcome: last, runs, config } = agent;
  const words = config.provider === reader.config.provider ? (text: string) => text : redact;
  const head = { thread_id: threadId, status: status.kind, runs, changed };
  if (!changed) return head;
  return {
    ...head,
    title: thread === null || thread.title === null ? null : words(thread.title),
    last_outcome:
      last === null
        ? null
        : { status: last.status, reason: last.reason, text: headBytes(words(last.text), OUTCOME_BYTES) },
  };
}

/** What is not of its form is as if it had not been given. */
function readCursor(cursor: string | null): Map<string, string> {
  const seen = new Map<string, string>();
  for (const entry of cursor?.split(",") ?? []) {
    const at = entry.indexOf("=");
    if (at > 0) seen.set(entry.slice(0, at), entry.slice(at + 1));
  }
  return seen;
}
