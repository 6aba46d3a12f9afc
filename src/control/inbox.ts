/** What others left for the owner of a tree: mail sent without the lease, and commands (REC-2). */
import { CoppiceError, describeError } from "../protocol/errors.ts";
import type { CommandRecord } from "../protocol/command.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import { answerRequest } from "./requests.ts";
import { raiseBudget } from "./budget.ts";
import { close } from "./close.ts";
import { arrive, tellAccepted } from "./delivery.ts";
import { interrupt, type PartialText } from "./interrupt.ts";
import { followUp, sendMessage, userInput } from "./messages.ts";
import { resolveTarget } from "./resolve-target.ts";
import type { Transaction } from "./transaction.ts";
import type { AgentRecord } from "../protocol/agent.ts";

/** Mail that came by `send`: it is told, ends waits and wakes like any other. */
export function takeArrivals(tx: Transaction): void {
  const arrivals = tx.store.arrivals(tx.treeId);
  for (const mail of arrivals) {
    const recipient = tx.agent(mail.recipient);
    tellAccepted(tx, recipient, mail);
    if (mail.state === "accepted") arrive(tx, recipient, mail);
  }
  tx.store.takeArrivals(arrivals.map((mail) => mail.id));
}

/** Applies one command and answers it; a refusal is an answer too. */
export function applyCommand(tx: Transaction, command: CommandRecord, partial: PartialText): void {
  const now = tx.store.command(command.id);
  if (now === undefined || now.state !== "pending") return;
  const answer = carryOut(tx, command, partial);
  tx.store.putCommand({ ...command, state: "done", answer, doneAt: tx.now });
  tx.emit("command.applied", null, {}, { commandId: command.id, verb: command.verb });
}

/** A command that was refused changes nothing but its own row. */
export function refuseCommand(tx: Transaction, command: CommandRecord, error: unknown): void {
  const now = tx.store.command(command.id);
  if (now === undefined || now.state !== "pending") return;
  const answer: Json = CoppiceError.is(error)
    ? { ...error.toJSON(), details: error.details }
    : { code: "INVARIANT_BROKEN", message: describeError(error), retryable: false, details: {} };
  tx.store.putCommand({ ...command, state: "refused", answer, doneAt: tx.now });
  tx.emit("command.applied", null, {}, { commandId: command.id, verb: command.verb, refused: true });
}

export function carryOut(
  tx: Transaction,
  command: Pick<CommandRecord, "verb" | "arguments">,
  partial: PartialText,
): Json {
  const asked = command.arguments;
  const user = { kind: "user", name: "cli" } as const;
  const target = (): AgentRecord => resolveTarget(tx.store, tx.treeId, "/root", text(asked, "target"));
  switch (command.verb) {
    case "interrupt": {
      const touched = interrupt(
        tx,
        target(),
        {
          cascade: asked["cascade"] === "subtree" ? "subtree" : "none",
          pending: asked["pending"] === "cancel" ? "cancel" : "keep",
          ...(typeof asked["run"] === "string" ? { runId: asked["run"] as `run_${string}` } : {}),
        },
        partial,
      );
      return {
        touched: touched.map((one) => ({
          path: one.path,
          previous: one.previous.kind,
          status: one.status.kind,
        })),
      };
    }
    case "close":
      return { closed: close(tx, target(), partial).map((agent) => agent.path) };
    case "send": {
      const sent = sendMessage(tx, user, text(asked, "target"), text(asked, "message"));
      return { message_id: sent.mail.id, seq: sent.mail.seq, agent: sent.agent.path };
    }
    case "followup": {
      const agent = target();
      const work =
        agent.parent === null
          ? userInput(tx, agent.threadId, user, { message: text(asked, "message"), onBusy: "queue" })
          : followUp(tx, user, { target: agent.threadId, message: text(asked, "message") }, true).work;
      return { work_id: work.id, agent: agent.path };
    }
    case "answer":
      return {
        request_id: answerRequest(tx, text(asked, "request") as `req_${string}`, text(asked, "answer")).id,
      };
    case "raise_budget": {
      const limit = asked["limit"];
      const budget = text(asked, "budget") as "tokens" | "money" | "wallClock";
      raiseBudget(tx, target(), budget, typeof limit === "number" ? limit : null);
      return { budget, limit: typeof limit === "number" ? limit : null };
    }
  }
}

function text(asked: JsonObject, name: string): string {
  const value = asked[name];
  return typeof value === "string" ? value : "";
}
