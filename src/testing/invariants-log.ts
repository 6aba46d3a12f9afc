/** Formulas over the event log: gapless, and each change with its event, once (OBS-1). */
import type { EventType, RuntimeEvent } from "../protocol/events.ts";
import { isSettled } from "../protocol/run.ts";
import { broken, type Formula, type Picture, type Violation } from "./invariants-picture.ts";

function* gapless(picture: Picture): Iterable<Violation> {
  for (const [offset, event] of picture.newEvents.entries()) {
    const wanted = picture.memory.lastEvent + 1 + offset;
    if (event.seq !== wanted)
      yield broken("OBS-1", `event ${event.type} has seq ${event.seq} and should have ${wanted}`);
  }
}

/** What happened and what is told are the same, counted. */
function* told(picture: Picture): Iterable<Violation> {
  const { memory } = picture;
  for (const event of picture.newEvents) {
    const about = subjectOf(event);
    if (about !== null)
      memory.events.set(`${event.type} ${about}`, (memory.events.get(`${event.type} ${about}`) ?? 0) + 1);
  }
  const expect = function* (type: EventType, about: string, happened: boolean): Iterable<Violation> {
    const count = memory.events.get(`${type} ${about}`) ?? 0;
    if (count !== (happened ? 1 : 0)) yield broken("OBS-1", `${about}: ${type} was told ${count} times`);
  };
  for (const work of picture.works) {
    if (memory.works.get(work.id) === work) continue;
    yield* expect("work.queued", work.id, true);
    yield* expect("work.ended", work.id, work.state === "ended");
  }
  for (const runs of picture.runsOf.values()) {
    for (const run of runs) {
      if (memory.runs.get(run.id) === run) continue;
      yield* expect("run.reserved", run.id, true);
      yield* expect("run.accepted", run.id, run.acceptedAt !== null);
      yield* expect("run.settled", run.id, isSettled(run));
      for (const wait of picture.view.waitsOfRun(run.id)) {
        yield* expect("wait.started", wait.id, true);
        if (wait.end === null) yield* expect("wait.ended", wait.id, false);
      }
    }
  }
  for (const agent of picture.agents) {
    yield* expect("agent.spawned", agent.threadId, agent.parent !== null);
    yield* expect("agent.closed", agent.threadId, agent.state !== "open");
  }
  for (const rows of picture.mailOf.values()) {
    for (const mail of rows) {
      if (memory.mail.get(mail.id) === mail) continue;
      // A run that was rolled back had taken it all the same.
      const taken = mail.state === "superseded" && mail.runId !== null;
      const delivered = mail.state === "delivered" || mail.state === "settled";
      yield* expect("mail.delivered", mail.id, taken || delivered);
      yield* expect("mail.dead_lettered", mail.id, mail.state === "dead_lettered");
    }
  }
}

function subjectOf(event: RuntimeEvent): string | null {
  switch (event.type) {
    case "work.queued":
    case "work.ended":
      return event.workId;
    case "run.reserved":
    case "run.accepted":
    case "run.settled":
      return event.runId;
    case "wait.started":
    case "wait.ended":
      return event.data["waitId"] as string;
    case "record.set_aside":
      return event.data["id"] as string;
    case "agent.spawned":
    case "agent.closed":
      return event.threadId;
    case "mail.delivered":
    case "mail.dead_lettered":
      return event.data["mailId"] as string;
    default:
      return null;
  }
}

export const logFormulas: readonly Formula[] = [gapless, told];
