/**
 * The texts that a plan calls for: each with what it is built from, so that somebody may write a summary before it is built
 * (lineage C6). Reads are done when this returns; building needs no store.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { holdsOrdinal } from "../protocol/ordinals.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { verifyHandoff } from "../lineage/handoff-record.ts";
import { budgetFor } from "../lineage/handoff/budget.ts";
import { buildHandoff } from "../lineage/handoff/build.ts";
import { mergeBackText } from "../lineage/handoff/merge-back.ts";
import { replaySeed } from "../lineage/handoff/seed.ts";
import { handoffOf } from "../lineage/transfer.ts";
import { canonicalJson } from "../platform/canonical-json.ts";
import { mergeBackDelta } from "../lineage/merge-back.ts";
import type { HandoffBase, StartPlan } from "../lineage/start-plan.ts";
import { deliveredInto } from "./start-facts.ts";
import { spawnText } from "./start-inherited.ts";
import { room, type StartText, type TextRequest } from "./start-request.ts";
import { forkSegments, ownSegments, type Segments, sinceBase } from "./start-segments.ts";
import { readerOf } from "./thread-reader.ts";
import { contextOf } from "./thread-context.ts";
import { must, type Look } from "./transaction.ts";

/** The tool by which a model reads what a text has left out. */
const READ_TOOL = "read_thread";

export function textsOf(request: TextRequest, plan: StartPlan): readonly StartText[] {
  return allTexts(request, plan).map((text) => asWritten(request.look, text));
}

/** What a user has written for a transfer is sent as it is, as long as it tells of the same runs (C3.11). */
function asWritten({ store }: Look, text: StartText): StartText {
  const transfer = text.transferId === null ? undefined : store.transfer(text.transferId);
  const id = transfer === undefined ? null : handoffOf(transfer);
  const handoff = id === null ? undefined : store.handoff(id);
  if (handoff?.strategy !== "manual_context" || handoff.status !== "ready") return text;
  return {
    ...text,
    anew: text.build,
    build: (summary) => {
      const built = text.build(summary);
      if (built.kind !== "built") return built;
      const same = canonicalJson(built.about.coveredRuns) === canonicalJson(handoff.coveredRuns);
      if (!same) return built;
      const { kind, strategy, coveredRuns, coveredRunOrdinals, payload, budget, createdByProvider } = handoff;
      const about = { kind, strategy, coveredRuns, coveredRunOrdinals, payload, budget, createdByProvider };
      return { ...built, text: verifyHandoff(handoff).summaryText, about };
    },
  };
}

function allTexts(request: TextRequest, { base, mergeBacks }: StartPlan): readonly StartText[] {
  const { look } = request;
  const texts = base.kind === "handoff" ? [baseText(request, base)] : [];
  const into = base.kind === "handoff" || base.kind === "none" ? base.providerThreadId : null;
  for (const id of mergeBacks)
    texts.push(mergeBackOf(request, must(look.store.transfer(id), "transfer", id), into));
  return texts;
}

function baseText(request: TextRequest, base: HandoffBase): StartText {
  const { look, agent } = request;
  const transfer = base.transferId === null ? undefined : look.store.transfer(base.transferId);
  if (transfer?.type === "fork") return seedText(request, transfer);
  if (transfer?.type === "subagent_spawn") return spawnText(request, transfer);
  const told = ownSegments(look, agent, base.runs, request.items, base.coverage !== "delta");
  const input = { ...shared(request, told), purpose: "provider_handoff", extent: base.coverage } as const;
  return {
    transferId: base.transferId,
    mode: "recent",
    told: { ...input, segments: told.segments },
    build: (summary) =>
      buildHandoff({
        ...input,
        segments: told.segments,
        mode: summary.kind === "text" ? "summary_plus_recent" : "recent",
        summary,
        budget: budgetFor({ ...room(request), limits: input.limits, configured: null }),
      }),
  };
}

function seedText(request: TextRequest, transfer: TransferRecord): StartText {
  const { look, agent } = request;
  const told = forkSegments(look, transfer);
  const input = shared(request, told);
  const policy = agent.thread.forkPolicy!.replay;
  return {
    transferId: transfer.id,
    mode: policy.mode,
    told: { ...input, segments: told.segments },
    build(summary) {
      const seed = replaySeed({ ...input, segments: told.segments, summary, policy, room: room(request) });
      if (seed.kind === "built" || seed.code === "HANDOFF_BUDGET_TOO_SMALL") return seed;
      if (transfer.requestedStrategy !== "replay") return { kind: "empty" };
      throw new RejectedError(
        "FORK_SEED_EMPTY",
        "nothing lies before the point of the fork that could be replayed; start a new thread.",
        { transferId: transfer.id },
      );
    },
  };
}

function mergeBackOf(
  request: TextRequest,
  transfer: TransferRecord,
  into: HandoffBase["providerThreadId"],
): StartText {
  const { look, agent } = request;
  const fork = must(look.store.agent(transfer.sourceThreadId), "thread", transfer.sourceThreadId);
  const target = into === null ? null : (look.store.providerThread(into) ?? null);
  const known = deliveredInto(look.store, target);
  const delta = mergeBackDelta(readerOf(look.store, fork), transfer.sourcePoint, target, known);
  const told = forkSegments(look, transfer);
  const own = told.segments.at(-1)!;
  const inDelta = own.runs.filter(({ ordinal }) => holdsOrdinal(delta.runs, ordinal));
  const segment = { ...own, runs: inDelta };
  const input = shared(request, told);
  return {
    transferId: transfer.id,
    mode: "recent",
    told: { ...input, segments: [segment] },
    build: (summary) =>
      mergeBackText({
        ...input,
        fork: segment,
        delivered: [],
        target: sinceBase(look, agent, transfer, request.items),
        mode: "recent",
        summary,
        budget: budgetFor({ ...room(request), limits: input.limits, configured: null }),
      }),
  };
}

function shared({ look, agent }: TextRequest, { snapshot, checkpoint, segments, further }: Segments) {
  const open = look.store.openRequestsOf(agent.threadId);
  return {
    snapshot: snapshot ?? contextOf(look, agent),
    checkpoint,
    further,
    workspace: agent.config.workspace,
    openRequests: open.map(({ kind, text }) => ({ kind, text, askedBy: agent.path })),
    effects: new Map(look.context.toolEffects(agent).map(({ name, effects }) => [name, effects] as const)),
    readTool: readToolOf(look, agent, segments.at(-1)?.threadId),
    redact: look.context.redact,
    limits: look.context.lineage,
  };
}

/** The call that reads the thread that a text is made from; null where the agent has no tool for it. */
function readToolOf(look: Look, agent: AgentRecord, source: ThreadId | undefined): string | null {
  if (!look.context.toolEffects(agent).some(({ name }) => name === READ_TOOL)) return null;
  // A fork shows what it inherits; of another tree nobody reads more than its root.
  return source === undefined || source === agent.threadId || look.store.agent(source)?.parent !== null
    ? READ_TOOL
    : `${READ_TOOL} {"thread_id": "${source}"}`;
}
