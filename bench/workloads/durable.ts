/**
 * Durable sending in a closed loop (D1 to D3) and checkpoints (D4). So many producers each await that their message is durable
 * and send the next. Baselines: one transaction a message, and the bare rows of a tick in one transaction.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { coppice } from "../contenders/coppice.ts";
import { Rows } from "../contenders/rows.ts";
import { createIds, systemRandom } from "../../src/platform/ids.ts";
import type { MailDraft } from "../../src/protocol/mail.ts";
import { type Metrics, percentile } from "../lib/measure.ts";

export type Synchronous = "normal" | "full";

const PRODUCERS = [1, 16, 256, 1000] as const;
const WINDOW_MS = 400;
const RECIPIENTS = 64;
const BODY = JSON.stringify({ text: "x".repeat(480) });
const INSERT = "INSERT INTO mail (recipient, sender, mode, created, body) VALUES (?, ?, ?, ?, ?)";

/** Messages a second, CPU of the main thread a message, and how late the event loop was, for each number of producers. */
async function closedLoop(send: (producer: number) => Promise<unknown>): Promise<Metrics> {
  const metrics: Record<string, number> = {};
  for (const producers of PRODUCERS) {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    await forAWhile(producers, 100, send);
    delay.enable();
    const cpu = process.threadCpuUsage();
    const { sent, tookMs } = await forAWhile(producers, WINDOW_MS, send);
    const spent = process.threadCpuUsage(cpu);
    delay.disable();
    metrics[`perSecond_${producers}`] = (sent / tookMs) * 1000;
    metrics[`cpuUs_${producers}`] = (spent.user + spent.system) / sent;
    metrics[`delayP99Ms_${producers}`] = delay.percentile(99) / 1e6;
  }
  return metrics;
}

async function forAWhile(producers: number, ms: number, send: (producer: number) => Promise<unknown>) {
  const begun = performance.now();
  let sent = 0;
  const produce = async (producer: number): Promise<void> => {
    while (performance.now() - begun < ms) {
      await send(producer);
      sent += 1;
    }
  };
  await Promise.all(Array.from({ length: producers }, (_, at) => produce(at)));
  return { sent, tookMs: performance.now() - begun };
}

export async function transactionEach(synchronous: Synchronous): Promise<Metrics> {
  using rows = new Rows({ synchronous });
  const insert = rows.statement(INSERT);
  // The event loop is served between two messages, as it is between two requests of a server.
  return await closedLoop(async (producer) => {
    await new Promise((resolve) => setImmediate(resolve));
    rows.transaction(() => insert(`a${producer % RECIPIENTS}`, "b", "queue-only", producer, BODY));
  });
}

export async function transactionPerTick(synchronous: Synchronous): Promise<Metrics> {
  using rows = new Rows({ synchronous });
  const insert = rows.statement(INSERT);
  return await closedLoop((producer) =>
    rows.nextTick(() => insert(`a${producer % RECIPIENTS}`, "b", "queue-only", producer, BODY)),
  );
}

const storeOf = (synchronous: Synchronous) => (synchronous === "full" ? "sqlite-full" : "sqlite") as "sqlite";

/** A message of the library to an agent: judged, limited, told and stored in one commit. */
export async function tell(synchronous: Synchronous): Promise<Metrics> {
  await using c = await coppice({ store: storeOf(synchronous) });
  const agents = await c.register(RECIPIENTS);
  return await closedLoop((producer) => agents[producer % RECIPIENTS]!.tell(BODY));
}

/** The port's `send`, as another process uses it for a tree that it does not own. */
export async function storeSend(synchronous: Synchronous): Promise<Metrics> {
  await using c = await coppice({ store: storeOf(synchronous) });
  const draft = await drafts(c);
  return await closedLoop((producer) => c.store.send([draft(producer)]));
}

async function drafts(c: Awaited<ReturnType<typeof coppice>>): Promise<(at: number) => MailDraft> {
  const agents = await c.register(RECIPIENTS);
  const treeId = c.tree.id;
  // Whoever owns a tree looks at each arrival; the sending is what is measured here.
  await c.tree.close();
  const ids = createIds(systemRandom);
  return (at) => ({
    id: ids.mint("msg"),
    treeId,
    recipient: agents[at % RECIPIENTS]!.threadId,
    recipientPath: agents[at % RECIPIENTS]!.path,
    author: { kind: "user", name: "library" },
    kind: "message",
    authority: "user",
    trigger: false,
    steer: false,
    nextRun: false,
    workId: null,
    resultOf: null,
    content: { text: BODY, bytes: BODY.length, artifact: null },
    start: null,
    redirectedFrom: null,
    key: null,
    createdAt: 0,
  });
}

const CHECKPOINTED = 60_000;
const BATCH = 100;

async function inBatches(send: (from: number) => Promise<void> | void): Promise<Metrics> {
  const took: number[] = [];
  const begun = performance.now();
  for (let at = 0; at < CHECKPOINTED; at += BATCH) {
    const before = performance.now();
    await send(at);
    took.push(performance.now() - before);
  }
  return {
    perSecond: (CHECKPOINTED / (performance.now() - begun)) * 1000,
    p99Ms: percentile(took, 0.99),
  };
}

/** Bare rows, with the database's own policy for checkpoints or with the one that the store sets. */
export async function checkpoints(pages: number): Promise<Metrics> {
  using rows = new Rows({ synchronous: "normal", checkpointPages: pages });
  const insert = rows.statement(INSERT);
  return await inBatches((from) =>
    rows.transaction(() => {
      for (let at = from; at < from + BATCH; at += 1)
        insert(`a${at % RECIPIENTS}`, "b", "queue-only", at, BODY);
    }),
  );
}

export async function storeCheckpoints(): Promise<Metrics> {
  await using c = await coppice({ store: "sqlite" });
  const draft = await drafts(c);
  return await inBatches(async (from) => {
    await c.store.send(Array.from({ length: BATCH }, (_, at) => draft(from + at)));
  });
}
