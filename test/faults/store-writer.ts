/** A process that writes to a store as fast as it can and tells each acknowledgement on standard output. */
import { createInterface } from "node:readline";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { sampleMail } from "../../src/testing/store-records.ts";

const [path = "", tree = "", recipient = "", prefix = "", producers = "1"] = process.argv.slice(2);
const store = await openSqliteStore({ path, synchronous: "normal", busyTimeoutMs: 30_000 });
let stopped = false;
let sent = 0;

async function produce(): Promise<void> {
  while (!stopped) {
    const name = `${prefix}${(sent += 1)}`;
    const [result] = await store.send([sampleMail(tree as ThreadId, recipient as ThreadId, name)]);
    process.stdout.write(`${name} ${result?.kind === "accepted" ? result.seq : (result?.kind ?? "")}\n`);
  }
}

process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "go") for (let n = 0; n < Number(producers); n += 1) void produce();
  if (line === "stop") break;
}
stopped = true;
await store.close();
