/** Events of a tree as lines that one can follow. What only books keep (steps, permits, moves of records) has no line. */
import type { RuntimeEvent } from "../../protocol/events.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { clean, type Style } from "../terminal.ts";
import { type Names, shortName } from "./words.ts";

export interface EventLine {
  readonly who: string;
  readonly what: string;
  readonly style: Style | null;
}

/** Tools whose effect has a line of its own. */
const TOLD_ELSEWHERE = new Set([
  "spawn_agent",
  "send_message",
  "followup_task",
  "interrupt_agent",
  "wait_agent",
  "report_result",
]);

/** Null for an event that tells a follower nothing. */
export function eventLine(event: RuntimeEvent, name: Names = shortName): EventLine | null {
  const { data } = event;
  const who = event.path === null ? "tree" : name(event.path);
  const line = (what: string, style: Style | null = null): EventLine => ({ who, what: clean(what), style });
  switch (event.type) {
    case "tree.opened":
      return line(
        `grows a root on ${[text(data, "provider"), text(data, "model")].filter((part) => part !== "").join("/")}`,
      );
    case "tree.claimed":
      return line("has an owner", "dim");
    case "agent.spawned":
      return line(`is started by ${name(text(data, "parent"))}`, "green");
    case "agent.loaded":
      return line("is loaded", "dim");
    case "agent.unloaded":
      return line("is unloaded; the store has it all", "dim");
    case "agent.load_failed":
      return line(`cannot be loaded: ${text(data, "message")}`, "red");
    case "agent.blocked":
      return line(`cannot run: ${text(data, "message")}`, "red");
    case "agent.interrupted":
      return line("is interrupted", "red");
    case "agent.closed":
      return line("is closed", "dim");
    case "mail.accepted":
      return mailLine(event, line, name);
    case "mail.dead_lettered":
      return line(`loses a message: ${text(data, "reason")}`, "red");
    case "mail.redirected":
      return line(`has its result sent to ${text(data, "to")}`, "yellow");
    case "run.accepted":
      return line("runs", "green");
    case "run.waiting":
      return line("waits; it costs nothing meanwhile", "yellow");
    case "run.resumed":
      return line("goes on", "green");
    case "run.retrying":
      return line(retryWords(data), "yellow");
    case "run.settled":
      return text(data, "status") === "interrupted" && text(data, "reason") === "interrupted"
        ? null
        : line(settledWords(data), text(data, "status") === "completed" ? null : "red");
    case "tool.called":
      return TOLD_ELSEWHERE.has(text(data, "tool")) ? null : line(`calls ${text(data, "tool")}`);
    case "tool.returned":
      return data["isError"] === true ? line(`is refused by ${text(data, "tool")}`, "yellow") : null;
    case "request.opened":
      return line(`asks: ${text(data, "kind")}`, "yellow");
    case "record.set_aside":
      return line(`has lost a stored record: ${text(data, "id")} cannot be read`, "red");
    case "budget.spent":
      return line(`has spent its ${text(data, "budget")}`, "red");
    case "command.applied":
      return data["refused"] === true
        ? line(`refuses a command from outside: ${text(data, "verb")}`, "yellow")
        : line(`obeys a command from outside: ${text(data, "verb")}`, "cyan");
    default:
      return null;
  }
}

function mailLine(
  event: RuntimeEvent,
  line: (what: string, style?: Style) => EventLine,
  name: Names,
): EventLine | null {
  const { data } = event;
  const author = name(text(data, "author"));
  switch (text(data, "kind")) {
    case "message":
      return line(`gets a message from ${author}`, "cyan");
    case "new_task":
      return line(`gets a task from ${author}`, "cyan");
    case "user":
      return line("gets input from the user", "cyan");
    case "final_answer":
      return line(`gets the result of ${author}`, "cyan");
    case "notice":
      return line(`gets a notice of the runtime`, "dim");
    default:
      return null;
  }
}

function retryWords(data: JsonObject): string {
  if (!("lostRuns" in data)) return "asks its model again";
  return data["stopped"] === true
    ? "begins anew: its run was stopped with its runtime"
    : "begins anew: its run was lost";
}

function settledWords(data: JsonObject): string {
  const status = text(data, "status");
  const reason = text(data, "reason");
  if (status === "completed") return "is done";
  const ends = `ends ${reason === "" || reason === status ? status : `${status}: ${reason.replaceAll("_", " ")}`}`;
  const { error } = data;
  if (error === null || typeof error !== "object" || Array.isArray(error)) return ends;
  return `${ends}: ${text(error as JsonObject, "code")}: ${text(error as JsonObject, "message")}`;
}

function text(data: JsonObject, name: string): string {
  const value = data[name];
  return typeof value === "string" ? value : "";
}
