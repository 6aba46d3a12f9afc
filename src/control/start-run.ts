/**
 * How a run gets its context: the plan of `resolveStartContext`, carried out (lineage C4.17). What is built stands in the
 * store before it is sent, and none of it counts before the provider has accepted the run (C4.13).
 *
 * - R1 Another attempt of the same run sends what was built for the first. Another run has its text written anew.
 * - R2 What cannot be carried out sends nothing; the error says what to do (C4.9).
 */
import { RejectedError } from "../protocol/errors.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { HandoffId, RunId, TransferId } from "../protocol/ids.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import { budgetFor, type HandoffBudget } from "../lineage/handoff/budget.ts";
import { buildHandoff } from "../lineage/handoff/build.ts";
import type { BuiltHandoff, HandoffInput } from "../lineage/handoff/input.ts";
import { renderSnapshot } from "../lineage/snapshot.ts";
import { resolveStartContext } from "../lineage/start-context.ts";
import type { StartFacts, StartPlan } from "../lineage/start-plan.ts";
import type { Session } from "../session/session.ts";
import { type Destination, NOTHING_TRIED, startFacts, type StartMemory } from "./start-facts.ts";
import { otherThreadInput, switchInput } from "./start-handoff.ts";
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
}

type Thread = AgentRecord & { readonly thread: ThreadFacts };

export interface Planned {
  readonly run: RunRecord;
  readonly facts: StartFacts;
  readonly plan: StartPlan;
  /** Texts of the plan, in the order in which they are sent, each with the transfer that it resolves. */
  readonly texts: readonly { readonly transferId: TransferId | null; readonly built: BuiltHandoff }[];
  readonly snapshot: string | null;
}

/** Null for a thread from before threads: it has no transfers, and its provider gets the transcript as ever. */
export async function prepareStart(tree: Tree, session: Session, to: Destination): Promise<RunStart | null> {
  const { id } = session.run!;
  const known = await tree.look((look) => preparedBefore(look, id));
  if (known !== "none") return known;
  for (let memory = NOTHING_TRIED; ;) {
    const planned = await tree.look((look) => planStart(look, session, id, to, memory));
    if (planned === "delta_too_large") {
      memory = { ...memory, deltaFits: false };
      continue;
    }
    const { run, plan, texts, snapshot } = planned;
    // The plain case writes nothing that the acceptance would not write.
    if (texts.length > 0 || plan.obsolete.length > 0)
      return tree.transact((tx) => writeStart(tx, id, to, planned));
    const consumed = transferOf(plan.base);
    return {
      providerThread: await tree.look((look) =>
        providerThreadOf(look, run, to, plan.base, tree.ids.mint("pth")),
      ),
      bodies: snapshot === null ? [] : [{ kind: "context", topic: "snapshot", text: snapshot }],
      handoffs: [],
      transfers: consumed === null ? [] : [consumed],
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
  };
}

function planStart(
  look: Look,
  session: Session,
  id: RunId,
  to: Destination,
  memory: StartMemory,
): Planned | "delta_too_large" {
  const run = currentRun(look, id);
  const agent = look.agent(run.threadId) as Thread;
  const facts = startFacts(look, agent, run, to, memory);
  const plan = resolveStartContext(facts);
  const { base } = plan;
  if (base.kind === "unsupported") {
    throw new RejectedError(base.code, base.text, { provider: to.provider, threadId: agent.threadId });
  }
  const request = {
    agent,
    effects: new Map(look.context.toolEffects(agent).map(({ name, effects }) => [name, effects] as const)),
  };
  const texts: { transferId: TransferId | null; built: BuiltHandoff }[] = [];
  if (base.kind === "handoff") {
    const transfer = base.transferId === null ? undefined : look.store.transfer(base.transferId);
    const budget = budgetOf(look, agent, run, to, transfer);
    const input =
      transfer?.type === "fork"
        ? otherThreadInput(look, { ...request, purpose: "fork", extent: base.coverage, budget }, transfer)
        : switchInput(
            look,
            { ...request, purpose: "provider_handoff", extent: base.coverage, budget },
            base.runs,
            session.items,
          );
    const built = buildOrRefuse(input);
    if (built === "too_large" && base.coverage === "delta" && memory.deltaFits === null)
      return "delta_too_large";
    if (built === "too_large") throw budgetTooSmall(budget);
    if (built !== "empty") texts.push({ transferId: base.transferId, built });
  }
  for (const transferId of plan.mergeBacks) {
    const transfer = look.store.transfer(transferId)!;
    const budget = budgetOf(look, agent, run, to, transfer);
    const built = buildOrRefuse(
      otherThreadInput(look, { ...request, purpose: "merge_back", extent: "delta", budget }, transfer),
    );
    if (built === "too_large") throw budgetTooSmall(budget);
    if (built !== "empty") texts.push({ transferId, built });
  }
  const snapshot = base.kind === "projected" ? contextOf(look, agent) : null;
  return { run, facts, plan, texts, snapshot: snapshot === null ? null : renderSnapshot(snapshot) };
}

function buildOrRefuse(input: HandoffInput): BuiltHandoff | "too_large" | "empty" {
  const built = buildHandoff(input);
  if (built.kind === "built") return built;
  return built.kind === "empty" ? "empty" : "too_large";
}

function budgetTooSmall(budget: HandoffBudget): RejectedError {
  return new RejectedError(
    "HANDOFF_BUDGET_TOO_SMALL",
    `not one message fits into a handoff of ${budget.limit} ${budget.unit}; raise the budget, or choose a model with a larger window.`,
    { limit: budget.limit, unit: budget.unit },
  );
}

/** A fork's seed has a budget of its own; everything else has that of handoffs (C6.7, C18.7, C18.11). */
function budgetOf(
  look: Look,
  agent: Thread,
  run: RunRecord,
  to: Destination,
  transfer: TransferRecord | undefined,
): HandoffBudget {
  const policy = transfer?.type === "fork" ? agent.thread.forkPolicy : null;
  const text = run.causes.map(({ mailId }) => look.store.mail(mailId)?.content.text ?? "").join("\n");
  return budgetFor({
    limits: look.context.lineage,
    configured: policy === null ? null : { unit: "chars", limit: policy.replay.maxSeedChars },
    providerMaxChars: to.capabilities.context.maxRecommendedChars,
    window: look.context.contextWindow(agent),
    occupied: 0,
    message: { text, images: 0, attachments: 0 },
  });
}
