/**
 * Counters of mailboxes. They change with every mail and are written once a transaction: held back until the commit,
 * or until another plan of the group needs a savepoint, so that what is rolled back is never more than that plan's.
 * A mailbox has a number, which is what the rows of mail name it by; it gets one with the first thing stored about it.
 */
import type { ThreadId } from "../../protocol/ids.ts";
import { type Counters, emptyCounters } from "../mailbox-counters.ts";
import type { Cache, Connection, Statement } from "./connection.ts";
import { RecordCache } from "./record-cache.ts";

export class Mailboxes implements Cache {
  readonly #connection: Connection;
  readonly #get: Statement;
  readonly #put: Statement;
  readonly #number: Statement;
  readonly #create: Statement;
  readonly #numbers = new RecordCache<number>();
  readonly #known = new RecordCache<Counters>();
  readonly #changed = new Map<ThreadId, Counters>();

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#get = connection.statement(
      `SELECT last_seq, unread, unread_bytes, triggers, reserved_messages, reserved_bytes
         FROM mailboxes WHERE id = ?`,
    );
    this.#put = connection.statement(
      `UPDATE mailboxes SET last_seq = ?, unread = ?, unread_bytes = ?, triggers = ?, reserved_messages = ?,
         reserved_bytes = ? WHERE number = ?`,
    );
    this.#number = connection.statement("SELECT number FROM mailboxes WHERE id = ?");
    this.#create = connection.statement("INSERT INTO mailboxes (id) VALUES (?)");
    connection.join(this);
  }

  get(id: ThreadId): Counters {
    const known = this.#changed.get(id) ?? this.#known.get(id);
    if (known !== undefined) return known;
    const counters = this.#read(id);
    this.#known.set(id, counters);
    return counters;
  }

  /** Null where nothing was ever stored about it. */
  numberOf(id: ThreadId): number | null {
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    const row = this.#number.get(id);
    if (row === undefined) return null;
    this.#numbers.set(id, row[0] as number);
    return row[0] as number;
  }

  numberFor(id: ThreadId): number {
    const known = this.numberOf(id);
    if (known !== null) return known;
    this.#create.run(id);
    return this.numberOf(id)!;
  }

  put(counters: Counters): void {
    this.#connection.beforeWrite();
    this.numberFor(counters.threadId);
    this.#changed.set(counters.threadId, counters);
  }

  flush(): void {
    for (const [id, box] of this.#changed) {
      this.#put.run(
        box.lastSeq,
        box.unread,
        box.unreadBytes,
        box.triggers,
        box.reservedMessages,
        box.reservedBytes,
        this.numberOf(id),
      );
      this.#known.set(id, box);
    }
    this.#changed.clear();
  }

  clear(): void {
    this.#numbers.clear();
    this.#known.clear();
    this.#changed.clear();
  }

  #read(id: ThreadId): Counters {
    const row = this.#get.get(id) as readonly number[] | undefined;
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
