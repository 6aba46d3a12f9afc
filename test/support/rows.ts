/** All rows of a store's file, table by table, to be compared before and after a command that is refused. */
import { DatabaseSync } from "node:sqlite";

/** Without who had a tree last: a command claims a tree that nobody owns for as long as it is looked at, and it is told. */
export function rowsIn(path: string): Readonly<Record<string, readonly object[]>> {
  using database = new DatabaseSync(path, { readOnly: true });
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const names = tables.map(({ name }) => String(name)).filter((name) => name !== "leases");
  return Object.fromEntries(
    names.map((name) => {
      const rows = database.prepare(`SELECT * FROM "${name}" ORDER BY 1, 2`).all();
      return [name, rows.filter(({ body }) => !String(body).includes('"type":"tree.claimed"'))];
    }),
  );
}
