/**
 * Counters of mailboxes. They change with every mail and are written once a transaction: held back until the commit,
 * or until another plan of the group needs a savepoint, so that what is rolled back is never more than that plan's.
 */
import type { ThreadId } from "../../protocol/ids.ts";
import { type Counters, emptyCounters } from "../mailbox-counters.ts";
import type { Cache, Connection, Statement } from "./connection.ts";
import { RecordCache } from "./record-cache.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export class Mailboxes implements Cache {
  readonly #connection: Connection;
  readonly #threads: ThreadNumbers;
  readonly #get: Statement;
  readonly #put: Statement;
  readonly #known = new RecordCache<Counters>();
  readonly #changed = new Map<ThreadId, Counters>();

  constructor(connection: Connection, threads: ThreadNumbers) {
    this.#connection = connection;
    this.#threads = threads;
    this.#get = connection.statement(
      `SELECT last_seq, unread, unread_bytes, triggers, reserved_messages, reserved_bytes
         FROM mailboxes WHERE box = ?`,
    );
    this.#put = connection.statement(
      `INSERT INTO mailboxes (box, last_seq, unread, unread_bytes, triggers, reserved_messages, reserved_bytes)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (box) DO UPDATE SET last_seq = excluded.last_seq, unread = excluded.unread,
           unread_bytes = excluded.unread_bytes, triggers = excluded.triggers,
           reserved_messages = excluded.reserved_messages, reserved_bytes = excluded.reserved_bytes`,
    );
    connection.join(this);
  }

  get(id: ThreadId): Counters {
    const known = this.#changed.get(id) ?? this.#known.get(id);
    if (known !== undefined) return known;
    const counters = this.#read(id);
    this.#known.set(id, counters);
    return counters;
  }

  put(counters: Counters): void {
    this.#connection.beforeWrite();
    this.#threads.number(counters.threadId);
    this.#changed.set(counters.threadId, counters);
  }

  flush(): void {
    for (const [id, box] of this.#changed) {
      this.#put.run(
        this.#threads.find(id),
        box.lastSeq,
        box.unread,
        box.unreadBytes,
        box.triggers,
        box.reservedMessages,
        box.reservedBytes,
      );
      this.#known.set(id, box);
    }
    this.#changed.clear();
  }

  clear(): void {
    this.#known.clear();
    this.#changed.clear();
  }

  #read(id: ThreadId): Counters {
    const row = this.#get.get(this.#threads.find(id)) as readonly number[] | undefined;
    if (row === undefined) return emptyCounters(id);
    const [lastSeq, unread, unreadBytes, triggers, reservedMessages, reservedBytes] = row;
    return {
      threadId: id,
      lastSeq,
      unread,
      unreadBytes,
      triggers,
      reservedMessages,
      reservedBytes,
    } as Counters;
  }
}
