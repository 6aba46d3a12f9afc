/**
 * How a run gets its context: the plan of `resolveStartContext`, carried out (lineage C4.17). What is built stands in the
 * store before it is sent, and none of it counts before the provider has accepted the run (C4.13).
 *
 * - R1 Another attempt of the same run sends what was built for the first. Another run has its text written anew.
 * - R2 What cannot be carried out sends nothing; the error says what to do (C4.9).
 */
import { RejectedError } from "../protocol/errors.ts";
import type { HandoffId, RunId, TransferId } from "../protocol/ids.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ItemBody, TranscriptItem } from "../protocol/transcript.ts";
import type { HandoffRecord } from "../protocol/transfer.ts";
import type { BuiltHandoff } from "../lineage/handoff/input.ts";
import { summarise, type SummaryMaterial, summaryMaterial } from "../lineage/handoff/summarise.ts";
import { renderSnapshot } from "../lineage/snapshot.ts";
import { resolveStartContext } from "../lineage/start-context.ts";
import type { StartFacts, StartPlan } from "../lineage/start-plan.ts";
import type { Session } from "../session/session.ts";
import { type Destination, NOTHING_TRIED, startFacts, type StartMemory } from "./start-facts.ts";
import { type StartText, textsOf, type ThreadAgent } from "./start-texts.ts";
import { emptyThread, handoffBody, providerThreadOf, transferOf, writeStart } from "./start-write.ts";
import { currentRun } from "./runs.ts";
import { contextOf } from "./thread-context.ts";
import type { Look } from "./transaction.ts";
import type { Tree } from "./tree.ts";

/** What a run starts with. True when its first request was accepted, and not before. */
export interface RunStart {
  readonly providerThread: ProviderThreadRecord;
  /** Goes before the mail of the first request. */
  readonly bodies: readonly ItemBody[];
  readonly handoffs: readonly HandoffId[];
  readonly transfers: readonly TransferId[];
  /** Of these nothing was to be told; they are over with the acceptance all the same. */
  readonly empty: readonly TransferId[];
}

export interface Planned {
  readonly run: RunRecord;
  readonly facts: StartFacts;
  readonly plan: StartPlan;
  readonly texts: readonly StartText[];
  readonly snapshot: string | null;
}

/** A text that is ready to be stored; null where there was nothing to tell. */
export interface BuiltText {
  readonly transferId: TransferId | null;
  readonly built: BuiltHandoff | null;
}

/**
 * Null for a thread from before threads: it has no transfers, and its provider gets the transcript as ever.
 * @throws RejectedError when the run cannot start; nothing was sent.
 */
export async function prepareStart(
  tree: Tree,
  session: Session,
  to: Destination,
  signal: AbortSignal,
): Promise<RunStart | null> {
  const { id } = session.run!;
  const known = await tree.look((look) => preparedBefore(look, id));
  if (known !== "none") return known;
  for (let memory = NOTHING_TRIED; ;) {
    const planned = await tree.look((look) => {
      const run = currentRun(look, id);
      return planStart(look, look.agent(run.threadId) as ThreadAgent, run, session.items, to, memory);
    });
    const texts = await buildTexts(tree, planned, signal);
    if (texts === "delta_too_large") {
      memory = { ...memory, deltaFits: false };
      continue;
    }
    const { run, plan, snapshot } = planned;
    // The plain case writes nothing that the acceptance would not write.
    if (texts.some(({ built }) => built !== null) || plan.obsolete.length > 0)
      return tree.transact((tx) => writeStart(tx, id, to, planned, texts));
    const empty = [transferOf(plan.base), ...texts.map(({ transferId }) => transferId)];
    return {
      providerThread: await tree.look((look) =>
        providerThreadOf(look, run, to, plan.base, tree.ids.mint("pth")),
      ),
      bodies: snapshot === null ? [] : [{ kind: "context", topic: "snapshot", text: snapshot }],
      handoffs: [],
      transfers: [],
      empty: [...new Set(empty.filter((one) => one !== null))],
    };
  }
}

/** What an earlier attempt of this run has left ready (C4.13). */
function preparedBefore(look: Look, id: RunId): RunStart | null | "none" {
  const run = currentRun(look, id);
  const agent = look.agent(run.threadId);
  if (agent.thread === null) return null;
  if (run.contextHandoffIds.length === 0) return "none";
  const handoffs = run.contextHandoffIds.map((handoff) => look.store.handoff(handoff));
  const ready = handoffs.every(
    (handoff): handoff is HandoffRecord => handoff?.status === "ready" && handoff.deliveredAt === null,
  );
  if (!ready || run.providerThreadId === null) return "none";
  const records = handoffs as readonly HandoffRecord[];
  return {
    providerThread:
      look.store.providerThread(run.providerThreadId) ?? emptyThread(look, run, run.providerThreadId),
    bodies: records.map(handoffBody),
    handoffs: records.map((handoff) => handoff.id),
    transfers: records.map((handoff) => handoff.transferId),
    empty: [],
  };
}

/** What would be done, and from what. @throws RejectedError for what cannot start at all. */
export function planStart(
  look: Look,
  agent: ThreadAgent,
  run: RunRecord,
  items: readonly TranscriptItem[],
  to: Destination,
  memory: StartMemory,
): Planned {
  const facts = startFacts(look, agent, run, to, memory);
  const plan = resolveStartContext(facts);
  const { base } = plan;
  if (base.kind === "unsupported") {
    throw new RejectedError(base.code, base.text, { provider: to.provider, threadId: agent.threadId });
  }
  const snapshot = base.kind === "projected" ? contextOf(look, agent) : null;
  return {
    run,
    facts,
    plan,
    texts: textsOf({ look, agent, run, to, facts, items }, plan),
    snapshot: snapshot === null ? null : renderSnapshot(snapshot),
  };
}

async function buildTexts(
  tree: Tree,
  { plan, facts, texts }: Planned,
  signal: AbortSignal,
): Promise<readonly BuiltText[] | "delta_too_large"> {
  const ready: BuiltText[] = [];
  for (const text of texts) {
    const { mode, told, transferId } = text;
    const built = text.build(
      await summarise({
        mode,
        summariser: tree.shared.summariser,
        material: mode === "recent" ? NO_MATERIAL : summaryMaterial(told),
        signal,
      }),
    );
    if (built.kind !== "failed") {
      ready.push({ transferId, built: built.kind === "built" ? built : null });
      continue;
    }
    const isDelta = plan.base.kind === "handoff" && plan.base.coverage === "delta" && text === texts[0];
    if (isDelta && facts.target.deltaFits === null) return "delta_too_large";
    const { limit, unit } = built.budget;
    throw new RejectedError(
      built.code,
      `not one message fits into a handoff of ${limit} ${unit}; raise the budget, or choose a model with a larger window.`,
      { limit, unit },
    );
  }
  return ready;
}

const NO_MATERIAL: SummaryMaterial = { dialogue: [], failures: [], files: [] };
