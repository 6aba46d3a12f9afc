/** A table of the numbered records of threads, each written once and never again. Its cursor is a number. */
import type { ThreadId } from "../../protocol/ids.ts";
import { numberCursor, unknownCursor } from "../cursor.ts";
import type { Page, PageRequest } from "../port.ts";
import type { Connection, Row, Statement } from "./connection.ts";
import { corruptRow } from "../corrupt-row.ts";
import { parseRecord } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export class Series<R extends { readonly threadId: ThreadId }> {
  readonly #connection: Connection;
  readonly #threads: ThreadNumbers;
  readonly #name: string;
  readonly #positionOf: (record: R) => number;
  readonly #add: Statement;
  readonly #get: Statement;
  readonly #page: Statement;

  constructor(
    connection: Connection,
    threads: ThreadNumbers,
    name: string,
    positionOf: (record: R) => number,
  ) {
    this.#connection = connection;
    this.#threads = threads;
    this.#name = name;
    this.#positionOf = positionOf;
    this.#add = connection.statement(
      `INSERT INTO ${name} (thread, position, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
    );
    this.#get = connection.statement(`SELECT position, body FROM ${name} WHERE thread = ? AND position = ?`);
    this.#page = connection.statement(
      `SELECT position, body FROM ${name} WHERE thread = ? AND position > ? ORDER BY position LIMIT ?`,
    );
  }

  /** False when this number is there already. */
  add(record: R): boolean {
    const number = this.#threads.number(record.threadId);
    return this.#add.run(number, this.#positionOf(record), JSON.stringify(record)) === 1;
  }

  get(id: ThreadId, position: number): R | undefined {
    const row = this.#get.get(this.#threads.find(id), position);
    return row === undefined ? undefined : this.#record(id, row);
  }

  page(id: ThreadId, { after = null, limit }: PageRequest): Page<R> {
    const number = this.#threads.find(id);
    const from = after === null ? -1 : numberCursor(after, Infinity);
    const rows = this.#page.all(number, from, limit + 1);
    if (after !== null && rows.length === 0 && this.#get.get(number, from) === undefined)
      throw unknownCursor(after);
    const records = rows.slice(0, limit).map((row) => this.#record(id, row));
    const last = rows[records.length - 1];
    return { rows: records, next: rows.length > limit && last !== undefined ? String(last[0]) : null };
  }

  #record(id: ThreadId, row: Row): R {
    const key = `${id} ${row[0] as number}`;
    const record = parseRecord<R>(this.#connection, this.#name, key, row[1] as string);
    if (record.threadId !== id) throw corruptRow(this.#connection.path, this.#name, key);
    return Object.freeze(record);
  }
}
