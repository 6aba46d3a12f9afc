/** A process that migrates a store and is killed in the middle of it, in the call of `json_set` with the given number. */
import { DatabaseSync } from "node:sqlite";
import { migrate } from "../../src/store/sqlite/schema.ts";

const [path = "", calls = "1"] = process.argv.slice(2);
const database = new DatabaseSync(path);
// So small that what has been changed stands in the log long before the commit.
database.exec("PRAGMA journal_mode = WAL; PRAGMA cache_size = 4");
let left = Number(calls);
database.function("json_set", { varargs: true }, () => {
  left -= 1;
  if (left === 0) process.kill(process.pid, "SIGKILL");
  return `{"half":"${"done ".repeat(200)}"}`;
});
migrate(database, path);
