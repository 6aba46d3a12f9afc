/** What others left for the owner of a tree: mail sent without the lease, and commands (REC-2). */
import type { z } from "zod";
import { ROOT_PATH } from "../protocol/agent-path.ts";
import {
  COMMAND_ARGUMENTS,
  commandIdSchema,
  type CommandRecord,
  type CommandVerb,
  ROOT_BY_DEFAULT,
} from "../protocol/command.ts";
import { CoppiceError, describeError, RejectedError } from "../protocol/errors.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { Caller } from "../protocol/tool.ts";
import { argumentsFault, check } from "../platform/check.ts";
import type { StoreView } from "../store/port.ts";
import { answerRequest } from "./requests.ts";
import { raiseBudget } from "./budget.ts";
import { close, closePolitely } from "./close.ts";
import { arrive, tellAccepted } from "./delivery.ts";
import { noteAt, placeOfCommand, recallAt, usedBefore } from "./idempotency.ts";
import { interrupt, type PartialText } from "./interrupt.ts";
import { followUp, sendMessage, userInput } from "./messages.ts";
import { resolveTarget } from "./resolve-target.ts";
import type { Transaction } from "./transaction.ts";
import type { AgentRecord } from "../protocol/agent.ts";

/** Mail that came by `send`: it is told, ends waits and wakes like any other. */
export function takeArrivals(tx: Transaction, arrivals = tx.store.arrivals(tx.treeId)): void {
  for (const mail of arrivals) {
    const recipient = tx.agent(mail.recipient);
    tellAccepted(tx, mail);
    if (mail.state === "accepted") arrive(tx, recipient, mail);
  }
  tx.store.takeArrivals(arrivals.map((mail) => mail.id));
}

/** Applies one command and answers it; a refusal is an answer too. */
export function applyCommand(tx: Transaction, command: CommandRecord, partial: PartialText): void {
  if (!isPending(tx, command)) return;
  answerCommand(tx, command, doOnce(tx, givenBy(command), "cli", partial));
}

function isPending({ store }: Transaction, { id }: CommandRecord): boolean {
  return store.command(id)?.state === "pending";
}

/** The commit that does what was asked notes that it is done. */
export function answerCommand(tx: Transaction, command: CommandRecord, answer: Json): void {
  tx.store.putCommand({ ...command, state: "done", answer, doneAt: tx.now });
  tx.emit("command.applied", null, {}, { commandId: command.id, verb: command.verb });
}

/** A command as it is given, by another process or here. */
export interface Given {
  readonly verb: CommandVerb;
  readonly arguments: JsonObject;
  readonly commandId: string | undefined;
}

type Addressed = Pick<CommandRecord, "verb" | "treeId" | "arguments">;

/** @throws RejectedError `INVALID_ARGUMENT`. */
export function givenBy({ verb, treeId, arguments: all }: Addressed): Given {
  const { command_id: commandId, ...rest } = all;
  const known = requireVerb(verb);
  const root = ROOT_BY_DEFAULT[known];
  const given = root === undefined ? rest : { [root]: treeId, ...rest };
  const id = check(`the id of the command ${known}`, commandIdSchema.optional(), commandId);
  return { verb: known, arguments: given, commandId: id };
}

/** What is given, as it may be stored: JSON, and nothing for which JSON has another word. @throws RejectedError `INVALID_ARGUMENT`. */
export function storable(command: Addressed): JsonObject {
  const { verb, arguments: given, commandId } = givenBy(command);
  const parsed = argumentsOf(verb, given) as JsonObject;
  return commandId === undefined ? parsed : { ...parsed, command_id: commandId };
}

/**
 * What the digest of a command covers: all that is asked, however it was put. What is left out, null, or said though it goes without
 * saying is the same; no argument means one thing left out and another as null.
 */
export function askedOf({ verb, arguments: given }: Given): JsonObject {
  const parsed = COMMAND_ARGUMENTS[verb].safeParse(given);
  const asked = (parsed.success ? parsed.data : given) as JsonObject;
  const said = Object.entries(asked).filter(([, value]) => value !== undefined && value !== null);
  return { verb, ...Object.fromEntries(said) };
}

/** The answer that a command with its id has had; undefined for a new one, and while it has none. @throws RejectedError `COMMAND_ID_CONFLICT`. */
export function answerOf(view: StoreView, given: Given): JsonObject | undefined {
  if (given.commandId === undefined) return undefined;
  return recallAt<JsonObject>(view, placeOfCommand(given.commandId), askedOf(given)) ?? undefined;
}

/**
 * For a command of several commits: a part of the one that ends it.
 * @throws RejectedError `COMMAND_ID_CONFLICT` when its id was used meanwhile: none of the commit is done then, and `answerOf` tells
 * whether it was for the same command.
 */
export function noteAnswer(tx: Transaction, given: Given, answer: JsonObject): void {
  if (given.commandId === undefined) return;
  const place = placeOfCommand(given.commandId);
  const asked = askedOf(given);
  if (answerOf(tx.store, given) !== undefined) throw usedBefore(place);
  noteAt(tx.store, place, asked, answer);
}

/** As `noteAnswer`, where that is all the commit does: the answer that was noted first stays. */
export function answerOnce(tx: Transaction, given: Given, answer: JsonObject): void {
  if (answerOf(tx.store, given) === undefined) noteAnswer(tx, given, answer);
}

/** With an id it is carried out once in the whole store, and answered again (lineage C3.12). */
export function doOnce(
  tx: Transaction,
  given: Given,
  by: "cli" | "library",
  partial: PartialText,
): JsonObject {
  const known = answerOf(tx.store, given);
  if (known !== undefined) return known;
  const answer = byVerb(tx, given, { kind: "user", name: by }, partial);
  noteAnswer(tx, given, answer);
  return answer;
}

/** The store, or the tree, was in the way: the command is for the next look, or the next owner. All else is its answer. */
export function comesAgain(error: unknown): boolean {
  if (!CoppiceError.is(error)) return false;
  return error.family === "transient" || error.family === "interrupted" || error.code === "FENCED";
}

/** A command that was refused changes nothing but its own row. */
export function refuseCommand(tx: Transaction, command: CommandRecord, error: unknown): void {
  if (!isPending(tx, command)) return;
  const answer: Json = CoppiceError.is(error)
    ? { ...error.toJSON(), details: error.details }
    : { code: "INVARIANT_BROKEN", message: describeError(error), retryable: false, details: {} };
  answerRefused(tx, command, answer);
}

/** With an error, or in the verb's own words; the next command with its id is another one. */
export function answerRefused(tx: Transaction, command: CommandRecord, answer: Json): void {
  tx.store.putCommand({ ...command, state: "refused", answer, doneAt: tx.now });
  tx.emit("command.applied", null, {}, { commandId: command.id, verb: command.verb, refused: true });
}

/** A row is written by anybody who can open the store, and one that could not be read has no verb. */
function requireVerb(verb: CommandVerb | null): CommandVerb {
  if (verb !== null && Object.hasOwn(COMMAND_ARGUMENTS, verb)) return verb;
  throw new RejectedError("INVALID_ARGUMENT", `no command is called ${verb}.`, { verb });
}

/** @throws RejectedError `INVALID_ARGUMENT` for arguments that the verb does not take, and what the verb itself refuses. */
function byVerb(
  tx: Transaction,
  { verb, arguments: given }: Given,
  user: Extract<Caller, { kind: "user" }>,
  partial: PartialText,
): JsonObject {
  const agentAt = (target: string): AgentRecord => resolveTarget(tx.store, tx.treeId, ROOT_PATH, target);
  switch (verb) {
    case "interrupt": {
      const { target, cascade, pending, run } = argumentsOf("interrupt", given);
      const asked = { cascade, pending, runId: run };
      const touched = interrupt(tx, agentAt(target), asked, partial);
      return {
        touched: touched.map((one) => ({
          path: one.path,
          previous: one.previous.kind,
          status: one.status.kind,
        })),
      };
    }
    case "close": {
      const { target, politely } = argumentsOf("close", given);
      const closing = politely ? closePolitely : close;
      return { closed: closing(tx, agentAt(target), partial).map((agent) => agent.path) };
    }
    case "send": {
      const { target, message } = argumentsOf("send", given);
      const sent = sendMessage(tx, user, target, message);
      return { message_id: sent.mail.id, seq: sent.mail.seq, agent: sent.agent.path };
    }
    case "followup": {
      const { target, message } = argumentsOf("followup", given);
      const agent = agentAt(target);
      const work =
        agent.parent === null
          ? userInput(tx, agent.threadId, user, { message, onBusy: "queue" })
          : followUp(tx, user, { target: agent.threadId, message }, false).work;
      return { work_id: work.id, agent: agent.path };
    }
    case "answer": {
      const { request, answer } = argumentsOf("answer", given);
      return { request_id: answerRequest(tx, request, answer).id };
    }
    case "raise_budget": {
      const { target, budget, limit } = argumentsOf("raise_budget", given);
      raiseBudget(tx, agentAt(target), budget, limit);
      return { budget, limit };
    }
    default: {
      const act = tx.context.verbs[verb];
      if (act !== undefined) return act(tx, given, user);
      throw new RejectedError(
        "NOT_OWNER",
        `${verb} needs a runtime with the tree's providers, and nobody owns the tree ${tx.treeId}; ask one, or open it there first.`,
        { treeId: tx.treeId, verb },
      );
    }
  }
}

function argumentsOf<Verb extends CommandVerb>(
  verb: Verb,
  given: JsonObject,
): z.output<(typeof COMMAND_ARGUMENTS)[Verb]> {
  const schema = COMMAND_ARGUMENTS[verb];
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data as z.output<(typeof COMMAND_ARGUMENTS)[Verb]>;
  throw argumentsFault(`the command ${verb}`, parsed.error, schema, { verb });
}
