/**
 * Chains and floods (M4), and a crowd of ten thousand. A message goes through agents one after the other, each of which forwards
 * it; the stack must not grow with it. A flood of messages must not keep a timer waiting.
 */
import { type Coppice, coppice, type StoreKind } from "../contenders/coppice.ts";
import { Admission } from "../../src/execution/admission.ts";
import { PermitPool } from "../../src/execution/permits.ts";
import { createMemoryStore } from "../../src/index.ts";
import type { AgentPath } from "../../src/protocol/agent-path.ts";
import type { Lease, StoreTx } from "../../src/store/port.ts";
import { type Metrics, time, timerDelays } from "../lib/measure.ts";
import { Forwarding } from "./mail.ts";

/** A token through so many agents of the runtime, each with a turn of its own; the residents stay 64. */
export async function runtimeChain(store: StoreKind, length: number): Promise<Metrics> {
  const forwarding = new Forwarding();
  forwarding.size = length;
  await using c = await coppice({ store, scripts: { "*": forwarding.answer } });
  await c.register(length);
  const { cpuNs, wallNs } = await time(() => forwarding.pass(c, length - 1));
  return { length, us: cpuNs / 1000 / length, wallUs: wallNs / 1000 / length };
}

/** The same through the mechanisms alone: a commit a hop, and the admission of whoever is next asked from inside of it. */
export async function mechanismChain(length: number): Promise<Metrics> {
  const store = createMemoryStore();
  const treeId = "thread_chain" as const;
  const lease: Lease = await store.claim({
    treeId,
    token: "tok_chain",
    owner: { host: "bench", bootId: "bench", pid: 1, startedAt: "1" },
    leaseMs: 3_600_000,
    provenDead: () => false,
  });
  const permits = new PermitPool(1);
  const admission = new Admission<Disposable>(() => permits.take());
  const lane = admission.lane(treeId, permits);
  let hops = 0;
  const { cpuNs } = await time(
    () =>
      new Promise<void>((resolve, reject) => {
        const run = async (at: number, permit: Disposable): Promise<void> => {
          hops += 1;
          const next = at + 1;
          if (next === length) {
            resolve();
            return;
          }
          await store.commit(lease, (tx) => hop(tx, treeId, next));
          const threadId = `thread_${next}` as const;
          const path = `/root/a${next}` as AgentPath;
          lane.request(
            { threadId, path, kind: "new", needsPermit: true },
            (granted) => void run(next, granted).catch(reject),
          );
          permit[Symbol.dispose]();
          admission.pump();
        };
        void run(0, permits.take()!).catch(reject);
      }),
  );
  if (hops !== length) throw new Error(`the chain ended after ${hops} of ${length}`);
  return { length, us: cpuNs / 1000 / length };
}

function hop(tx: StoreTx, treeId: `thread_${string}`, to: number): void {
  tx.appendMail({
    id: `msg_${to}`,
    treeId,
    recipient: `thread_${to}`,
    recipientPath: `/root/a${to}`,
    author: { kind: "runtime" },
    kind: "message",
    authority: "runtime",
    trigger: true,
    steer: false,
    nextRun: false,
    workId: null,
    resultOf: null,
    content: { text: "token", bytes: 5, artifact: null },
    start: null,
    redirectedFrom: null,
    key: null,
    createdAt: to,
  });
}

const FLOODED = 20;
const FLOOD = 500;

/**
 * How late a timer of one millisecond is while mailboxes are flooded and taken in: ten thousand messages sent at once, half of
 * what each mailbox may hold by default in each.
 */
export async function flood(store: StoreKind): Promise<Metrics> {
  await using c = await coppice({ store });
  await floodOf(c, 0);
  const { p99Ms, longestMs, tookMs } = await timerDelays(1, () => floodOf(c, 1));
  return { p99Ms, longestMs, tookMs, share: longestMs / tookMs };
}

/** One such flood, of agents of its own. */
export async function floodOf(c: Coppice, number: number): Promise<void> {
  const agents = await c.crowd(FLOODED, { from: number * FLOODED });
  const text = (at: number): string => `message ${at}`;
  await Promise.all(
    agents.flatMap((agent) => Array.from({ length: FLOOD }, (_, at) => agent.tell(text(at)))),
  );
  const works = await Promise.all(agents.map((agent) => agent.send("read them")));
  await Promise.all(works.map((work) => work.outcome()));
}

/** Ten thousand agents: made, listed, found, and so many of them loaded again although only 64 may stay. */
export async function crowd(store: StoreKind, count: number): Promise<Metrics> {
  await using c = await coppice({ store });
  await c.crowd(200, { from: 10 * count });
  const made = await time(() => c.crowd(count));
  const { resident } = await c.tree.counts();
  if (resident > 64) throw new Error(`${resident} agents are resident`);
  const listed = await time(async () => {
    let seen = 0;
    for (let after: string | null = null; ;) {
      const page: Awaited<ReturnType<typeof c.tree.list>> = await c.tree.list({ after, limit: 100 });
      seen += page.agents.length;
      after = page.next;
      if (after === null) return seen;
    }
  });
  if (listed.value < count) throw new Error(`the list ended after ${listed.value}`);
  const found = await time(async () => {
    for (let at = 0; at < count; at += 1) await c.tree.agent(`/root/a${(at * 7919) % count}`);
  });
  const again = Math.min(count, 2000);
  const reloaded = await time(async () => {
    const works = await Promise.all(
      Array.from({ length: again }, (_, at) => made.value[Math.floor((at * count) / again)]!.send("again")),
    );
    await Promise.all(works.map((work) => work.outcome()));
  });
  return {
    count,
    makeUs: made.cpuNs / 1000 / count,
    listUs: listed.cpuNs / 1000 / count,
    findUs: found.cpuNs / 1000 / count,
    reloadUs: reloaded.cpuNs / 1000 / again,
  };
}
