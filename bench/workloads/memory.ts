/**
 * Bytes: of an idle loaded agent (R1), of an identity that is only registered (R2), of a child in its model call (S3). The
 * runtime stands on SQLite, so that its heap holds what is loaded and not what is stored; what two heaps have in common,
 * caches and compiled code, is there before the first is measured.
 */
import { coppice } from "../contenders/coppice.ts";
import { RawTree } from "../contenders/raw.ts";
import { gate, say, together } from "../../src/providers/scripted/script.ts";
import { heapBytes, median, type Metrics, numbers, residentBytes, time } from "../lib/measure.ts";

const IDLE = 1000;
const LIVE = 1000;
const LOOK_UPS = 20_000;
const RAW_IDENTITIES = 200_000;
const IDENTITIES = 50_000;

const idOf = (at: number): string =>
  Buffer.from(`01890000-0000-7000-8000-${at.toString(16).padStart(12, "0")}`).toString();

/** Ten fields and a handler, found by an id of 36 characters; a mailbox only while there is mail. */
class LazySession {
  readonly id: string;
  readonly handler: () => void;
  parent: LazySession | null = null;
  mailbox: unknown[] | null = null;
  state = 0;
  flags = 0;
  seq = 0;
  lastUsed = 0;
  older: LazySession | null = null;
  newer: LazySession | null = null;

  constructor(id: string, handler: () => void) {
    this.id = id;
    this.handler = handler;
  }
}

export function rawIdle(): Metrics {
  const sessions = new Map<string, LazySession>();
  let handled = 0;
  const add = (from: number, count: number): void => {
    for (let at = from; at < from + count; at += 1) {
      const id = idOf(at);
      sessions.set(id, new LazySession(id, () => (handled += at)));
    }
    for (const session of sessions.values()) session.handler();
  };
  add(0, 200);
  const before = heapBytes();
  add(200, 100_000);
  const bytes = (heapBytes() - before) / 100_000;
  if (handled === 0) throw new Error("nobody was there");
  return { bytes };
}

/** Agents after their first run, loaded, and the same ones unloaded: what is between the two is the sessions. */
export async function idleAgents(): Promise<Metrics> {
  await using c = await coppice({ store: "sqlite", limits: { residents: 10 * IDLE } });
  await c.crowd(IDLE);
  const loaded = heapBytes();
  const unloaded = await c.unloadAll();
  if (unloaded < IDLE) throw new Error(`only ${unloaded} agents were resident`);
  return { bytes: (loaded - heapBytes()) / unloaded };
}

export async function rawIdentities(): Promise<Metrics> {
  const before = residentBytes();
  const byPath = new Map<
    string,
    { readonly id: string; readonly path: string; state: number; lastUsed: number }
  >();
  for (let at = 0; at < RAW_IDENTITIES; at += 1) {
    const path = Buffer.from(`/root/a${at}`).toString();
    byPath.set(path, { id: idOf(at), path, state: 0, lastUsed: 1 });
  }
  const bytes = (residentBytes() - before) / RAW_IDENTITIES;
  const paths = randomPaths(RAW_IDENTITIES);
  const { cpuNs, value } = await time(() => paths.filter((path) => byPath.has(path)).length);
  return { bytes, resolveUs: cpuNs / 1000 / value };
}

/** Fresh strings whose hash nobody knows yet. */
function randomPaths(count: number): string[] {
  const random = numbers(12_345);
  return JSON.parse(
    JSON.stringify(Array.from({ length: LOOK_UPS }, () => `/root/a${Math.floor(random() * count)}`)),
  ) as string[];
}

/** Registered agents that are not loaded: bytes of this process, time to find one by path, time to take the tree over. */
export async function identities(): Promise<Metrics> {
  await using c = await coppice({ store: "sqlite", limits: { residents: 1 } });
  const takeOver = async (): Promise<number> => {
    const took: number[] = [];
    for (let at = 0; at < 9; at += 1) took.push(await c.reopen());
    return median(took);
  };
  await c.register(5000);
  await takeOver();
  const before = residentBytes();
  await c.register(IDENTITIES, { from: 5000 });
  const bytes = Math.max(0, residentBytes() - before) / IDENTITIES;
  const paths = randomPaths(IDENTITIES);
  const { treeId } = c.tree.control.tree;
  const { cpuNs } = await time(() =>
    c.tree.control.read((view) => {
      for (const path of paths) view.agentAt(treeId, path as `/root/${string}`);
    }),
  );
  const full = await takeOver();
  await using empty = await coppice({ store: "sqlite" });
  const none: number[] = [];
  for (let at = 0; at < 9; at += 1) none.push(await empty.reopen());
  return { bytes, resolveUs: cpuNs / 1000 / LOOK_UPS, startUp: full / median(none) };
}

export async function rawLive(): Promise<Metrics> {
  const held = Promise.withResolvers<string>();
  const tree = new RawTree(() => held.promise);
  const begin = (from: number, count: number): void => {
    for (let at = from; at < from + count; at += 1) void tree.spawn(tree.root, `a${at}`, `task ${at}`);
  };
  begin(0, 200);
  await new Promise((resolve) => setTimeout(resolve, 10));
  const before = heapBytes();
  begin(200, LIVE);
  await new Promise((resolve) => setTimeout(resolve, 10));
  const bytes = (heapBytes() - before) / LIVE;
  held.resolve("done");
  return { bytes };
}

/** Children that are all held in their model call, and the same ones when they have answered and are unloaded. */
export async function liveAgents(): Promise<Metrics> {
  const all = { running: 10 * LIVE, runningTotal: 10 * LIVE, residents: 10 * LIVE };
  await using c = await coppice({
    store: "sqlite",
    scripts: { "*": [together(gate("held"), say("done"))] },
    limits: all,
  });
  const spawned = await Promise.all(
    Array.from({ length: LIVE }, (_, at) => c.tree.root.spawn(`a${at}`, `task ${at}`)),
  );
  await c.provider.gates.arrived("held", LIVE);
  const live = heapBytes();
  c.provider.gates.openAll();
  await Promise.all(spawned.map(({ work }) => work.outcome()));
  await c.tree.idle();
  await c.unloadAll();
  return { bytes: (live - heapBytes()) / LIVE };
}
