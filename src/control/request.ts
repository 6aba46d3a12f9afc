/** Requests: a work and the trigger-turn mail that asks for it, in one commit (WRK-1). */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Profile } from "../protocol/profile.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { Wake, WorkRecord } from "../protocol/work.ts";
import { headBytes, requireText } from "../platform/text.ts";
import type { Acting } from "./caller.ts";
import { deliver } from "./delivery.ts";
import { requireOutputSchema } from "./output-schema.ts";
import { resolveTarget } from "./resolve-target.ts";
import type { Transaction } from "./transaction.ts";
import { createWork } from "./works.ts";

export interface RequestInput {
  readonly message: string;
  readonly wake?: Wake | undefined;
  readonly detached?: boolean | undefined;
  readonly replyTo?: string | undefined;
  readonly outputSchema?: JsonObject | null | undefined;
  readonly acceptance?: string | null | undefined;
  readonly trace?: string | null | undefined;
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  readonly effort?: string | undefined;
}

/** A work and the trigger-turn mail that asks for it. */
export function requestWork(
  tx: Transaction,
  acting: Acting,
  executor: AgentRecord,
  input: RequestInput,
  kind: "new_task" | "user",
  options: { readonly steer?: boolean; readonly nextRun?: boolean } = {},
): WorkRecord {
  requireNames(tx.profile, { model: input.model, reasoning_effort: input.effort });
  const replyTo =
    input.replyTo === undefined
      ? acting.replyTo
      : replyAgent(
          resolveTarget(tx.store, tx.treeId, acting.agent?.path ?? ROOT_PATH, input.replyTo, "reply_to"),
        );
  const outputSchema =
    tx.profile.outputSchemas && input.outputSchema ? requireOutputSchema(input.outputSchema) : null;
  const mailId = tx.id("msg");
  const work = createWork(
    tx,
    {
      requester: acting.requester,
      executor,
      origin: acting.run,
      replyTo,
      // The whole of it is the request's mail; the record is written often and shown in lists.
      objective: headBytes(input.message, tx.limits.artifactHeadBytes),
      wake: input.wake,
      detached: input.detached,
      outputSchema,
      acceptance: input.acceptance ? headBytes(input.acceptance, tx.limits.artifactHeadBytes) : null,
      trace: input.trace,
    },
    mailId,
  );
  deliver(tx, executor, {
    id: mailId,
    author: acting.author,
    kind,
    authority: kind === "user" ? "user" : "agent",
    trigger: true,
    text: withNotes(input),
    workId: work.id,
    steer: options.steer ?? false,
    nextRun: options.nextRun ?? false,
    start: startOptions(acting.run, input),
  });
  return work;
}

function replyAgent(agent: AgentRecord) {
  return { kind: "agent", threadId: agent.threadId, path: agent.path } as const;
}

function startOptions(run: RunRecord | null, input: RequestInput) {
  return {
    parentRunId: run?.id ?? null,
    rootRunId: run?.rootRunId ?? null,
    ...(input.provider === undefined ? {} : { provider: input.provider }),
    ...(input.model === undefined ? {} : { model: input.model }),
    ...(input.effort === undefined ? {} : { effort: input.effort }),
  };
}

/** The request as the executor reads it, with what the result has to satisfy. */
function withNotes(input: RequestInput): string {
  const notes: string[] = [input.message];
  if (typeof input.acceptance === "string" && input.acceptance !== "")
    notes.push(`Acceptance: ${input.acceptance}`);
  if (input.outputSchema !== null && input.outputSchema !== undefined) {
    notes.push(
      `Answer with JSON alone that satisfies this JSON Schema: ${JSON.stringify(input.outputSchema)}`,
    );
  }
  return notes.join("\n\n");
}

/** @throws RejectedError `INVALID_ARGUMENT` for a name that is longer than the profile takes. */
export function requireNames(
  { nameBytes }: Profile,
  names: { readonly [Argument in keyof NonNullable<Profile["nameBytes"]>]?: string | null | undefined },
): void {
  if (nameBytes === null) return;
  for (const [argument, name] of Object.entries(names)) {
    if (typeof name === "string")
      requireText(argument, name, nameBytes[argument as keyof typeof names], "give a shorter one");
  }
}

/** @throws RejectedError `INVALID_ARGUMENT` for blank, oversized or malformed text (agents.md 12). */
export function requireMessage(tx: Transaction, message: string): void {
  if (typeof message !== "string") {
    throw new RejectedError("INVALID_ARGUMENT", `message is ${typeof message}; give a text.`, {
      argument: "message",
    });
  }
  if (message.trim() === "") {
    throw new RejectedError("INVALID_ARGUMENT", "message is blank; say what is wanted.", {
      argument: "message",
    });
  }
  requireText("message", message, tx.limits.messageBytes);
}
