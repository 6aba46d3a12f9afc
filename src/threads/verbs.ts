/**
 * What can be done to a thread in one commit, by its owner or for whoever asks from another process (lineage C3). Each is a
 * plan over the store; what needs a provider, or another tree, stands elsewhere.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Pin, PinSection } from "../protocol/snapshot.ts";
import type { ProviderSelection, ThreadFacts } from "../protocol/thread.ts";
import type { Caller } from "../protocol/tool.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { requireText } from "../platform/text.ts";
import { userInput, type UserInput } from "../control/messages.ts";
import { contextOf } from "../control/thread-context.ts";
import type { Look, Transaction } from "../control/transaction.ts";
import { requireTitle } from "./fork.ts";
import { requireThread } from "./thread-view.ts";

export type ThreadAgent = AgentRecord & { readonly thread: ThreadFacts };

/** A thread of this tree. @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_INVARIANT_VIOLATION` for one from before threads. */
export function threadOf(look: Look, id: string): ThreadAgent {
  const agent = requireThread(look.store, id);
  const { thread } = look.agent(agent.threadId);
  if (thread !== null) return { ...agent, thread };
  throw new RejectedError(
    "THREAD_INVARIANT_VIOLATION",
    `${agent.threadId} is from before there were threads; it can go on as it is, and has no title, pins or forks.`,
    { threadId: agent.threadId, legacy: true },
  );
}

/** @throws RejectedError `THREAD_ARCHIVED`: but for its title nothing of it is written any more (C1.1). */
export function requireUnarchived(agent: AgentRecord): void {
  if (agent.state === "archived") requireOpenThread(agent);
}

/** @throws RejectedError `THREAD_CLOSED`, `THREAD_ARCHIVED`. */
export function requireOpenThread(agent: AgentRecord): void {
  if (agent.state === "open") return;
  throw new RejectedError(
    agent.state === "closed" ? "THREAD_CLOSED" : "THREAD_ARCHIVED",
    `${agent.threadId} is ${agent.state} and has no new runs; fork it to go on.`,
    { threadId: agent.threadId, state: agent.state },
  );
}

/**
 * Input to a thread (C3.2, C3.3): refused before anything is stored when the thread is over, has changed since the caller
 * planned on it, or stands on a context that is not what was stored.
 * @throws RejectedError `THREAD_CLOSED`, `THREAD_ARCHIVED`, `THREAD_CONTEXT_TAMPERED`, and as `userInput`.
 */
export function continueThread(tx: Transaction, id: string, caller: Caller, input: UserInput): WorkRecord {
  const agent = tx.agent(requireThread(tx.store, id).threadId);
  requireOpenThread(agent);
  contextOf(tx, agent);
  return userInput(tx, agent.threadId, caller, input);
}

/** Longest name of a model or an effort, in bytes. */
const NAME_BYTES = 256;

function requireSelection(tx: Transaction, agent: ThreadAgent, selection: ProviderSelection): void {
  tx.context.requireProvider(selection.provider, agent.config.effects);
  for (const name of ["model", "effort"] as const) requireText(name, selection[name] ?? "", NAME_BYTES);
}

/** A choice of provider for the next run; what is left out is the provider's own default. */
export interface SelectionInput {
  readonly provider: string;
  readonly model?: string | null | undefined;
  readonly effort?: string | null | undefined;
  /** Begin a new conversation with the whole history as text (C10). */
  readonly cleanContext?: boolean | undefined;
}

export function selectionOf({
  provider,
  model = null,
  effort = null,
  cleanContext = false,
}: SelectionInput): ProviderSelection {
  return { provider, model, effort, cleanContext };
}

/** What the next run is to use; the binding changes when a provider has accepted that run (C4.16). */
export function select(tx: Transaction, id: string, selection: ProviderSelection | null): ThreadAgent {
  const agent = threadOf(tx, id);
  requireOpenThread(agent);
  if (selection !== null) requireSelection(tx, agent, selection);
  return put(tx, agent, { selection }, "thread.selected", { ...selection });
}

/** The one change that an archived thread takes (C1.1). */
export function rename(tx: Transaction, id: string, title: string | null): ThreadAgent {
  const agent = threadOf(tx, id);
  const next = title === null ? null : requireTitle(title);
  if (agent.thread.title === next) return agent;
  const shown = next === null ? null : tx.context.redact(next);
  return put(tx, agent, { title: next }, "thread.renamed", { title: shown });
}

/** @throws RejectedError `THREAD_INVARIANT_VIOLATION` for one that is not closed (C2.1, C3.7). Idempotent. */
export function archive(tx: Transaction, id: string): AgentRecord {
  const agent = threadOf(tx, id);
  if (agent.state === "archived") return agent;
  if (agent.state === "open") {
    throw new RejectedError(
      "THREAD_INVARIANT_VIOLATION",
      `${agent.threadId} is open, and only a closed thread can be archived; close it first.`,
      { threadId: agent.threadId, state: agent.state },
    );
  }
  const archived = tx.putAgent(agent, { state: "archived" });
  tx.emit("thread.archived", archived);
  return archived;
}

/** The user does not want it (C2.9). @throws RejectedError `THREAD_ARCHIVED`. */
export function discardDraft(tx: Transaction, id: string): void {
  const agent = requireThread(tx.store, id);
  requireUnarchived(agent);
  const draft = tx.store.draft(agent.threadId);
  if (draft?.clearedAt === null) tx.store.putDraft({ ...draft, clearedAt: tx.now });
}

/** Longest text of a pin, in bytes. */
const PIN_BYTES = 4096;

/** Pins a line: into the run that is under way, else into the next one (C3.9). */
export function pin(tx: Transaction, id: string, section: PinSection, text: string): Pin {
  const agent = threadOf(tx, id);
  requireOpenThread(agent);
  requireText("text", text, PIN_BYTES);
  const line: Pin = { pinId: tx.id("pin"), section, text };
  const run = agent.currentRun === null ? undefined : tx.store.run(agent.currentRun);
  if (run !== undefined) tx.store.putRun({ ...run, pins: [...run.pins, line] });
  const pins = run === undefined ? [...agent.thread.pins, line] : agent.thread.pins;
  put(tx, agent, { pins }, "thread.pinned", { pinId: line.pinId, section, text: tx.context.redact(text) });
  return line;
}

function put(
  tx: Transaction,
  agent: ThreadAgent,
  change: Partial<ThreadFacts>,
  event: "thread.selected" | "thread.renamed" | "thread.pinned",
  data: JsonObject,
): ThreadAgent {
  const thread = { ...agent.thread, ...change };
  const next = tx.putAgent(agent, { thread });
  tx.emit(event, next, { runId: next.currentRun }, data);
  return { ...next, thread };
}
