/** Loaded before the command line: gives each connection that may write a setting of the test's, as a disk or a mount would. */
import { DatabaseSync } from "node:sqlite";

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (sql) {
  exec.call(this, sql);
  if (sql.includes("journal_mode = WAL")) exec.call(this, process.env.TEST_PRAGMA);
};
