/** Fields and words that several of the asking tools share: what a request may say about its result, and an agent's status. */
import { z } from "zod";
import { EFFECTS, type AgentRecord, type AgentStatus } from "../protocol/agent.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { statusOf } from "../control/status.ts";

export const message = z
  .string()
  .describe("The text that the agent gets. It sees nothing else of your thoughts.");
export const target = z
  .string()
  .describe("Path (`/root/worker`), name below you (`worker` is your own child), or thread id of an agent.");
export const idempotencyKey = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .describe(
    "Same key and arguments: the same receipt and no second effect. Only useful when you may repeat a call.",
  );

/** What a spawn or a follow-up may say about its result. */
export const resultFields = {
  wake: z
    .enum(["always", "settled_only", "never"])
    .optional()
    .describe(
      "When the result starts a run of whoever gets it: `settled_only` (default) once its present run is over, `always` at once, `never` leaves it in the mailbox.",
    ),
  detached: z.boolean().optional().describe("True: your own task may end before this one does."),
  reply_to: z
    .string()
    .optional()
    .describe("Agent that gets the result in your place; makes the request detached."),
  output_schema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("JSON Schema that the answer has to satisfy; it is checked, with one attempt at repair."),
  acceptance: z.string().optional().describe("What a good answer looks like; sent along with the message."),
};

export const effects = z
  .array(z.enum(EFFECTS))
  .optional()
  .describe("What the agent may do to the world; at most what you may do yourself.");

const SHOWN_REASONS = 8;

/** An agent's status as outputs show it, bounded. */
export function shownStatus(status: AgentStatus | null): JsonObject | null {
  if (status?.kind !== "waiting") return status === null ? null : { ...status };
  const more = status.on.length - SHOWN_REASONS;
  return { kind: "waiting", on: status.on.slice(0, SHOWN_REASONS), ...(more > 0 ? { more } : {}) };
}

/** Null when it cannot be read: what was accepted before stays accepted, and is not to be answered as a failure. */
export async function currentStatus(
  control: AgentControl,
  path: AgentRecord["path"],
): Promise<AgentStatus | null> {
  const look = control.read((view) => statusOf(view, view.agentAt(control.tree.treeId, path)!, control));
  return look.catch(() => null);
}
