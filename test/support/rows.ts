/** All rows of a store's file, table by table, to be compared before and after. */
import { DatabaseSync } from "node:sqlite";

/** Without the tables named: what a refused command may leave is said by its test. */
export function rowsIn(path: string, without: readonly string[] = []): Readonly<Record<string, unknown>> {
  using database = new DatabaseSync(path, { readOnly: true });
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const names = tables.map(({ name }) => String(name)).filter((name) => !without.includes(name));
  return Object.fromEntries(
    names.map((name) => [name, database.prepare(`SELECT * FROM "${name}" ORDER BY 1, 2`).all()]),
  );
}
