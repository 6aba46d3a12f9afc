/**
 * A table of records: an id, the columns that its indexes want, and the record as JSON. Rows keep their rowid, which is
 * the order of every list. Columns that never change are not written again, because SQLite would rewrite their indexes.
 */
import type { SQLInputValue } from "node:sqlite";
import { unknownCursor } from "../cursor.ts";
import type { Page, PageRequest } from "../port.ts";
import type { Connection, Row, Statement } from "./connection.ts";
import { corruptRow, isUnreadable } from "../corrupt-row.ts";
import { RecordCache } from "./record-cache.ts";

export interface TableShape<R> {
  readonly name: string;
  readonly idOf: (record: R) => string;
  /** Rows are found by the number of their id, which has a table of its own; `find` answers null for none. */
  readonly key?: { readonly find: (id: string) => number | null; readonly make: (id: string) => number };
  /** Columns that are written with the first insert only. */
  readonly fixed?: Readonly<Record<string, (record: R) => SQLInputValue>>;
  readonly moving?: Readonly<Record<string, (record: R) => SQLInputValue>>;
  /** Looks at enough of what was read that nobody who uses it can fail. */
  readonly isWhole?: (record: Partial<R>) => boolean;
}

export class Table<R extends object> {
  readonly #connection: Connection;
  readonly #name: string;
  readonly #idOf: (record: R) => string;
  readonly #key: TableShape<R>["key"];
  readonly #isWhole: NonNullable<TableShape<R>["isWhole"]>;
  readonly #values: readonly ((record: R) => SQLInputValue)[];
  readonly #cache: RecordCache<R>;
  readonly #get: Statement;
  readonly #put: Statement;

  constructor(connection: Connection, shape: TableShape<R>) {
    const { name, idOf, fixed = {}, moving = {} } = shape;
    const key = shape.key === undefined ? "id" : "number";
    const columns = [
      ...(key === "id" ? [] : [key]),
      "id",
      ...Object.keys(fixed),
      ...Object.keys(moving),
      "body",
    ];
    const changes = [...Object.keys(moving), "body"].map((column) => `${column} = excluded.${column}`);
    this.#connection = connection;
    this.#name = name;
    this.#idOf = idOf;
    this.#key = shape.key;
    this.#isWhole = shape.isWhole ?? (() => true);
    this.#values = [...Object.values(fixed), ...Object.values(moving)];
    this.#cache = connection.join(new RecordCache<R>());
    this.#get = connection.statement(`SELECT id, body FROM ${name} WHERE ${key} = ?`);
    this.#put = connection.statement(
      `INSERT INTO ${name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")}) ` +
        `ON CONFLICT (${key}) DO UPDATE SET ${changes.join(", ")}`,
    );
  }

  get(id: string): R | undefined {
    const cached = this.#cache.get(id);
    if (cached !== undefined) return cached;
    const row = this.#get.get(this.#keyOf(id));
    return row === undefined ? undefined : this.#record(row);
  }

  put(record: R): void {
    const id = this.#idOf(record);
    const values = this.#values.map((valueOf) => valueOf(record));
    values.unshift(id);
    if (this.#key !== undefined) values.unshift(this.#key.make(id));
    const body = JSON.stringify(record);
    values.push(body);
    this.#put.run(...values);
    this.#cache.set(id, Object.freeze(record), body.length);
  }

  /** Prepares a list; `rest` follows `FROM <table>` and may order by rowid. */
  list(rest: string): (...values: SQLInputValue[]) => R[] {
    const name = this.#name;
    const statement = this.#connection.statement(`SELECT ${name}.id, ${name}.body FROM ${name} ${rest}`);
    return (...values) => statement.all(...values).map((row) => this.#record(row));
  }

  /** As `list`, without the rows that cannot be read. */
  readable(rest: string): (...values: SQLInputValue[]) => R[] {
    const name = this.#name;
    const statement = this.#connection.statement(`SELECT ${name}.id, ${name}.body FROM ${name} ${rest}`);
    return (...values) => this.#readableOf(statement.all(...values)).records;
  }

  /** Prepares a paged list; the cursor is the id of the last row, which may have left the list since. */
  pages(
    where: string,
    order: "oldest first" | "newest first",
  ): (page: PageRequest, ...values: SQLInputValue[]) => Page<R> {
    const rowsOf = this.#pageRows("id, body", where, order);
    return (page, ...values) => this.page(rowsOf(page, ...values), page.limit);
  }

  /** As `pages`, without the rows that cannot be read. */
  readablePages(
    where: string,
    order: "oldest first" | "newest first",
  ): (page: PageRequest, ...values: SQLInputValue[]) => Page<R> {
    const rowsOf = this.#pageRows("id, body", where, order);
    return (page, ...values) => this.readablePage(rowsOf(page, ...values), page.limit);
  }

  /** As `pages`, of the ids alone. */
  idPages(
    where: string,
    order: "oldest first" | "newest first",
  ): (page: PageRequest, ...values: SQLInputValue[]) => Page<string> {
    const rowsOf = this.#pageRows("id", where, order);
    return (page, ...values) => {
      const found = rowsOf(page, ...values);
      const ids = found.slice(0, page.limit).map((row) => row[0] as string);
      return { rows: ids, next: found.length > page.limit ? (ids.at(-1) ?? null) : null };
    };
  }

  /** One more than the page holds, where there are more. */
  #pageRows(
    columns: string,
    where: string,
    order: "oldest first" | "newest first",
  ): (page: PageRequest, ...values: SQLInputValue[]) => readonly Row[] {
    const [beyond, direction] = order === "oldest first" ? [">", "ASC"] : ["<", "DESC"];
    const from = `SELECT ${columns} FROM ${this.#name} WHERE ${where}`;
    const rest = `ORDER BY rowid ${direction} LIMIT ?`;
    const first = this.#connection.statement(`${from} ${rest}`);
    const later = this.#connection.statement(
      `${from} AND rowid ${beyond} ${this.#key === undefined ? `(SELECT rowid FROM ${this.#name} WHERE id = ?)` : "?"} ${rest}`,
    );
    return ({ after = null, limit }, ...values) => {
      const rows =
        after === null
          ? first.all(...values, limit + 1)
          : later.all(...values, this.#keyOf(after), limit + 1);
      // Behind an unknown one there are none.
      if (after !== null && rows.length === 0 && this.#get.get(this.#keyOf(after)) === undefined)
        throw unknownCursor(after);
      return rows;
    };
  }

  /** Of `limit + 1` rows. */
  page(rows: readonly Row[], limit: number): Page<R> {
    return { rows: rows.slice(0, limit).map((row) => this.#record(row)), next: nextOf(rows, limit, 0) };
  }

  /** The same, without those that cannot be read, which are named; which column is a row's cursor. */
  readablePage(rows: readonly Row[], limit: number, cursor = 0): Page<R> {
    const { records, broken } = this.#readableOf(rows.slice(0, limit));
    const page = { rows: records, next: nextOf(rows, limit, cursor) };
    return broken.length === 0 ? page : { ...page, unreadable: broken.map((row) => row[cursor] as string) };
  }

  #readableOf(rows: readonly Row[]): { readonly records: R[]; readonly broken: readonly Row[] } {
    const records: R[] = [];
    const broken = rows.filter((row) => isUnreadable(() => records.push(this.#record(row))));
    return { records, broken };
  }

  #keyOf(id: string): SQLInputValue {
    return this.#key === undefined ? id : this.#key.find(id);
  }

  #record(row: Row): R {
    const id = row[0] as string;
    const cached = this.#cache.get(id);
    if (cached !== undefined) return cached;
    const body = row[1] as string;
    const record = parseRecord<R>(this.#connection, this.#name, id, body);
    if (this.#idOf(record) !== id || !this.#isWhole(record))
      throw corruptRow(this.#connection.path, this.#name, id);
    this.#cache.set(id, Object.freeze(record), body.length);
    return record;
  }
}

function nextOf(rows: readonly Row[], limit: number, cursor: number): string | null {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return last === undefined ? null : (last[cursor] as string);
}

export function parseRecord<R>(connection: Connection, table: string, id: string, body: string): R {
  let record: unknown;
  try {
    record = JSON.parse(body);
  } catch (cause) {
    throw corruptRow(connection.path, table, id, cause);
  }
  if (typeof record !== "object" || record === null) throw corruptRow(connection.path, table, id);
  return record as R;
}
