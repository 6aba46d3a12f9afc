/** What the texts of a start are built for, and what each of them is before it is built (lineage C6). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { HandoffId, TransferId } from "../protocol/ids.ts";
import { NO_ORDINALS } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { ItemBody, TranscriptItem } from "../protocol/transcript.ts";
import type { BudgetRequest, Size } from "../lineage/handoff/budget.ts";
import type { BuiltHandoff, HandoffBuild, HandoffInput, SummaryOutcome } from "../lineage/handoff/input.ts";
import { estimateTokens } from "../policy/estimate-tokens.ts";
import { buildMessages } from "../session/prompt.ts";
import { conversationOf } from "../session/session.ts";
import { foreignRuns, messageOf } from "./own-conversation.ts";
import type { Destination } from "./start-facts.ts";
import type { Look } from "./transaction.ts";

export type ThreadAgent = AgentRecord & { readonly thread: ThreadFacts };

/** What else is told in the same start. */
export interface Beside {
  /** Room that the others leave; none is said before it is known that they want it. */
  readonly most?: Size;
  /** Merge-backs that were told whole by a text before this one. */
  readonly told: ReadonlySet<HandoffId>;
}

export interface StartText {
  /** The pending transfer that it resolves; null for a switch that is to be made. */
  readonly transferId: TransferId | null;
  readonly mode: HandoffInput["mode"];
  /** Whose conversation it tells of, where a summary of it may be asked for. */
  readonly left?: string | null;
  /** Of the thread that is told of; for a summary. */
  readonly told: Pick<HandoffInput, "segments" | "effects" | "workspace" | "redact" | "limits">;
  /** What it shares with the other texts of its start. */
  readonly shared: Size;
  /** @throws RejectedError for what cannot be told at all. */
  readonly build: (summary: SummaryOutcome, beside: Beside) => HandoffBuild;
  /** Given, not told: what stands in the child's transcript from then on (SPN-5). */
  readonly inherit?: (built: BuiltHandoff) => readonly ItemBody[];
  /** Where a user's own text takes its place: how it would be built without. */
  readonly anew?: StartText["build"];
}

export interface TextRequest {
  readonly look: Look;
  readonly agent: ThreadAgent;
  readonly run: Pick<RunRecord, "ordinal" | "causes">;
  readonly to: Destination;
  /** The thread's own transcript. */
  readonly items: readonly TranscriptItem[];
}

/** A request with the room that all its texts share. */
export interface RoomyRequest extends TextRequest {
  readonly room: Room;
  readonly shared: Size;
}

export type Room = Omit<BudgetRequest, "limits" | "configured" | "most">;

/** The window beside the user's message and what the conversation holds already (C6.7). */
export function roomOfStart(request: TextRequest, into: ProviderThreadRecord | null): Room {
  const { look, run, to } = request;
  return {
    providerMaxChars: to.capabilities.context.maxRecommendedChars,
    window: to.window,
    occupied: into !== null && look.context.loop(to.provider) === "ours" ? heldBy(request, into) : 0,
    message: { text: messageOf(look.store, run), images: 0, attachments: 0 },
  };
}

/**
 * Tokens that a conversation of ours holds beside what goes with each, such as instructions. What another's holds it knows
 * itself, and sees to.
 */
function heldBy({ look, agent, run, items }: TextRequest, into: ProviderThreadRecord): number {
  const before = { ...agent.thread, threadId: agent.threadId, ordinal: run.ordinal };
  const held = (one: Pick<ProviderThreadRecord, "nativeRunOrdinals">): number =>
    estimateTokens(buildMessages(agent, conversationOf(items, foreignRuns(look.store, before, one))), []);
  return held(into) - held({ nativeRunOrdinals: NO_ORDINALS });
}
