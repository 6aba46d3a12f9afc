/**
 * Reads one run out of the conversation of a provider that owns its loop (lineage C13.1 to C13.5). The turns of the
 * conversation are walked from the page at which the run before was found.
 *
 * - B1 A run has the turns that the record of its provider thread names as its own, and no others.
 * - B2 What is not of the form that was agreed on is left out and counted. Without a pinned version of that form nothing is
 *   `complete`.
 */
import { z } from "zod";
import type { AgentRecord } from "../protocol/agent.ts";
import { nativeRefSchema, type ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { StartProcess } from "../platform/process.ts";
import { type HistorySource, nothingRead, type ReadHistory } from "../lineage/history.ts";
import { hasNative, nativeCall } from "../providers/native-call.ts";
import type { NativeAdapter, NativeSession } from "../providers/port.ts";
import type { ThreadPorts } from "./ports.ts";

const itemSchema = z.object({
  ref: nativeRefSchema,
  role: z.enum(["user", "assistant", "tool"]),
  text: z.string(),
});
const turnSchema = z.object({ ref: nativeRefSchema, status: z.string(), items: z.array(z.unknown()) });
const pageSchema = z.object({ turns: z.array(z.unknown()), next: z.string().nullable() });

/** @throws what the adapter fails with; the caller makes `final-only` of it. */
export async function readNative(
  ports: ThreadPorts,
  agent: AgentRecord,
  run: RunRecord,
  adapter: NativeAdapter,
): Promise<ReadHistory> {
  const { history } = await adapter.capabilities();
  const found = await ports.store.read((view) => {
    const thread = run.providerThreadId === null ? undefined : view.providerThread(run.providerThreadId);
    return thread === undefined ? null : { thread, cursor: cursorBefore(view, run, thread) };
  });
  // Nothing of it ever reached the provider.
  if (run.acceptedAt === null || found === null)
    return { level: "complete", skipped: 0, cursor: null, sources: [] };
  const { thread, cursor } = found;
  if (!history.bridge || thread.nativeThreadRef === null) return nothingRead("unsupported");
  const loaded = await ports.sessionOf(agent, run.provider);
  const session = loaded ?? (await openToRead(adapter, agent, await ports.processesOf(agent)));
  try {
    if (!hasNative(session, "readThread")) return nothingRead("unsupported");
    return await walk(session, { run, thread, cursor, pinned: history.pinnedVersion !== null });
  } finally {
    if (loaded === null) await session.close().catch(() => undefined);
  }
}

/** For reading alone: it is given no tools and no words. */
export function openToRead(
  adapter: NativeAdapter,
  { treeId, threadId, path, config }: AgentRecord,
  startProcess: StartProcess,
): Promise<NativeSession> {
  const { model, workspace } = config;
  const nothing = { effects: [], instructions: null, tools: [], transportWaitMs: 0 };
  return adapter.openSession({ treeId, threadId, path, model, workspace, ...nothing, startProcess });
}

/** Where the run before it in the same conversation was found. */
function cursorBefore(
  view: Parameters<Parameters<ThreadPorts["store"]["read"]>[0]>[0],
  run: RunRecord,
  thread: ProviderThreadRecord,
): string | null {
  for (const [from, to] of thread.nativeRunOrdinals.toReversed()) {
    for (let ordinal = Math.min(to, run.ordinal - 1); ordinal >= from; ordinal -= 1) {
      const before = view.runAt(run.threadId, ordinal);
      if (before?.providerThreadId === thread.id && before.nativeTurns.some((turn) => turn !== null))
        return before.history?.cursor ?? null;
    }
  }
  return null;
}

interface Walk {
  readonly run: RunRecord;
  readonly thread: ProviderThreadRecord;
  readonly cursor: string | null;
  readonly pinned: boolean;
}

async function walk(session: NativeSession, { run, thread, cursor, pinned }: Walk): Promise<ReadHistory> {
  const read = nativeCall(session, "readThread");
  const wanted = new Set(run.nativeTurns.flatMap((turn) => turn?.nativeId ?? []));
  const named = wanted.size > 0 && !run.nativeTurns.includes(null);
  const sources: HistorySource[] = [];
  let skipped = 0;
  let over = true;
  let at = cursor;
  // An adapter may answer with a place that it has told before, and would be followed for ever.
  const been = new Set([at]);
  while (wanted.size > 0) {
    const page = pageSchema.parse(await read(thread.nativeThreadRef!, ...(at === null ? [] : [at])));
    for (const given of page.turns) {
      const turn = turnSchema.safeParse(given);
      if (!turn.success) skipped += 1;
      else if (wanted.delete(turn.data.ref.nativeId)) {
        over &&= turn.data.status !== "running";
        skipped += addSources(sources, turn.data.items, run);
      }
    }
    if (wanted.size === 0 || page.next === null || been.has(page.next)) break;
    at = page.next;
    been.add(at);
  }
  const whole = pinned && named && over && wanted.size === 0 && skipped === 0;
  return { level: whole ? "complete" : "partial", skipped, cursor: at, sources };
}

/** Answers how many could not be read. */
function addSources(sources: HistorySource[], items: readonly unknown[], run: RunRecord): number {
  let bad = 0;
  for (const given of items) {
    const item = itemSchema.safeParse(given);
    if (!item.success) {
      bad += 1;
      continue;
    }
    const { ref, role, text } = item.data;
    sources.push({
      nativeId: ref.nativeId,
      at: run.completedAt ?? run.reservedAt,
      body: role === "tool" ? { kind: "tool", name: "tool", input: "", output: text } : { kind: role, text },
    });
  }
  return bad;
}
