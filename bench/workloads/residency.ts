/**
 * The order of use (R3) and unloading and loading again (R4). A touch is measured alone; a reload is compared with the one
 * select and the one `JSON.parse` that it cannot do without, an unload with its one bare transaction.
 */
import { coppice } from "../contenders/coppice.ts";
import { Rows } from "../contenders/rows.ts";
import { load, unload } from "../../src/control/load.ts";
import { Lru, type LruLinks } from "../../src/residency/lru.ts";
import { say } from "../../src/providers/scripted/script.ts";
import { type Metrics, numbers, percentile } from "../lib/measure.ts";

const SIZES = { k: 1000, tenK: 10_000, hundredK: 100_000 } as const;
const TOUCHES = 400_000;
const SESSIONS = 200;
const CYCLES = 400;
const ITEM_BYTES = 490;
const ITEMS = 40;

export class Session implements LruLinks<Session> {
  readonly id: string;
  older: Session | null = null;
  newer: Session | null = null;
  listed = false;

  constructor(id: string) {
    this.id = id;
  }
}

export type Skew = "uniform" | "skewed";

/** Which entry each touch is of: any, or half of them among the first six in a hundred. */
export function touchesOf(size: number, skew: Skew, count: number): Int32Array {
  const random = numbers(7);
  return Int32Array.from({ length: count }, () =>
    Math.floor(size * (skew === "uniform" ? random() : random() ** 4)),
  );
}

/** The least nanoseconds a touch of several runs. */
function bestOf(count: number, run: () => void): number {
  let best = Infinity;
  for (let at = 0; at < 5; at += 1) {
    const before = process.hrtime.bigint();
    run();
    best = Math.min(best, Number(process.hrtime.bigint() - before) / count);
  }
  return best;
}

function overSizes(touch: (size: number, touches: Int32Array) => () => void): Metrics {
  const metrics: Record<string, number> = {};
  for (const [name, size] of Object.entries(SIZES)) {
    for (const skew of ["uniform", "skewed"] as const) {
      metrics[`${name}_${skew}`] = bestOf(TOUCHES, touch(size, touchesOf(size, skew, TOUCHES)));
    }
  }
  return metrics;
}

export function ourLru(): Metrics {
  return overSizes((size, touches) => {
    const sessions = Array.from({ length: size }, (_, at) => new Session(String(at)));
    const lru = new Lru<Session>();
    for (const session of sessions) lru.touch(session);
    return () => {
      for (const at of touches) lru.touch(sessions[at]!);
    };
  });
}

/** A map of ids with a doubly linked list, which is what the usual packages are inside. */
export function mapLru(): Metrics {
  return overSizes((size, touches) => {
    const ids = Array.from(
      { length: size },
      (_, at) => `01890000-0000-7000-8000-${at.toString(16).padStart(12, "0")}`,
    );
    const byId = new Map(ids.map((id) => [id, new Session(id)]));
    const lru = new Lru<Session>();
    for (const session of byId.values()) lru.touch(session);
    return () => {
      for (const at of touches) lru.touch(byId.get(ids[at]!)!);
    };
  });
}

const text = "x".repeat(ITEM_BYTES - 90);

/** One session a row, as JSON. */
export function bareReload(): Metrics {
  using rows = new Rows({ synchronous: "normal" });
  const insert = rows.statement("INSERT INTO sessions VALUES (?, ?, ?)");
  const items = Array.from({ length: ITEMS }, (_, index) => ({
    index,
    kind: "user",
    text,
    runId: `run_${index}`,
    step: 1,
    at: 1,
  }));
  rows.transaction(() => {
    for (let at = 0; at < SESSIONS; at += 1) insert(`s${at}`, "idle", JSON.stringify(items));
  });
  const read = rows.database.prepare("SELECT status, body FROM sessions WHERE id = ?");
  const mark = rows.statement("UPDATE sessions SET status = ? WHERE id = ?");
  const append = rows.statement("INSERT INTO items (thread, body) VALUES (?, ?)");
  const random = numbers(3);
  const loads: number[] = [];
  const unloads: number[] = [];
  for (let cycle = 0; cycle < CYCLES + 100; cycle += 1) {
    const id = `s${Math.floor(random() * SESSIONS)}`;
    const begun = performance.now();
    const row = read.get(id);
    const parsed = JSON.parse(row!["body"] as string) as unknown[];
    const loaded = performance.now();
    rows.transaction(() => {
      for (const item of [1, 2]) append(id, JSON.stringify({ item, text }));
      mark("unloaded", id);
    });
    const done = performance.now();
    if (parsed.length !== ITEMS) throw new Error("a session has lost items");
    if (cycle < 100) continue;
    loads.push(loaded - begun);
    unloads.push(done - loaded);
  }
  return percentiles(loads, unloads);
}

/** Agents with a history of the same size. Loading and unloading are what a wake and the pressure on slots call. */
export async function reload(): Promise<Metrics> {
  const long = `${text}`.repeat(ITEMS / 2);
  await using c = await coppice({ store: "sqlite", scripts: { "*": [say(long)] }, limits: { residents: 4 } });
  const spawned = await Promise.all(
    Array.from({ length: SESSIONS }, (_, at) => c.tree.root.spawn(`a${at}`, long)),
  );
  await Promise.all(spawned.map(({ work }) => work.outcome()));
  const { tree } = c.tree.control;
  await c.unloadAll();
  const random = numbers(3);
  const loads: number[] = [];
  const unloads: number[] = [];
  for (let cycle = 0; cycle < CYCLES + 100; cycle += 1) {
    const { threadId } = spawned[Math.floor(random() * SESSIONS)]!.agent;
    const begun = performance.now();
    await load(tree, threadId);
    const loaded = performance.now();
    await unload(tree, threadId);
    const done = performance.now();
    if (cycle < 100) continue;
    loads.push(loaded - begun);
    unloads.push(done - loaded);
  }
  return percentiles(loads, unloads);
}

function percentiles(loads: readonly number[], unloads: readonly number[]): Metrics {
  return {
    loadUs: percentile(loads, 0.5) * 1000,
    loadP99Us: percentile(loads, 0.99) * 1000,
    unloadUs: percentile(unloads, 0.5) * 1000,
    unloadP99Us: percentile(unloads, 0.99) * 1000,
  };
}
