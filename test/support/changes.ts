/**
 * Watches a store for changes of state that are not told: each commit's writes are held against the events that it appends
 * (OBS-1). What it answers names the record and the event that is missing.
 */
import type { RuntimeEvent } from "../../src/protocol/events.ts";
import type { Lease, Store, StoreTx } from "../../src/store/port.ts";

/** A change and the event that must stand beside it; about a work, run, agent, or what the data name. */
interface Change {
  readonly type: string;
  readonly about: string;
}

export function withEveryChangeTold(store: Store): () => readonly string[] {
  const missing: string[] = [];
  const commit = store.commit.bind(store);
  (store as { commit: Store["commit"] }).commit = <T>(lease: Lease, plan: (tx: StoreTx) => T) =>
    commit(lease, (tx) => {
      const changes: Change[] = [];
      const events: RuntimeEvent[] = [];
      const value = plan(watching(tx, changes, events));
      for (const { type, about } of changes) {
        if (!events.some((event) => event.type === type && mentions(event, about)))
          missing.push(`${type} ${about}`);
      }
      return value;
    });
  return () => missing;
}

function mentions(event: RuntimeEvent, about: string): boolean {
  return [event.workId, event.runId, event.threadId, ...Object.values(event.data)].includes(about);
}

const RUN_EVENTS: Readonly<Record<string, string>> = {
  starting: "run.reserved",
  waiting: "run.waiting",
  completed: "run.settled",
  failed: "run.settled",
  interrupted: "run.settled",
  cancelled: "run.settled",
};
const WORK_EVENTS: Readonly<Record<string, string>> = {
  queued: "work.queued",
  running: "work.started",
  awaiting_children: "work.awaiting",
  ended: "work.ended",
};

function watching(tx: StoreTx, changes: Change[], events: RuntimeEvent[]): StoreTx {
  const note = (type: string | undefined, about: string): void => {
    if (type !== undefined) changes.push({ type, about });
  };
  const watched: Partial<StoreTx> = {
    putRun(record) {
      const before = tx.run(record.id)?.status;
      if (before !== record.status) {
        const running = before === "waiting" ? "run.resumed" : "run.accepted";
        note(record.status === "running" ? running : RUN_EVENTS[record.status], record.id);
      }
      tx.putRun(record);
    },
    putWork(record) {
      const before = tx.work(record.id)?.state;
      if (before !== record.state) {
        const again = record.state === "queued" && before !== undefined;
        note(again ? "run.retrying" : WORK_EVENTS[record.state], record.id);
      }
      tx.putWork(record);
    },
    putAgent(record) {
      const before = tx.agent(record.threadId);
      if (before === undefined)
        note(record.parent === null ? "tree.opened" : "agent.spawned", record.threadId);
      else if (before.state !== record.state) note(`agent.${record.state}`, record.threadId);
      tx.putAgent(record);
    },
    appendMail(draft) {
      const mail = tx.appendMail(draft);
      note("mail.accepted", mail.id);
      return mail;
    },
    putMail(record) {
      const before = tx.mail(record.id)!;
      if (before.state !== record.state) note(`mail.${record.state}`, record.id);
      if (before.trigger !== record.trigger) note("mail.triggered", record.id);
      tx.putMail(record);
    },
    putWait(record) {
      const before = tx.wait(record.id);
      if (before === undefined) note("wait.started", record.id);
      else if (before.end === null && record.end !== null) note("wait.ended", record.id);
      tx.putWait(record);
    },
    putRequest(record) {
      note(tx.request(record.id) === undefined ? "request.opened" : "request.closed", record.id);
      tx.putRequest(record);
    },
    putTransfer(record) {
      const before = tx.transfer(record.id);
      if (before === undefined) note("transfer.created", record.id);
      else if (before.status !== record.status) note("transfer.moved", record.id);
      tx.putTransfer(record);
    },
    takeArrivals(ids) {
      for (const id of ids) note("mail.accepted", id);
      tx.takeArrivals(ids);
    },
    appendEvent(...event) {
      const stored = tx.appendEvent(...event);
      events.push(stored);
      return stored;
    },
  };
  return new Proxy(tx, {
    get: (target, name) => Reflect.get(watched, name) ?? Reflect.get(target, name),
  });
}
