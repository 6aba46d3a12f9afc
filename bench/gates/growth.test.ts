/**
 * Ten times the work within thirteen times the time: whatever is quadratic fails, on any machine. What is compared is CPU
 * time of this thread, the least of several tries, so that a busy machine is no excuse.
 */
import { describe, expect, test } from "vitest";
import { Lru } from "../../src/residency/lru.ts";
import { type Coppice, coppice } from "../contenders/coppice.ts";
import { time } from "../lib/measure.ts";
import { Session, touchesOf } from "../workloads/residency.ts";

const TIMES = 10;
const WITHIN = 13;
const TRIES = 4;

type Work = (size: number) => Promise<void> | void;

/**
 * What `TIMES` the work costs, relative to the work: both are done as often as makes them equally much, since the CPU clock
 * is too coarse for the small one alone.
 */
async function growth(size: number, work: Work): Promise<number> {
  const small = async (): Promise<void> => {
    for (let at = 0; at < TIMES; at += 1) await work(size);
  };
  const large = (): Promise<void> | void => work(TIMES * size);
  await work(size);
  const least = { small: Infinity, large: Infinity };
  for (let at = 0; at < TRIES; at += 1) {
    least.small = Math.min(least.small, (await time(small)).cpuNs);
    least.large = Math.min(least.large, (await time(large)).cpuNs);
    if (TIMES * least.large <= WITHIN * least.small) break;
  }
  return (TIMES * least.large) / least.small;
}

/** Agents that nobody has used yet, one for each try. */
function unused(c: Coppice) {
  let next = 0;
  return async () => (await c.crowd(1, { from: (next += 1) }))[0]!;
}

describe.each(["memory", "sqlite"] as const)("growth on %s", (store) => {
  test("sending mail to one agent, and its taking it in", async () => {
    await using c = await coppice({ store });
    const fresh = unused(c);
    const ratio = await growth(200, async (size) => {
      const agent = await fresh();
      await Promise.all(Array.from({ length: size }, (_, at) => agent.tell(`message ${at}`)));
      await (await agent.send("read them")).outcome();
    });
    expect(ratio).toBeLessThanOrEqual(WITHIN);
  });

  test("spawning, answering and returning", async () => {
    await using c = await coppice({ store });
    // From now on each load needs an unload, in small trees and large ones: trees stay open and keep their sessions.
    await c.crowd(200);
    const ratio = await growth(80, async (size) => {
      const tree = await c.runtime.openTree({});
      const spawned = await Promise.all(
        Array.from({ length: size }, (_, at) => tree.root.spawn(`a${at}`, "task")),
      );
      await Promise.all(spawned.map(({ work }) => work.outcome()));
    });
    expect(ratio).toBeLessThanOrEqual(WITHIN);
  });

  test("finding and listing agents of a registry that is as much larger", async () => {
    await using few = await coppice({ store });
    await using many = await coppice({ store });
    const size = 1500;
    await few.register(size);
    await many.register(TIMES * size);
    // The same few hundred in both, the more often in the larger one: a walk over all would show, the machine's caches do not.
    const asked = 300;
    const ratio = await growth(size, async (count) => {
      const c = count === size ? few : many;
      const { treeId } = c.tree.control.tree;
      for (let round = 0; round < count / 150; round += 1) {
        await c.tree.control.read((view) => {
          for (let at = 0; at < asked; at += 1)
            if (view.agentAt(treeId, `/root/a${at}`) === undefined) throw new Error(`no agent a${at}`);
        });
        let after: string | null = null;
        for (let seen = 0; seen < asked;) {
          const page: Awaited<ReturnType<typeof c.tree.list>> = await c.tree.list({ after, limit: 100 });
          seen += page.agents.length;
          after = page.next;
        }
      }
    });
    expect(ratio).toBeLessThanOrEqual(WITHIN);
  });
});

test("growth of touches among ten thousand loaded agents, most of them of a few", async () => {
  const size = 10_000;
  const sessions = Array.from({ length: size }, (_, at) => new Session(String(at)));
  const lru = new Lru<Session>();
  for (const session of sessions) lru.touch(session);
  const ratio = await growth(200_000, (count) => {
    for (const at of touchesOf(size, "skewed", count)) lru.touch(sessions[at]!);
  });
  expect(ratio).toBeLessThanOrEqual(WITHIN);
  expect(lru.size).toBe(size);
});
