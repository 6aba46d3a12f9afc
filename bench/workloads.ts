/** Every workload by name, and in it every contender. One process runs one contender of one workload (`worker.ts`). */
import { type Metrics, median } from "./lib/measure.ts";
import * as chain from "./workloads/chain.ts";
import * as durable from "./workloads/durable.ts";
import * as lineage from "./workloads/lineage.ts";
import * as mail from "./workloads/mail.ts";
import * as memory from "./workloads/memory.ts";
import * as residency from "./workloads/residency.ts";
import * as spawn from "./workloads/spawn.ts";
import * as threads from "./workloads/threads.ts";
import * as waits from "./workloads/waits.ts";

export type Contender = () => Promise<Metrics> | Metrics;

const CHAIN = 10_000;
const MECHANISM_CHAIN = 100_000;
const CROWD = 10_000;

function durableSend(synchronous: durable.Synchronous): Record<string, Contender> {
  return {
    "a transaction each": () => durable.transactionEach(synchronous),
    "bare rows": () => durable.transactionPerTick(synchronous),
    coppice: () => durable.tell(synchronous),
    "coppice store.send": () => durable.storeSend(synchronous),
  };
}

function onBothStores(
  scene: (store: "memory" | "sqlite") => Promise<threads.Scene>,
): Record<string, Contender> {
  return {
    coppice: () => threads.compare(scene("memory")),
    "coppice sqlite": () => threads.compare(scene("sqlite")),
  };
}

export const WORKLOADS: Readonly<Record<string, Readonly<Record<string, Contender>>>> = {
  "tell 1-to-1": {
    "ring buffer": mail.rawMail.oneToOne,
    coppice: () => mail.tellOneToOne("memory"),
    "bare rows": mail.rowsOneToOne,
    "coppice sqlite": () => mail.tellOneToOne("sqlite"),
  },
  "tell fan-out": { "ring buffer": mail.rawMail.fanOut, coppice: () => mail.tellFanOut("memory") },
  "turn 1-to-1": { "ring buffer": mail.rawMail.oneToOne, coppice: () => mail.sendOneToOne("memory") },
  "turn fan-in": { "ring buffer": mail.rawMail.fanIn, coppice: () => mail.sendFanIn("memory") },
  "turn ring": { "ring buffer": mail.rawMail.ring, coppice: () => mail.sendRing("memory") },
  "turn fan-out": { "ring buffer": mail.rawMail.fanOut, coppice: () => mail.sendFanOut("memory") },
  chain: {
    coppice: () => chain.runtimeChain("memory", CHAIN),
    mechanisms: () => chain.mechanismChain(MECHANISM_CHAIN),
  },
  flood: { coppice: () => chain.flood("memory"), "coppice sqlite": () => chain.flood("sqlite") },
  crowd: {
    coppice: () => chain.crowd("memory", CROWD),
    "coppice sqlite": () => chain.crowd("sqlite", CROWD),
  },
  idle: { raw: memory.rawIdle, coppice: memory.idleAgents },
  identities: { "map of records": memory.rawIdentities, coppice: memory.identities },
  touch: { "map and list": residency.mapLru, coppice: residency.ourLru },
  reload: { "bare rows": residency.bareReload, coppice: residency.reload },
  "durable normal": durableSend("normal"),
  "durable full": durableSend("full"),
  checkpoint: {
    "bare rows, 1000 pages": () => durable.checkpoints(1000),
    "bare rows, 10000 pages": () => durable.checkpoints(10_000),
    "coppice store.send": durable.storeCheckpoints,
  },
  spawn: { raw: spawn.rawSpawn, coppice: () => spawn.librarySpawn("memory") },
  "durable spawn": { "bare rows": spawn.rowsSpawn, coppice: () => spawn.librarySpawn("sqlite") },
  live: { raw: memory.rawLive, coppice: memory.liveAgents },
  linearity: { coppice: () => spawn.linearity("memory") },
  fork: onBothStores(threads.forkScene),
  "start of a run": { coppice: () => threads.compare(lineage.startScene()) },
  handoff: { coppice: () => threads.compare(lineage.handoffScene()) },
  snapshot: { coppice: () => threads.compare(lineage.snapshotScene()) },
  "transcript page": onBothStores((store) => threads.transcriptScene(store, "first page")),
  "transcript walk": onBothStores((store) => threads.transcriptScene(store, "all")),
  "thread list": onBothStores((store) => threads.listScene(store, 100)),
  "long thread": { coppice: () => threads.compare(threads.runScene("memory", 1000)) },
  switches: { coppice: () => threads.compare(threads.switchScene("memory", 500)) },
  waits: { "promise race": waits.naiveWaits, coppice: waits.agentWaits },
  cancel: { "abort signals": waits.abortSignals, walk: waits.rawWalk, coppice: waits.interruptIdle },
};

/** So long that one round has to do; no goal of theirs is a ratio of two processes. */
export const ONCE: ReadonlySet<string> = new Set([
  "chain",
  "crowd",
  "thread list",
  "long thread",
  "switches",
]);

/** What one process has measured; the driver adds the round. */
export interface Line {
  readonly workload: string;
  readonly contender: string;
  readonly metrics: Metrics;
  readonly error: string | null;
  readonly tookMs: number;
}

export interface RoundLine extends Line {
  readonly round: number;
  readonly load: number;
}

/** The median over rounds of `contender / baseline` of the same round; NaN where a round of both is missing. */
export function ratioOf(
  lines: readonly RoundLine[],
  contender: { readonly workload: string; readonly contender: string; readonly metric: string },
  baseline: { readonly workload: string; readonly contender: string; readonly metric: string } | null,
): number {
  const figure = (of: typeof contender, round: number): number | undefined =>
    lines.find(
      (line) => line.round === round && line.workload === of.workload && line.contender === of.contender,
    )?.metrics[of.metric];
  const ratios: number[] = [];
  for (const round of new Set(lines.map((line) => line.round))) {
    const ours = figure(contender, round);
    const theirs = baseline === null ? 1 : figure(baseline, round);
    if (ours !== undefined && theirs !== undefined) ratios.push(ours / theirs);
  }
  return median(ratios);
}
