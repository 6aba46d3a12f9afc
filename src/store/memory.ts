/**
 * The store in memory: for tests, simulation and benches, and for trees that need not outlive their process. Its content
 * lives as long as the object; several runtimes may use one object, one after the other or side by side, as processes
 * would use one file.
 *
 * Group commit, fencing and order are the same as for a file; a plan that throws is undone by a journal.
 */
import { z } from "zod";
import { check, clockSchema, optionsOf } from "../platform/check.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import type { MailId } from "../protocol/ids.ts";
import type { Backend, BackendTx, GroupContext } from "./backend.ts";
import { agentRows } from "./memory/agents.ts";
import { freezeDeep, freezeTop } from "./memory/freeze.ts";
import { Journal } from "./memory/journal.ts";
import { logRows } from "./memory/logs.ts";
import { mailRows } from "./memory/mail.ts";
import { openRows } from "./memory/open-rows.ts";
import { threadRows } from "./memory/thread-rows.ts";
import { setAsideRows } from "./memory/set-aside.ts";
import { transferRows } from "./memory/transfers.ts";
import { treeRows } from "./memory/trees.ts";
import { waitRows } from "./memory/waits.ts";
import { workRows } from "./memory/work.ts";
import type { MendableTable, Store } from "./port.ts";
import { createStore } from "./store.ts";

/** What `createMemoryStore` takes. */
export interface MemoryStoreOptions {
  readonly clock?: Clock;
  /** Freeze stored records through and through instead of at their top. */
  readonly deepFreeze?: boolean;
}

/** A store that lives as long as the object. */
export interface MemoryStore extends Store {
  /** For tests of MBX-10: makes a stored mail as unreadable as a broken row of a file. */
  damageMail(id: MailId): void;
  /** For tests of REC-1: makes a stored row as unreadable as a broken one of a file. */
  damageRow(table: MendableTable, id: string): void;
}

const optionsSchema = optionsOf<MemoryStoreOptions>({
  clock: clockSchema.optional(),
  deepFreeze: z.boolean().optional(),
});

/** Makes an empty store. @throws RejectedError `INVALID_ARGUMENT`. */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  check("createMemoryStore", optionsSchema, options);
  const clock = options.clock ?? systemClock;
  const freeze = options.deepFreeze === true ? freezeDeep : freezeTop;
  const journal = new Journal();
  const context: GroupContext = { tree: null, told: new Set() };
  const now = (): number => clock.now();
  const mail = mailRows(journal, freeze, context, now);
  const agents = agentRows(journal, freeze);
  const work = workRows(journal, freeze, mail.isUnread);
  const waits = waitRows(journal, freeze);
  const otherBusyTrees = () => [...mail.triggeredTrees(), ...work.openRuns.keys()];
  const trees = treeRows(journal, freeze, now, otherBusyTrees, mail.hasArrivals);
  const aside = setAsideRows({ ...agents, ...work, ...waits, ...trees });
  const tx: BackendTx = {
    ...agents.rows,
    ...mail.rows,
    ...work.rows,
    ...waits.rows,
    ...aside.rows,
    ...openRows({ ...work, ...waits, ...trees }),
    ...transferRows(journal, freeze),
    ...threadRows(journal, freeze),
    ...logRows(journal, freeze),
    ...trees.rows,
  };
  const backend: Backend = {
    kind: "memory",
    name: "memory",
    context,
    transact(operations, isEnough) {
      let ran = 0;
      for (const operation of operations) {
        context.tree = operation.tree;
        journal.begin();
        try {
          operation.outcome = { value: operation.run(tx) };
          journal.keep();
        } catch (error) {
          journal.rollback();
          operation.outcome = { error };
        }
        ran += 1;
        if (isEnough()) break;
      }
      return ran;
    },
    read: (plan) => plan(tx),
    foreignVersion: () => 0,
    close: () => undefined,
  };
  const store = createStore(backend, { clock, busyTimeoutMs: 0, reusable: true });
  return { ...store, damageMail: mail.damage, damageRow: aside.damage };
}
