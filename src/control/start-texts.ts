/**
 * The texts that a plan calls for: each with what it is built from, so that somebody may write a summary before it is built
 * (lineage C6). Reads are done when this returns; building needs no store.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { holdsOrdinal, type OrdinalRange } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import { verifyHandoff } from "../lineage/handoff-record.ts";
import { budgetFor, roomForAll } from "../lineage/handoff/budget.ts";
import { buildHandoff } from "../lineage/handoff/build.ts";
import { mergeBackText } from "../lineage/handoff/merge-back.ts";
import { replaySeed } from "../lineage/handoff/seed.ts";
import { handoffOf } from "../lineage/transfer.ts";
import { canonicalJson } from "../platform/canonical-json.ts";
import { mergeBackDelta } from "../lineage/merge-back.ts";
import type { HandoffBase, StartPlan } from "../lineage/start-plan.ts";
import { deliveredInto } from "./start-facts.ts";
import { spawnText } from "./start-inherited.ts";
import { type RoomyRequest, roomOfStart, type StartText, type TextRequest } from "./start-request.ts";
import { forkSegments, ownSegments, type Segments, sinceBase } from "./start-segments.ts";
import { readerOf } from "./thread-reader.ts";
import { contextOf } from "./thread-context.ts";
import { must, type Look } from "./transaction.ts";
import type { StoreView } from "../store/port.ts";

/** The tool by which a model reads what a text has left out. */
const READ_TOOL = "read_thread";

export function textsOf(request: TextRequest, plan: StartPlan): readonly StartText[] {
  return allTexts(request, plan).map((text) => asWritten(request.look, text));
}

/** What a user has written for a transfer is sent as it is, as long as it tells of the same runs, whatever room there is (C3.11). */
function asWritten({ store }: Look, text: StartText): StartText {
  const transfer = text.transferId === null ? undefined : store.transfer(text.transferId);
  const id = transfer === undefined ? null : handoffOf(transfer);
  const handoff = id === null ? undefined : store.handoff(id);
  if (handoff?.strategy !== "manual_context" || handoff.status !== "ready") return text;
  return {
    ...text,
    anew: text.build,
    build: (summary, beside) => {
      const built = text.build(summary, beside);
      if (built.kind === "empty") return built;
      const tells = built.kind === "built" ? built.about.coveredRuns : built.coveredRuns;
      if (canonicalJson(tells) !== canonicalJson(handoff.coveredRuns)) return built;
      const { kind, strategy, coveredRuns, coveredRunOrdinals, payload, budget, createdByProvider } = handoff;
      const about = { kind, strategy, coveredRuns, coveredRunOrdinals, payload, budget, createdByProvider };
      const { summaryText, coveredRanges } = verifyHandoff(handoff);
      return { kind: "built", text: summaryText, about, coveredRanges, pinned: "", mode: "recent" };
    },
  };
}

function allTexts(given: TextRequest, { base, mergeBacks }: StartPlan): readonly StartText[] {
  if (base.kind !== "handoff" && mergeBacks.length === 0) return [];
  const { look } = given;
  const id = base.kind === "handoff" || base.kind === "none" ? base.providerThreadId : null;
  const into = id === null ? null : (look.store.providerThread(id) ?? null);
  const room = roomOfStart(given, into);
  const shared = roomForAll({ ...room, limits: look.context.lineage });
  const request: RoomyRequest = { ...given, room, shared };
  return [
    ...(base.kind === "handoff" ? [baseText(request, base)] : []),
    ...mergeBacks.map((one) => mergeBackOf(request, must(look.store.transfer(one), "transfer", one), into)),
  ];
}

function baseText(request: RoomyRequest, base: HandoffBase): StartText {
  const { look, agent } = request;
  const transfer = base.transferId === null ? undefined : look.store.transfer(base.transferId);
  if (transfer?.type === "fork") return seedText(request, transfer);
  if (transfer?.type === "subagent_spawn") return spawnText(request, transfer);
  const told = ownSegments(look, agent, base.runs, request.items, base.coverage !== "delta");
  const input = { ...shared(request, told), purpose: "provider_handoff", extent: base.coverage } as const;
  return {
    transferId: base.transferId,
    shared: request.shared,
    mode: "recent",
    told: { ...input, segments: told.segments },
    build: (summary, { most }) =>
      buildHandoff({
        ...input,
        segments: told.segments,
        mode: summary.kind === "text" ? "summary_plus_recent" : "recent",
        summary,
        budget: budgetFor({ ...request.room, limits: input.limits, configured: null, most }),
      }),
  };
}

function seedText(request: RoomyRequest, transfer: TransferRecord): StartText {
  const { look, agent } = request;
  const told = forkSegments(look, transfer);
  const input = shared(request, told);
  const policy = agent.thread.forkPolicy!.replay;
  return {
    transferId: transfer.id,
    shared: request.shared,
    mode: policy.mode,
    left: transfer.sourceProvider,
    told: { ...input, segments: told.segments },
    build(summary, { most }) {
      const room = { ...request.room, most };
      const seed = replaySeed({ ...input, segments: told.segments, summary, policy, room });
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
  request: RoomyRequest,
  transfer: TransferRecord,
  target: ProviderThreadRecord | null,
): StartText {
  const { look, agent } = request;
  const fork = must(look.store.agent(transfer.sourceThreadId), "thread", transfer.sourceThreadId);
  const runs = runsBroughtBack(look.store, fork, transfer.sourcePoint, target);
  const told = forkSegments(look, transfer);
  const own = told.segments.at(-1)!;
  const inDelta = own.runs.filter(({ ordinal }) => holdsOrdinal(runs, ordinal));
  const segment = { ...own, runs: inDelta };
  const earlier = broughtBack(request, fork.threadId);
  const input = shared(request, told);
  return {
    transferId: transfer.id,
    shared: request.shared,
    mode: "recent",
    told: { ...input, segments: [segment] },
    build: (summary, beside) =>
      mergeBackText({
        ...input,
        fork: segment,
        delivered: earlier.flatMap(({ id, coveredRuns }) => (beside.told.has(id) ? coveredRuns : [])),
        target: sinceBase(look, agent, transfer, request.items),
        mode: "recent",
        summary,
        budget: budgetFor({ ...request.room, limits: input.limits, configured: null, most: beside.most }),
      }),
  };
}

/** The runs of a fork, up to a point, that a conversation was not told of; null for a new one (C7.6). */
export function runsBroughtBack(
  view: StoreView,
  fork: AgentRecord,
  until: TransferRecord["sourcePoint"],
  target: ProviderThreadRecord | null,
): readonly OrdinalRange[] {
  return mergeBackDelta(readerOf(view, fork), until, target, knownIn(view, target)).runs;
}

/** Handoffs that were delivered into a conversation, and those that they have told again (C7.6). */
function knownIn(view: StoreView, target: ProviderThreadRecord | null): readonly HandoffRecord[] {
  const inside = deliveredInto(view, target);
  const again = inside.flatMap(({ payload }) => payload.mergeBackIds ?? []);
  return [...inside, ...again.flatMap((id) => view.handoff(id) ?? [])];
}

/** What this fork has brought back already, whoever was told of it. */
function broughtBack({ look, items }: TextRequest, fork: ThreadId): readonly HandoffRecord[] {
  return items.flatMap((item) => {
    const id = item.kind === "context" ? item.handoffId : undefined;
    const handoff = id === undefined ? undefined : look.store.handoff(id);
    return handoff?.sourceThreadId === fork ? [handoff] : [];
  });
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
