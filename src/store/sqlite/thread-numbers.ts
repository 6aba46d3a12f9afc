/**
 * Numbers of threads and trees. Ids are random, and a random key costs a page of its own in every index at every insert;
 * numbers follow one another, so that what is stored about new threads stands side by side. Only the table of ids itself
 * pays that price, once a thread.
 */
import type { ThreadId } from "../../protocol/ids.ts";
import type { Connection, Statement } from "./connection.ts";
import { RecordCache } from "./record-cache.ts";

export class ThreadNumbers {
  readonly #find: Statement;
  readonly #create: Statement;
  readonly #numbers: RecordCache<number>;

  constructor(connection: Connection) {
    this.#find = connection.statement("SELECT number FROM threads WHERE id = ?");
    this.#create = connection.statement("INSERT INTO threads (id) VALUES (?)");
    this.#numbers = connection.join(new RecordCache<number>());
  }

  /** Null where nothing was ever stored about it, which no row equals. */
  find(id: ThreadId): number | null {
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    const row = this.#find.get(id);
    if (row === undefined) return null;
    const number = row[0] as number;
    this.#numbers.set(id, number);
    return number;
  }

  /** Gives it a number with the first thing stored about it. */
  number(id: ThreadId): number {
    const known = this.find(id);
    if (known !== null) return known;
    this.#create.run(id);
    return this.find(id)!;
  }
}
