/** What the tools between trees have in common: how a call reaches its verbs, and the approval before it (XTR-4). */
import { z } from "zod";
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

const SHOWN_BYTES = 1024;

export interface ThreadCall {
  readonly verbs: BetweenTrees;
  readonly from: CallFrom;
}

export function threadCall({ control, caller }: BuiltInCall, key?: string): ThreadCall {
  return { verbs: control.tree.shared.betweenTrees, from: { tree: control.tree, caller, key } };
}

/**
 * Null when the call may go on; else that it waits for somebody's answer.
 * @throws RejectedError when it was not approved.
 */
export async function approval(
  { control, caller }: BuiltInCall,
  tool: string,
  what: string,
): Promise<ToolOutcome | null> {
  const { tree } = control;
  const { approval: asked } = tree.shared.betweenTrees.policy;
  if (asked === "none") return null;
  if (asked === "agents" && (await control.read((view) => view.agent(caller.threadId)!.hostDriven)))
    return null;
  const text = headBytes(`${tool}: ${what}`, SHOWN_BYTES);
  const on = await tree.transact((tx) => approvalOf(tx, caller, { tool, text }));
  return on === null ? null : { kind: "waiting", on };
}
