/** What the texts of a start are built for, and what each of them is before it is built (lineage C6). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { TransferId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { ItemBody, TranscriptItem } from "../protocol/transcript.ts";
import type { BudgetRequest } from "../lineage/handoff/budget.ts";
import type { BuiltHandoff, HandoffBuild, HandoffInput, SummaryOutcome } from "../lineage/handoff/input.ts";
import { messageOf } from "./own-conversation.ts";
import type { Destination } from "./start-facts.ts";
import type { Look } from "./transaction.ts";

export type ThreadAgent = AgentRecord & { readonly thread: ThreadFacts };

export interface StartText {
  /** The pending transfer that it resolves; null for a switch that is to be made. */
  readonly transferId: TransferId | null;
  readonly mode: HandoffInput["mode"];
  /** Of the thread that is told of; for a summary. */
  readonly told: Pick<HandoffInput, "segments" | "effects" | "workspace" | "redact" | "limits">;
  readonly build: (summary: SummaryOutcome) => HandoffBuild;
  /** Given, not told: what stands in the child's transcript from then on (SPN-5). */
  readonly inherit?: (built: BuiltHandoff) => readonly ItemBody[];
  /** Where a user's own text takes its place: how it would be built without. */
  readonly anew?: StartText["build"];
}

export interface TextRequest {
  readonly look: Look;
  readonly agent: ThreadAgent;
  readonly run: Pick<RunRecord, "causes">;
  readonly to: Destination;
  /** The thread's own transcript. */
  readonly items: readonly TranscriptItem[];
}

/** What is left of the target's window beside the user's message (C6.7). */
export function room({ look, run, to }: TextRequest): Omit<BudgetRequest, "limits" | "configured"> {
  return {
    providerMaxChars: to.capabilities.context.maxRecommendedChars,
    window: to.window,
    occupied: 0,
    message: { text: messageOf(look.store, run), images: 0, attachments: 0 },
  };
}
