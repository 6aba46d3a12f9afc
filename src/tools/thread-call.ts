/** What the tools between trees have in common: how a call reaches its verbs, and the approval before it (XTR-4). */
import { z } from "zod";
import type { AgentConfig } from "../protocol/agent.ts";
import type { ToolOutcome } from "../protocol/tool.ts";
import { headBytes } from "../platform/text.ts";
import { approvalOf } from "../control/approvals.ts";
import type { BetweenTrees, CallFrom } from "../control/between-trees.ts";
import type { BuiltInCall } from "./built-in.ts";

export const threadId = z
  .string()
  .describe(
    "Id of a thread, such as `thread_…`; of a root, for agents below one are reached within their tree alone.",
  );

const SHOWN_BYTES = 4096;
const QUOTED_BYTES = 240;

export interface ThreadCall {
  readonly verbs: BetweenTrees;
  readonly from: CallFrom;
}

export function threadCall({ control, caller }: BuiltInCall, key?: string): ThreadCall {
  return { verbs: control.tree.shared.betweenTrees, from: { tree: control.tree, caller, key } };
}

/** What is to be approved: in words, which are cut where they are long, and the arguments whole. */
export interface Approved {
  readonly tool: string;
  readonly arguments: object;
  /** Of the agent that calls: what is left out is as it is for that one. */
  readonly words: (caller: AgentConfig) => string;
}

/**
 * Null when the call may go on; else that it waits for somebody's answer.
 * @throws RejectedError when it was not approved.
 */
export async function approval(
  { control, caller }: BuiltInCall,
  { tool, arguments: input, words }: Approved,
): Promise<ToolOutcome | null> {
  const { tree } = control;
  const { approval: asked } = tree.shared.betweenTrees.policy;
  if (asked === "none") return null;
  if (asked === "agents" && (await control.read((view) => view.agent(caller.threadId)!.hostDriven)))
    return null;
  const on = await tree.transact((tx) => {
    const text = headBytes(words(tx.agent(caller.threadId).config), SHOWN_BYTES);
    return approvalOf(tx, caller, { tool, text, input: JSON.stringify(input) });
  });
  return on === null ? null : { kind: "waiting", on };
}

/** The beginning of a text that somebody else is to get, on one line and in quotes. */
export function quoted(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  const head = headBytes(line, QUOTED_BYTES);
  return JSON.stringify(head === line ? line : `${head}…`);
}
