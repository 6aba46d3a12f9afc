/**
 * Loading and unloading of sessions (RES-3 to RES-8). A load reads what is stored and nothing else; an unload looks once
 * more in the commit that says so, and forgets.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { UnloadFacts } from "../residency/may-unload.ts";
import { createLifecycle } from "../session/lifecycle.ts";
import { type OpenedProvider, Session } from "../session/session.ts";
import { closeSession } from "./close-session.ts";
import { requireOpen } from "./delivery.ts";
import { type Loading, loadFailed, openProvider, whileLoading } from "./open-provider.ts";
import type { Shared } from "./shared.ts";
import type { Tree } from "./tree.ts";
import { mergeStartOptions } from "../mailbox/start-options.ts";
import type { StoreView } from "../store/port.ts";
import { lineOf } from "./family.ts";
import { spentScope } from "./spent-scope.ts";
import { chosenProvider } from "./chosen-provider.ts";
import { unreadOf } from "./unread.ts";
import { isCorrupt } from "../store/corrupt-row.ts";

interface Stored {
  readonly agent: AgentRecord;
  readonly run: RunRecord | null;
  readonly items: TranscriptItem[];
  readonly above: readonly AgentRecord["config"][];
  /** What its run uses, or the next one will. */
  readonly use: Pick<RunRecord, "provider" | "model" | "effort">;
}

/** What hinders an agent to run that only the operator can mend (RES-9). Its mail stays as it is. */
export function blockedBy(
  tree: { readonly shared: Pick<Shared, "adapter" | "hasTool"> },
  agent: AgentRecord,
  provider = agent.config.provider,
): RejectedError | null {
  const { tools } = agent.config;
  if (tree.shared.adapter(provider) === undefined) {
    return new RejectedError(
      "PROVIDER_NOT_CONFIGURED",
      `agent ${agent.path} runs on \`${provider}\`, which this runtime was not given.`,
      {
        path: agent.path,
        provider,
      },
    );
  }
  const missing = tools.filter((tool) => !tree.shared.hasTool(tool));
  if (missing.length === 0) return null;
  return new RejectedError(
    "TOOL_NOT_CONFIGURED",
    `agent ${agent.path} has tools that this runtime was not given: ${missing.join(", ")}.`,
    {
      path: agent.path,
      tools: missing,
    },
  );
}

/**
 * Loads a session that has its slot.
 * @throws RejectedError `LOAD_FAILED` with a reason, `PROVIDER_NOT_CONFIGURED`, `TOOL_NOT_CONFIGURED`, `AGENT_CLOSED`.
 */
export async function load(tree: Tree, threadId: ThreadId): Promise<Session> {
  const known = tree.sessions.get(threadId);
  if (known !== undefined) return known;
  return whileLoading(tree, threadId, (loading) => loadNow(tree, threadId, loading));
}

async function loadNow(tree: Tree, threadId: ThreadId, loading: Loading): Promise<Session> {
  const lifecycle = createLifecycle(threadId, tree.shared.inspect);
  lifecycle.send("LOAD");
  let provider: OpenedProvider | null = null;
  try {
    let stored = await readLoadable(tree, threadId);
    let config = configOf(tree, stored);
    provider = await openProvider(tree, { ...stored.agent, config }, loading.off.signal);
    // A commit tells its changes to loaded sessions alone: what it changed before this one is among them is read again.
    while (loading.stale) {
      loading.stale = false;
      stored = await readLoadable(tree, threadId);
    }
    tree.requireOwned();
    // What it wants by now it may want of another provider; who reserves its run finds that.
    if (stored.use.provider === config.provider) config = configOf(tree, stored);
    const { agent, run, items } = stored;
    if (provider.loop === "theirs") provider.told = items.length;
    const session = new Session({
      lifecycle,
      provider,
      agent: { ...agent, config },
      run,
      items,
    });
    lifecycle.send("LOADED");
    if (run?.status === "waiting") lifecycle.send("WAIT");
    tree.sessions.set(threadId, session);
    return session;
  } catch (error) {
    lifecycle.send("LOAD_FAILED");
    if (provider !== null) tree.track(closeSession(tree, { agent: { threadId }, provider }));
    throw error;
  }
}

/** What is stored of an agent that can be loaded. @throws as `load`. */
async function readLoadable(tree: Tree, threadId: ThreadId): Promise<Stored> {
  const stored = await readStored(tree, threadId);
  requireOpen(stored.agent);
  const blocked = blockedBy(tree, stored.agent, stored.use.provider);
  if (blocked !== null) throw blocked;
  const { workspace } = stored.agent.config;
  if (workspace !== null && !tree.shared.workspaceExists(workspace)) {
    throw loadFailed(stored.agent, "workspace_missing", false);
  }
  return stored;
}

async function readStored(tree: Tree, threadId: ThreadId): Promise<Stored> {
  try {
    return await tree.read((view) => {
      const agent = view.agent(threadId)!;
      return {
        agent,
        run: agent.currentRun === null ? null : (view.run(agent.currentRun) ?? null),
        items: [...view.items(threadId, 0, agent.items)],
        above: [...lineOf(view, agent)].slice(1).map((above) => above.config),
        use: useOf(view, agent),
      };
    });
  } catch (error) {
    if (isCorrupt(error)) {
      throw new RejectedError(
        "LOAD_FAILED",
        `agent ${threadId} cannot be loaded (record_corrupt): ${error.message}`,
        {
          reason: "record_corrupt",
          retryable: false,
        },
        error,
      );
    }
    throw error;
  }
}

/** What its run goes on with, or its next one begins with. */
export function useOf(view: StoreView, agent: AgentRecord): Stored["use"] {
  const run = agent.currentRun === null ? undefined : view.run(agent.currentRun);
  if (run !== undefined) return run;
  const triggers = [...unreadOf(view, agent.threadId)].filter((mail) => mail.trigger);
  return triggers.length === 0 ? agent.config : chosenProvider(agent, mergeStartOptions(triggers));
}

/** The stored policy within the present ceiling, on the provider that is used. */
function configOf(tree: Tree, stored: Stored): AgentRecord["config"] {
  const config = ceiling(tree, stored);
  if (stored.use.provider === config.provider) return config;
  try {
    return tree.rebind(config, stored.use);
  } catch (error) {
    throw loadFailed(stored.agent, "provider_unavailable", false, error);
  }
}

/**
 * The session goes on with the provider that its next run wants. The one before is closed when the other is open, and stays
 * when that cannot be (lineage C4.16).
 * @throws as `load`.
 */
export async function onProviderOfRun(tree: Tree, session: Session): Promise<void> {
  const { threadId } = session.agent;
  const stored = await readLoadable(tree, threadId);
  const agent = { ...stored.agent, config: configOf(tree, stored) };
  const opened = await whileLoading(tree, threadId, ({ off }) => openProvider(tree, agent, off.signal));
  // Dropped meanwhile, it has closed the one that it had, and takes no other.
  const stays = tree.sessions.get(threadId) === session;
  tree.track(closeSession(tree, { agent, provider: stays ? session.provider : opened }));
  if (!stays) return;
  if (opened.loop === "theirs") opened.told = stored.items.length;
  session.provider = opened;
  session.agent = { ...session.agent, config: agent.config };
}

/** Nothing is wider after a reload than before (RES-8). */
function ceiling(tree: Tree, stored: Stored): AgentRecord["config"] {
  try {
    return tree.shared.withinCeiling(stored.agent.config, stored.above);
  } catch (error) {
    throw loadFailed(stored.agent, "policy_unmet", false, error);
  }
}

/** Facts for the choice of whom to unload. */
export function unloadFacts(tree: Tree, threadId: ThreadId): UnloadFacts {
  const session = tree.sessions.get(threadId);
  const mailbox = tree.mailboxes.get(threadId);
  const state = session?.lifecycle.state;
  const { startable, queued } = turnOf(tree, threadId);
  const waiting = state === "waiting" && (tree.runs.get(threadId)?.grant?.permit ?? null) === null;
  return {
    lastRunSettled: state === "idle",
    inParkableWait:
      waiting &&
      !tree.held.has(threadId) &&
      (session?.agent.openRequests ?? 0) === 0 &&
      tree.parksWaits(session!.agent.config.provider),
    reserved: state === undefined || queued || tree.starting.has(threadId),
    triggerMailPending: startable && (mailbox?.triggers ?? 0) > 0,
    queueOnlyMailPending: (mailbox?.unread ?? 0) > (startable ? (mailbox?.triggers ?? 0) : 0),
    requestPending: (session?.agent.openRequests ?? 0) > 0,
    pinPendingMail: session?.agent.config.pinPendingMail ?? false,
  };
}

/**
 * What its place in the queue means for its session. A return that waits for its permit keeps it. So does a new run, but
 * for one that the runs of the minute hold up (BUD-5): that is loaded again when it may start. Mail in a scope whose budget
 * is spent starts nothing at all (BUD-2).
 */
function turnOf(tree: Tree, threadId: ThreadId): { readonly startable: boolean; readonly queued: boolean } {
  const path = tree.sessions.get(threadId)?.agent.path;
  const spent = path !== undefined && spentScope(tree.exhausted, path) !== null;
  return {
    startable: !tree.rateHeld && !spent,
    queued: tree.lane.isWaiting(threadId, tree.rateHeld ? "return" : undefined),
  };
}

/** Unloads, unless something came up since it was chosen. Resolves with whether the session is gone. */
export async function unload(tree: Tree, threadId: ThreadId): Promise<boolean> {
  const session = tree.sessions.get(threadId);
  if (session === undefined) return true;
  const before = session.lifecycle.state;
  if (!session.lifecycle.can("UNLOAD")) return false;
  session.lifecycle.send("UNLOAD");
  let calm: boolean;
  try {
    calm = await tree.transact((tx) => {
      // Mail that another process sent is seen here first; memory learns of it, and does not choose this one again at once.
      tx.effects.mail.add(threadId);
      const agent = tx.agent(threadId);
      const run = agent.currentRun === null ? undefined : tx.store.run(agent.currentRun);
      // The wait that it was chosen in may have ended with its run: then what counts is what counts for an idle one.
      const busy =
        run === undefined
          ? turnOf(tree, threadId).startable && tx.store.mailbox(threadId).triggers > 0
          : before === "idle" || run.status !== "waiting" || tx.store.openWaitsOf(threadId).length === 0;
      if (busy || agent.state !== "open") return false;
      tx.emit("agent.unloaded", agent, { runId: run?.id ?? null });
      return true;
    });
  } catch (error) {
    if (session.lifecycle.state === "unloading") stay(session);
    throw error;
  }
  if (session.lifecycle.state !== "unloading") return !tree.sessions.has(threadId);
  if (!calm || turnOf(tree, threadId).queued) {
    stay(session);
    return false;
  }
  session.lifecycle.send("UNLOADED");
  forget(tree, threadId);
  tree.track(closeSession(tree, session));
  return true;
}

/** Back to where it was; the run in whose wait it was may have been settled meanwhile. */
function stay(session: Session): void {
  session.lifecycle.send(session.run === null ? "KEEP" : "WAIT");
}

/** Drops a session from memory. Its slot is the caller's to release. */
export function forget(tree: Tree, threadId: ThreadId): void {
  const session = tree.sessions.get(threadId);
  if (session !== undefined) {
    session.generation += 1;
    session.end();
  }
  tree.sessions.delete(threadId);
  tree.mailboxes.delete(threadId);
  tree.runs.delete(threadId);
  tree.held.drop(threadId);
}
