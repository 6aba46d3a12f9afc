/** Formulas over mailboxes: nothing lost, nothing twice, FIFO, counters that are true (MBX). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { MailId, RunId } from "../protocol/ids.ts";
import type { MailRecord, MailState } from "../protocol/mail.ts";
import { isSettled } from "../protocol/run.ts";
import { OUTSIDE_CALL } from "../protocol/wait.ts";
import {
  broken,
  type Formula,
  type Memory,
  pathOf,
  type Picture,
  type Violation,
} from "./invariants-picture.ts";

/** Where a message may go from where it was. */
const NEXT: Readonly<Record<MailState, readonly MailState[]>> = {
  accepted: ["accepted", "delivered", "settled", "superseded", "dead_lettered"],
  delivered: ["delivered", "settled", "superseded"],
  settled: ["settled", "superseded"],
  superseded: ["superseded"],
  dead_lettered: ["dead_lettered"],
};

function* sequence(picture: Picture): Iterable<Violation> {
  for (const [agent, rows] of boxes(picture)) {
    for (const [index, mail] of rows.entries()) {
      if (mail.seq !== index + 1) {
        yield broken("MBX-2", `mail ${mail.id} of ${agent.path} has seq ${mail.seq} at place ${index + 1}`);
      }
    }
    for (const [id, before] of picture.memory.mail) {
      if (before.recipient === agent.threadId && rows[before.seq - 1]?.id !== id) {
        yield broken("MBX-1", `mail ${id} (seq ${before.seq}) of ${agent.path} is gone`);
      }
    }
  }
}

function* counters(picture: Picture): Iterable<Violation> {
  const reservation = picture.tree.limits.resultReservationBytes;
  for (const [agent, rows] of boxes(picture)) {
    const box = picture.view.mailbox(agent.threadId);
    const unread = rows.filter((mail) => mail.state === "accepted");
    const owed =
      picture.profile.results === "per_work"
        ? picture.works.filter((work) => work.state !== "ended" && work.replyTo?.threadId === agent.threadId)
        : [];
    const counted = {
      lastSeq: rows.length,
      unread: unread.length,
      unreadBytes: unread.reduce((sum, mail) => sum + mail.content.bytes, 0),
      triggers: unread.filter((mail) => mail.trigger).length,
      oldestUnreadAt: unread[0]?.createdAt ?? null,
      reservedMessages: owed.length,
      reservedBytes: owed.length * reservation,
    };
    for (const key of Object.keys(counted) as (keyof typeof counted)[]) {
      if (box[key] !== counted[key]) {
        yield broken("MBX-8", `${key} of ${agent.path} is ${box[key]}, counted ${counted[key]}`);
      }
    }
  }
}

function* states(picture: Picture): Iterable<Violation> {
  for (const [agent, rows] of boxes(picture)) {
    for (const mail of rows) {
      const before = picture.memory.mail.get(mail.id);
      if (before === mail) continue;
      if (before !== undefined && !NEXT[before.state].includes(mail.state)) {
        yield broken("MBX-7", `mail ${mail.seq} of ${agent.path} went from ${before.state} to ${mail.state}`);
      }
      if (before !== undefined && before.runId !== null && before.runId !== mail.runId) {
        yield broken("MBX-7", `mail ${mail.seq} of ${agent.path} went from one run to another`);
      }
    }
    for (const mail of rows) {
      if (mail.runId === null || (mail.state !== "delivered" && mail.state !== "settled")) continue;
      const run = picture.view.run(mail.runId);
      if (run === undefined || isSettled(run) !== (mail.state === "settled")) {
        yield broken(
          "MBX-7",
          `mail ${mail.seq} of ${agent.path} is ${mail.state} and its run ${mail.runId} is ${run?.status ?? "unknown"}`,
        );
      }
    }
  }
}

/** What is delivered stands in the transcript once; a message is never shown twice as mail. */
function* shownOnce(picture: Picture): Iterable<Violation> {
  const { memory } = picture;
  for (const [threadId, items] of picture.newItems) {
    for (const item of items) {
      if ((item.kind === "user" || item.kind === "mail") && item.mailId !== null) {
        if (item.kind === "user" && item.inherited) continue;
        const shown = shownOf(memory, item.mailId);
        shown.items += 1;
        if (shown.items > 1) {
          yield broken(
            "REC-1",
            `mail ${item.mailId} stands twice in the transcript of ${pathOf(picture, threadId)}`,
          );
        }
      }
      if (item.kind === "tool_result") for (const id of item.mailIds) shownOf(memory, id).handed += 1;
    }
  }
  for (const [agent, rows] of boxes(picture)) {
    if (agent.hostDriven) continue;
    for (const mail of rows) {
      if (mail.state !== "delivered" && mail.state !== "settled") continue;
      const shown = memory.shown.get(mail.id);
      if (shown === undefined || shown.items + shown.handed === 0) {
        // The program that waited by its token was told, and no transcript.
        if (waitedOutside(picture, mail.runId)) continue;
        yield broken("MBX-7", `mail ${mail.seq} of ${agent.path} is ${mail.state} and in no request`);
      }
    }
  }
}

function waitedOutside({ view }: Picture, runId: RunId | null): boolean {
  return runId !== null && view.waitsOfRun(runId).some(({ callId }) => callId === OUTSIDE_CALL);
}

/** What was there before a message that is delivered now was delivered before it, or with it. */
function* fifo(picture: Picture): Iterable<Violation> {
  if (picture.profile.userRunDrainsLate) return;
  for (const [agent, rows] of boxes(picture)) {
    let waiting: MailRecord | null = null;
    for (const mail of rows) {
      if (mail.state === "accepted" && !mail.nextRun && mail.boundRunId === null) waiting ??= mail;
      if (waiting === null || mail.state !== "delivered" || mail.boundRunId !== null || agent.refusals > 0)
        continue;
      const before = picture.memory.mail.get(mail.id);
      if (before !== undefined && before.state !== "accepted") continue;
      yield broken(
        "MBX-2",
        `mail ${mail.seq} of ${agent.path} is delivered and mail ${waiting.seq} still waits`,
      );
    }
  }
}

function* requests(picture: Picture): Iterable<Violation> {
  for (const [agent, rows] of boxes(picture)) {
    for (const mail of rows) {
      if (mail.state !== "accepted" || mail.workId === null) continue;
      if (picture.workOf.get(mail.workId)?.state === "ended") {
        yield broken("MBX-16", `the request of the ended work ${mail.workId} still waits at ${agent.path}`);
      }
    }
  }
}

function* closedBoxes(picture: Picture): Iterable<Violation> {
  for (const [agent, rows] of boxes(picture)) {
    if (agent.state === "open") continue;
    const unread = rows.filter((mail) => mail.state === "accepted" && mail.redirectedFrom === null);
    if (unread.length > 0)
      yield broken("INT-7", `${agent.path} is ${agent.state} and has ${unread.length} unread messages`);
  }
}

export const mailFormulas: readonly Formula[] = [
  sequence,
  counters,
  states,
  shownOnce,
  fifo,
  requests,
  closedBoxes,
];

function* boxes(picture: Picture): Iterable<readonly [AgentRecord, readonly MailRecord[]]> {
  for (const agent of picture.agents) yield [agent, picture.mailOf.get(agent.threadId) ?? []];
}

function shownOf(memory: Memory, id: MailId): { items: number; handed: number } {
  let shown = memory.shown.get(id);
  if (shown === undefined) memory.shown.set(id, (shown = { items: 0, handed: 0 }));
  return shown;
}
