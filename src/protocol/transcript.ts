/** The transcript of a thread: items that only grow. It is ours and exact for the providers `model` and `scripted` (REC-5). */
import type { AgentPath } from "./agent-path.ts";
import type { HandoffId, MailId, RequestId, RunId, WaitId, WorkId } from "./ids.ts";
import type { Json, JsonObject } from "./json.ts";
import type { MailKind } from "./mail.ts";
import type { AskedAbout } from "./wait.ts";

export type AssistantPart =
  | { readonly type: "text"; readonly text: string; readonly provider?: JsonObject }
  | { readonly type: "reasoning"; readonly text: string; readonly provider?: JsonObject }
  | {
      readonly type: "tool_call";
      readonly callId: string;
      readonly name: string;
      /** The arguments as the model wrote them; parsed at the tool's edge. */
      readonly input: string;
      readonly provider?: JsonObject;
    }
  /** A question or approval that the provider asks; closed by a `tool_result` with the same call id (WAI-2). */
  | {
      readonly type: "request";
      readonly callId: string;
      readonly requestId: RequestId;
      readonly kind: "question" | "approval";
      readonly text: string;
      readonly about?: AskedAbout;
      readonly provider?: JsonObject;
    };

export type ItemBody =
  /** Input of the user. `inherited`: copied from the parent, context and not authority (SPN-5). */
  | {
      readonly kind: "user";
      readonly text: string;
      readonly mailId: MailId | null;
      readonly workId: WorkId | null;
      readonly inherited: boolean;
    }
  | {
      readonly kind: "mail";
      readonly mailId: MailId;
      readonly mail: MailKind;
      readonly author: AgentPath | "user" | "runtime";
      readonly recipient: AgentPath;
      readonly workId: WorkId | null;
      readonly resultOf: WorkId | null;
      /** Rendered, with its header lines; never a user turn (MBX-11). */
      readonly text: string;
    }
  | {
      readonly kind: "assistant";
      /** `answer`: the run's final answer. `intermediate`: an answer after which the run went on. `tools`: it made calls. `partial`: what a request had said when it was cut off. */
      readonly phase: "answer" | "intermediate" | "tools" | "partial";
      readonly parts: readonly AssistantPart[];
      readonly model: string | null;
      readonly inherited: boolean;
    }
  | {
      readonly kind: "tool_result";
      readonly callId: string;
      readonly name: string;
      readonly output: Json;
      readonly isError: boolean;
      /** Mail handed out by a wait: `delivered` with the acceptance of the request that holds this item (WAI-3). */
      readonly mailIds: readonly MailId[];
      readonly waitId: WaitId | null;
      readonly elapsedMs: number;
    }
  /** Text of the runtime to the model: abort marker, mode hint, children, notices. `topic` names which. */
  | {
      readonly kind: "context";
      readonly topic: ContextTopic;
      readonly text: string;
      /** Of a delivered handoff. */
      readonly handoffId?: HandoffId;
    };

export type ContextTopic =
  | "inherited_history"
  | "role"
  | "mode_hint"
  | "children"
  | "interrupted"
  | "lost_run"
  | "wrap_up"
  | "schema_repair"
  | "cut_short"
  | "model_switch"
  | "possibly_repeated"
  | "handoff"
  | "snapshot";

/** An item of the history of an agent. */
export type TranscriptItem = ItemBody & {
  /** 0, 1, 2 … per thread. */
  readonly index: number;
  readonly runId: RunId | null;
  readonly step: number;
  readonly at: number;
};

/** Of the history that a child was given of its parent (SPN-5). */
export function isInherited(item: ItemBody): boolean {
  if (item.kind === "context") return item.topic === "inherited_history";
  return (item.kind === "user" || item.kind === "assistant") && item.inherited;
}

/** Calls of the newest step that have no result yet, in order. A provider with a loop of its own calls piece by piece. */
export function openCalls(items: readonly TranscriptItem[]): Extract<AssistantPart, { callId: string }>[] {
  const closed = new Set<string>();
  const open: Extract<AssistantPart, { callId: string }>[] = [];
  let newest: TranscriptItem | null = null;
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const item = items[at]!;
    if (item.kind === "tool_result") closed.add(item.callId);
    if (item.kind !== "assistant") continue;
    newest ??= item;
    if (item.runId !== newest.runId || item.step !== newest.step) break;
    for (const part of item.parts.toReversed())
      if ("callId" in part && !closed.has(part.callId)) open.unshift(part);
  }
  return open;
}
