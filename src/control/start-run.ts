/**
 * How a run gets its context: the plan of `resolveStartContext`, carried out (lineage C4.17). What is built stands in the
 * store before it is sent, and none of it counts before the provider has accepted the run (C4.13).
 *
 * - R1 Another attempt of the same run sends what was built for the first. Another run has its text written anew.
 * - R2 What cannot be carried out sends nothing; the error says what to do (C4.9).
 */
import { RejectedError } from "../protocol/errors.ts";
import type { HandoffId } from "../protocol/ids.ts";
import type { NativeRef, ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord, StartDecision } from "../protocol/run.ts";
import type { ItemBody, TranscriptItem } from "../protocol/transcript.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { renderSnapshot } from "../lineage/snapshot.ts";
import { resolveStartContext } from "../lineage/start-context.ts";
import type { StartFacts, StartPlan } from "../lineage/start-plan.ts";
import type { RunPorts } from "../session/ports.ts";
import type { Session } from "../session/session.ts";
import { type Destination, NOTHING_TRIED, startFacts, type StartMemory } from "./start-facts.ts";
import { type BuiltText, buildTexts } from "./start-build.ts";
import { NativeStart } from "./start-native.ts";
import type { StartText, ThreadAgent } from "./start-request.ts";
import { textsOf } from "./start-texts.ts";
import { bodiesOf, decisionOf, newProviderThread, writeStart } from "./start-write.ts";
import type { RunClock } from "./run-clock.ts";
import { currentRun } from "./runs.ts";
import { contextOf } from "./thread-context.ts";
import type { Look } from "./transaction.ts";
import type { Tree } from "./tree.ts";

/** What a run starts with. True when its first request was accepted, and not before. */
export interface RunStart extends StartDecision {
  readonly providerThread: ProviderThreadRecord;
  /** Goes before the mail of the first request. */
  readonly bodies: readonly ItemBody[];
  readonly handoffs: readonly HandoffId[];
}

export interface Planned {
  readonly facts: StartFacts;
  readonly plan: StartPlan;
  /** The provider thread that is gone on with; null for a new one. */
  readonly record: ProviderThreadRecord | null;
  readonly intended: { readonly transfer: TransferRecord; readonly sourceRef: NativeRef } | null;
  /** The plan goes on with a fork of the provider's own, by which its transfer was resolved. */
  readonly resolvedNatively: boolean;
  readonly texts: readonly StartText[];
  readonly snapshot: string | null;
}

/** The drive of a run, as far as its start is concerned. */
export interface Driven {
  readonly signal: AbortSignal;
  readonly clock: RunClock;
  /** Under the span of the run (C21). */
  readonly span: RunPorts["span"];
}

/**
 * Null for a thread from before threads: it has no transfers, and its provider gets the transcript as ever.
 * @throws RejectedError when the run cannot start; nothing was sent.
 */
export async function prepareStart(
  tree: Tree,
  session: Session,
  to: Destination,
  { signal, clock, span }: Driven,
): Promise<RunStart | null> {
  const { id } = session.run!;
  const { provider } = session;
  const native =
    provider.loop === "ours" ? null : new NativeStart(tree, session, provider, to, signal, clock);
  let memory = NOTHING_TRIED;
  let again = false;
  for (;;) {
    const found = await span("resolveStartContext", {}, async (add) => {
      const planned = await tree.look((look) => {
        const run = currentRun(look, id);
        const agent = look.agent(run.threadId);
        if (agent.thread === null) return null;
        const ready = again ? null : preparedBefore(look, run, to);
        return ready ?? planStart(look, agent as ThreadAgent, run, session.items, to, memory);
      });
      if (planned !== null && "plan" in planned) add({ "coppice.start.plan": planned.plan.base.kind });
      return planned;
    });
    if (found === null) return null;
    again = true;
    if ("bodies" in found) {
      const { providerThread } = found;
      if (native === null || (await native.resume(providerThread))) return found;
      memory = { ...memory, failedResume: [providerThread.id] };
      continue;
    }
    const asked = native === null ? "go" : await askProvider(native, found, span);
    if (asked !== "go") {
      memory = { ...memory, ...asked };
      continue;
    }
    const build = () => buildTexts(tree.shared.summariser, found, signal);
    const count = found.texts.length;
    const texts = await (count === 0
      ? build()
      : span("handoff.build", { "coppice.handoff.texts": count }, build));
    if ("teaches" in texts) {
      memory = { ...memory, ...texts.teaches };
      continue;
    }
    return storeStart(tree, session.run!, to, found, texts, span);
  }
}

/** What a provider has to do before anything is built; what it will not do changes the plan. */
async function askProvider(
  native: NativeStart,
  { plan, record, intended, facts }: Planned,
  span: Driven["span"],
): Promise<"go" | Partial<StartMemory>> {
  const { base } = plan;
  if (intended !== null) {
    await native.settleIntent(intended.transfer, intended.sourceRef);
    return {};
  }
  // Forked now, or not at all: either way the next plan knows.
  if (base.kind === "native_fork") {
    const about = { "coppice.transfer.id": base.transferId };
    const forked = await span("fork.native", about, async (add) => {
      const made = await native.fork(base);
      add({ "coppice.fork.made": made });
      return made;
    });
    return forked ? {} : { nativeFailed: true };
  }
  if (record !== null) return (await native.resume(record)) ? "go" : { failedResume: [record.id] };
  // One that could not be resumed is given up for a new one, once; a second failure is the run's (C4.15).
  if (facts.failedResume.length > 0) await native.begin();
  return "go";
}

async function storeStart(
  tree: Tree,
  run: RunRecord,
  to: Destination,
  planned: Planned,
  texts: readonly BuiltText[],
  span: Driven["span"],
): Promise<RunStart> {
  const { snapshot } = planned;
  // The plain case writes nothing that the acceptance would not write.
  if (texts.some(({ built }) => built !== null))
    return span("transfer.resolve", { "coppice.transfer.ids": transfersOf(texts) }, () =>
      tree.transact((tx) => writeStart(tx, run.id, to, planned, texts)),
    );
  return {
    ...decisionOf(planned, texts, []),
    providerThread:
      planned.record ?? newProviderThread(run, to, tree.ids.mint("pth"), tree.shared.clock.now()),
    bodies: snapshot === null ? [] : [{ kind: "context", topic: "snapshot", text: snapshot }],
    handoffs: [],
  };
}

/** Those that were there before; a switch's own is made with its text. */
function transfersOf(texts: readonly BuiltText[]): string[] {
  return texts.flatMap(({ transferId }) => transferId ?? []);
}

/** What an earlier attempt of this run has left ready (C4.13). */
function preparedBefore(look: Look, run: RunRecord, to: Destination): RunStart | null {
  const { providerThreadId: id, starting } = run;
  if (starting === undefined || id === null) return null;
  const handoffs = run.contextHandoffIds.flatMap((handoff) => look.store.handoff(handoff) ?? []);
  const ready = handoffs.filter(({ status, deliveredAt }) => status === "ready" && deliveredAt === null);
  if (ready.length < run.contextHandoffIds.length) return null;
  const stored = look.store.providerThread(id);
  return {
    ...starting,
    providerThread: stored ?? newProviderThread(run, to, id, look.now),
    bodies: bodiesOf(look, run, ready),
    handoffs: ready.map((handoff) => handoff.id),
  };
}

/** What would be done, and from what. @throws RejectedError for what cannot start at all. */
export function planStart(
  look: Look,
  agent: ThreadAgent,
  run: Pick<RunRecord, "ordinal" | "causes">,
  items: readonly TranscriptItem[],
  to: Destination,
  memory: StartMemory,
): Planned {
  const facts = startFacts(look, agent, run, items, to, memory);
  const plan = resolveStartContext(facts);
  const { base } = plan;
  const intended =
    base.kind === "unsupported" && base.code === "FORK_NATIVE_INDETERMINATE" ? intentOf(facts) : null;
  if (base.kind === "unsupported" && intended === null) {
    throw new RejectedError(base.code, base.text, { provider: to.provider, threadId: agent.threadId });
  }
  const id = base.kind === "none" || base.kind === "handoff" ? base.providerThreadId : null;
  // Any other plan replaces a transfer that was resolved by a fork which nobody goes on with.
  const forked = base.kind === "none" ? base.transferId : null;
  const snapshot = base.kind === "projected" ? contextOf(look, agent) : null;
  return {
    facts,
    plan,
    record: id === null ? null : (look.store.providerThread(id) ?? null),
    intended,
    resolvedNatively: forked !== null && look.store.transfer(forked)?.status === "resolved_native",
    texts: textsOf({ look, agent, run, to, items }, plan),
    snapshot: snapshot === null ? null : renderSnapshot(snapshot, look.context.redact),
  };
}

/** A fork that was asked for, and nobody knows whether it was made. */
function intentOf({ pending, fork }: StartFacts): Planned["intended"] {
  const transfer = pending.findLast(({ type, intent }) => type === "fork" && intent !== null);
  const sourceRef = fork?.point.source?.nativeThreadRef ?? null;
  return transfer === undefined || sourceRef === null ? null : { transfer, sourceRef };
}
