/**
 * Kills under load: a process works on a tree, is killed at a random moment, and the next one goes on, so many times over.
 * After each kill the store is held to every promise, and to all that was ever acknowledged.
 */
import { join } from "node:path";
import { expect } from "vitest";
import type { WorkRecord } from "../../../src/protocol/work.ts";
import { seededRandom } from "../../../src/platform/ids.ts";
import type { Store } from "../../../src/store/port.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { invariants } from "../../../src/testing/invariants.ts";
import { turn } from "../../../src/testing/virtual-clock.ts";
import { makeFolder } from "../stores.ts";
import { start } from "./start.ts";

export interface KillOptions {
  readonly kills: number;
  readonly seed: number;
  readonly onLostRun: "notify" | "retry";
}

export async function surviveKills({ kills, seed, onLostRun }: KillOptions): Promise<void> {
  using folder = makeFolder();
  const path = join(folder.path, "store.db");
  const random = seededRandom(seed);
  const options = { onLostRun, limits: { mailboxMessages: 100_000, agentsPerTree: null } };
  /** In every other life so little room that agents put one another away, and wait for one permit. */
  const tiny = { ...options, runtimeLimits: { running: 1, residents: 1 } };
  let tree = "-";
  let checker: ReturnType<typeof invariants> | null = null;
  const asked = new Set<string>();
  const endings = new Map<string, string>();
  const reading = async <T>(use: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openSqliteStore({ path, synchronous: "normal", busyTimeoutMs: 30_000 });
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  };
  const works = (store: Store): Promise<Map<string, WorkRecord>> =>
    store.read((view) => {
      const found = new Map<string, WorkRecord>();
      for (let after: string | null = null; ;) {
        const page = view.works(tree as `thread_${string}`, { limit: 1000, after });
        for (const work of page.rows) found.set(work.id, work);
        after = page.next;
        if (after === null) return found;
      }
    });
  const check = (when: string): Promise<void> =>
    reading(async (store) => {
      checker ??= invariants(tree as `thread_${string}`);
      const current = checker;
      const broken = await store.read((view) => current.check(view));
      expect(broken.slice(0, 5), `seed ${seed}, ${when}`).toEqual([]);
      const stored = await works(store);
      for (const id of asked)
        expect(stored.has(id), `seed ${seed}, ${when}: ${id} was acknowledged`).toBe(true);
      for (const [id, ending] of endings) expect([id, stored.get(id)?.outcome?.ending]).toEqual([id, ending]);
    });

  for (let kill = 1; kill <= kills; kill += 1) {
    const running = start(path, "load", tree, kill % 2 === 0 ? tiny : options);
    const { ready } = await running.says("ready");
    tree = ready as string;
    const lines = 1 + Math.floor(random.fraction() * 40);
    await running.until(() => running.lines.length > lines);
    // Not always right after something was acknowledged.
    for (let turns = Math.floor(random.fraction() * 200); turns > 0; turns -= 1) await turn();
    await running.kill();
    expect(running.all("refused"), `seed ${seed}, kill ${kill}`).toEqual([]);
    for (const line of running.all("asked")) asked.add(line["asked"] as string);
    for (const line of running.all("ended")) endings.set(line["ended"] as string, line["ending"] as string);
    await check(`kill ${kill}`);
  }
  const last = start(path, "drain", tree, options);
  await last.says("drained");
  await last.ended;
  await check("drained");
  await reading(async (store) => {
    const all = [...(await works(store)).values()];
    expect(all.filter(({ state }) => state !== "ended").map(({ id }) => id)).toEqual([]);
    // A work is lost at most so often, and then says so; most are not lost at all.
    expect(all.filter(({ outcome }) => outcome!.ending === "completed").length).toBeGreaterThan(
      all.length / 2,
    );
    expect(asked.size).toBeGreaterThan(kills);
  });
}
