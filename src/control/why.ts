/** `why`: from log and records, why an agent does not run, is not woken or is not unloaded, and who owes what (OBS-3). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RuntimeEvent } from "../protocol/events.ts";
import type { JsonObject } from "../protocol/json.ts";
import { admitRate } from "../policy/rates.ts";
import type { RunRecord } from "../protocol/run.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";
import type { StoreView } from "../store/port.ts";
import { type Live, NOT_LIVE, owed, owes } from "./listing.ts";
import { startsRun, statusOf } from "./status.ts";

/** Why an agent does what it does, or does not. */
export interface Explanation {
  readonly path: string;
  /** The kind of its status; `stopped` for one that ran when its process ended, and that nobody carries on. */
  readonly status: string;
  readonly reasons: readonly string[];
}

/** Events that are looked through for a reason, newest first. */
const LOOK_BACK = 500;

export function why(view: StoreView, agent: AgentRecord, live: Live, owner: string | null): Explanation {
  const status = statusOf(view, agent, live);
  const stopped = owner === null && (status.kind === "running" || status.kind === "starting");
  const mailbox = view.mailbox(agent.threadId);
  const reasons: string[] = [];
  const say = (text: string): void => void reasons.push(text);
  // Of one that never runs again that is all there is to say.
  if (owner === null && agent.state === "open")
    say("No process owns this tree now, so nothing runs; open it, or use --run.");
  else if (owner !== null) say(`The tree is owned by ${owner}.`);
  const run = agent.currentRun === null ? undefined : view.run(agent.currentRun);
  const starts = run === undefined && startsRun(view, agent);
  if (agent.state !== "open") say(`It is ${agent.state}; it takes no mail and never runs again.`);
  if (run !== undefined) {
    const served = run.serves.length === 0 ? "no open work" : run.serves.join(", ");
    const is = stopped ? `was ${run.status} when its process ended` : `is ${run.status}`;
    say(
      `Run ${run.id} (number ${run.ordinal}) ${is}, began at ${iso(run.acceptedAt ?? run.reservedAt)} and serves ${served}.`,
    );
    for (const wait of view.openWaitsOf(agent.threadId)) {
      const on =
        wait.threads !== undefined
          ? `one of ${wait.threads.join(", ")}`
          : wait.works.length === 0
            ? "any mail"
            : `${wait.need} of ${wait.works.join(", ")}`;
      say(`It waits for ${on} until ${iso(wait.deadlineAt)}; its permit is lent meanwhile.`);
    }
    for (const request of view.openRequestsOf(agent.threadId))
      say(`It waits for an answer to ${request.kind} ${request.id}: ${request.text}`);
    if (status.kind === "waiting" && status.on.length === 0) {
      const when = owner === null ? "it goes on when a process runs the tree" : "it goes on";
      say(`What it waited for has come, such as the answer to what it asked; ${when}.`);
    }
  } else if (mailbox.triggers > 0) {
    say(
      `${counted(mailbox.triggers, "trigger-turn message")} pending${whatTheyStart(mailbox.triggers, starts, live.position(agent.threadId))}.`,
    );
  } else if (mailbox.unread > 0) {
    const [wait, start] = mailbox.unread === 1 ? ["it waits", "starts"] : ["they wait", "start"];
    say(
      `${counted(mailbox.unread, "unread message")} queue-only: ${wait} for the next run and ${start} none.`,
    );
  }
  if (mailbox.oldestUnreadAt !== null)
    say(`The oldest unread message came at ${iso(mailbox.oldestUnreadAt)}.`);
  // Who is loaded, only the memory of the owner knows.
  const tree = view.tree(agent.treeId);
  const rate = starts ? admitRate(tree!.recentRuns, view.now(), tree!.limits.runsPerMinute) : null;
  const pins = rate?.kind === "admitted";
  if (live !== NOT_LIVE || owner === null)
    say(residency(agent, live, mailbox.unread, pins, run !== undefined));
  for (const { work, executor } of owes(view, agent, live)) {
    const to = work.replyTo?.path ?? (work.requester.kind === "user" ? "the user" : work.requester.path);
    const under = work.state === "awaiting_children" ? `, waits for ${work.openUnder} under it` : "";
    const state = stopped && work.state === "running" ? "stopped" : work.state;
    say(`It owes ${work.id} (${state}${under}) to ${to}; executor ${executor}.`);
  }
  for (const { work, executor, status: other } of owed(view, agent, live)) {
    say(`${executor} owes it ${work.id} (${work.state}); that agent is ${other.kind}.`);
  }
  for (const spent of tree?.exhausted ?? []) {
    if (agent.path === spent.path || agent.path.startsWith(`${spent.path}/`))
      say(`The ${spent.budget} budget of ${spent.path} is spent; raise it.`);
  }
  if (rate?.kind === "refused") {
    const again = rate.retryAfterMs === null ? "never" : `in ${rate.retryAfterMs} ms`;
    say(
      `The tree has started ${rate.use} runs within a minute, as many as it may; the next starts ${again}.`,
    );
  }
  reasons.push(...fromLog(view, agent));
  const last = agent.lastOutcome;
  if (last !== null) {
    const { runId } = last;
    const run = runId === null ? undefined : unlessCorrupt(() => view.run(runId), undefined);
    say(`Last outcome: ${outcomeWord(last)} at ${iso(last.at)}${errorWords(run?.error ?? null)}.`);
  }
  return { path: agent.path, status: stopped ? "stopped" : status.kind, reasons };
}

function counted(number: number, what: string): string {
  return number === 1 ? `1 ${what} is` : `${number} ${what}s are`;
}

function whatTheyStart(messages: number, starts: boolean, position: number): string {
  const start = messages === 1 ? "starts" : "start";
  if (!starts) return ` and ${start} nothing while a budget is spent`;
  if (position > 0) return `; it is number ${position} in the queue for a permit and a slot`;
  return ` and ${start} a run when the tree is owned and a permit is free`;
}

/** `pins`: its mail starts a run as soon as it can be admitted. */
function residency(agent: AgentRecord, live: Live, unread: number, pins: boolean, running: boolean): string {
  if (!live.loaded(agent.threadId)) return "It is not resident; it is loaded when it has something to do.";
  if (running)
    return "It is resident and cannot be unloaded: its run is not settled, or waits in a way that can be parked.";
  if (pins) return "It is resident and cannot be unloaded: trigger-turn mail is pending.";
  if (unread > 0 && agent.config.pinPendingMail)
    return "It is resident and cannot be unloaded: its unread mail pins it.";
  return "It is resident and may be unloaded when room is wanted.";
}

function outcomeWord({ status, reason }: NonNullable<AgentRecord["lastOutcome"]>): string {
  return reason === null || reason === status ? status : `${status} (${reason})`;
}

function errorWords(error: RunRecord["error"]): string {
  return error === null ? "" : `: ${error.code}: ${error.message.replace(/\.$/, "")}`;
}

/** The newest of what the log says about being blocked, failed or dead-lettered. */
function fromLog(view: StoreView, agent: AgentRecord): string[] {
  const last = view.lastEvent(agent.treeId);
  const events = view.events(agent.treeId, Math.max(0, last - LOOK_BACK), LOOK_BACK);
  const told: Partial<Record<RuntimeEvent["type"], (data: JsonObject, event: RuntimeEvent) => string>> = {
    "agent.blocked": (data) => `it could not run (${word(data, "code")}): ${word(data, "message")}`,
    "agent.load_failed": (data) =>
      `it could not be loaded (failure ${word(data, "failures")}): ${word(data, "message")}`,
    "mail.dead_lettered": (data, { workId }) => {
      const work = workId === null ? undefined : unlessCorrupt(() => view.work(workId), undefined);
      return `message ${word(data, "mailId")} was lost to it: ${word(data, "reason")}${errorWords(work?.outcome?.error ?? null)}`;
    },
    "mail.redirected": (data) => `its message ${word(data, "mailId")} went to ${word(data, "to")} instead`,
    "record.set_aside": (data) =>
      `its row ${word(data, "id")} of ${word(data, "table")} could not be read and was set aside`,
    "run.retrying": retryWords,
  };
  return events
    .filter((event) => event.threadId === agent.threadId && told[event.type] !== undefined)
    .slice(-5)
    .map((event) => `At ${iso(event.at)} ${told[event.type]!(event.data, event)}.`);
}

/** A run that was lost, or stopped with its runtime, begins anew; one that goes on asks its model again. */
function retryWords(data: JsonObject): string {
  if (!("lostRuns" in data))
    return `its model was asked again (attempt ${word(data, "attempt")}, after ${word(data, "delayMs")} ms): ${word(data, "code")}`;
  if (data["stopped"] === true) return "its run was stopped with its runtime, and began anew";
  return `its run was lost (${word(data, "lostRuns")} of ${word(data, "of")}) and began anew`;
}

/** An event's value as a word; what it does not hold is not known. */
function word(data: JsonObject, name: string): string {
  const value = data[name];
  return typeof value === "string" || typeof value === "number"
    ? String(value).replace(/\.$/, "")
    : "unknown";
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
