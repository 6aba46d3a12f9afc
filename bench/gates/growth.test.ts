/** Ten times the work within thirteen times the time: whatever is quadratic fails, on any machine. */
import { describe, expect, test } from "vitest";
import { Lru } from "../../src/residency/lru.ts";
import { type Coppice, coppice } from "../contenders/coppice.ts";
import { ABOUT_THE_SAME, costRatio, growth, WITHIN } from "../lib/growth.ts";
import { Session, touchesOf } from "../workloads/residency.ts";

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

  test("finding and listing agents of a registry that is ten times as large", async () => {
    await using few = await coppice({ store });
    await using many = await coppice({ store });
    await few.register(1_500);
    await many.register(15_000);
    // The same few hundred in both: a walk over all would cost ten times as much, an index and the machine's caches do not.
    const asked = 300;
    const look = (c: Coppice) => async (): Promise<void> => {
      const { treeId } = c.tree.control.tree;
      for (let round = 0; round < 50; round += 1) {
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
    };
    await look(few)();
    expect(await costRatio(look(few), look(many), ABOUT_THE_SAME)).toBeLessThanOrEqual(ABOUT_THE_SAME);
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
