/** Statuses, ages and figures as words, in one place for all commands. */
import type { AgentStatus } from "../../protocol/agent.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import { clean, type Style } from "../terminal.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Of a tree that nobody owns the store says what was under way, and nothing is. */
const STOPPED = "stopped, was running";
/** What it waited for has come, and a wait that nobody goes on with stands still. */
const MAY_GO_ON = "answered; goes on when a process runs it";

export function statusWord(status: AgentStatus, owned = true): string {
  if (!owned && (status.kind === "running" || status.kind === "starting")) return STOPPED;
  switch (status.kind) {
    case "waiting":
      if (status.on.length === 0) return owned ? "goes on" : MAY_GO_ON;
      return `waits for ${status.on.map(shortName).join(", ")}`;
    case "queued":
      return status.position > 0 ? `queued, number ${status.position}` : "queued";
    case "awaiting_children":
      return "awaits its children";
    case "awaiting_approval":
      return "awaits an answer";
    case "idle":
      return status.last ?? "never ran";
    case "starting":
    case "running":
    case "closed":
      return status.kind;
  }
}

export function statusStyle(status: AgentStatus): Style {
  switch (status.kind) {
    case "running":
    case "starting":
      return "green";
    case "waiting":
    case "queued":
    case "awaiting_children":
    case "awaiting_approval":
      return "yellow";
    case "idle":
      return status.last === "interrupted" || status.last === "failed" ? "red" : "dim";
    case "closed":
      return "dim";
  }
}

/** The last part of a path, for where the tree is plain. */
export function shortName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** What agents are called in lines. */
export type Names = (path: string) => string;

/** The last part of a path; the whole one where two of these agents would be called the same. */
export function namesAmong(paths: readonly string[]): Names {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(shortName(path), (counts.get(shortName(path)) ?? 0) + 1);
  return (path) => ((counts.get(shortName(path)) ?? 0) > 1 ? path : shortName(path));
}

export function ago(ms: number): string {
  if (ms < SECOND) return "now";
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

export function seconds(ms: number): string {
  return `${(Math.max(0, ms) / SECOND).toFixed(1)} s`;
}

export function figure(number: number): string {
  return number.toLocaleString("en");
}

export function counted(number: number, what: string, several = `${what}s`): string {
  return `${figure(number)} ${number === 1 ? what : several}`;
}

/** How large a text is that a provider is told, in one figure wherever it is shown; no tokenizer has counted it. */
export function sizeOf(tokens: number, bytes: number): string {
  return `${counted(tokens, "token")} at most (${figure(bytes)} bytes)`;
}

/** A text that ends as sentences do, so that another may follow. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

export function workState(work: WorkRecord, owned = true): string {
  if (!owned && work.state === "running") return STOPPED;
  return work.outcome?.ending ?? work.state.replaceAll("_", " ");
}

/** Which way a user has come, from a program or a shell, is for the records. */
export function requesterOf(work: WorkRecord): string {
  return work.requester.kind === "user" ? "user" : work.requester.path;
}

/** The beginning of a text, on one line, with a mark where there is more. */
export function beginning(text: string): string {
  const head = opening(text);
  return text.trim().includes("\n") ? `${head} …` : head;
}

/** The beginning of a text, on one line. */
export function opening(text: string): string {
  return clean(text.trim().split("\n", 1)[0] ?? "");
}
