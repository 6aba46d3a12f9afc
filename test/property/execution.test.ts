/** Laws of permits, turns and admission, over any interleaving. A failure prints its seed. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Admission } from "../../src/execution/admission.ts";
import { FairQueue } from "../../src/execution/fair-queue.ts";
import { type Permit, PermitPool } from "../../src/execution/permits.ts";
import { type AgentPath, branchOf } from "../../src/protocol/agent-path.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";

const limit = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.constant(null));

test("permits: the counts are what is held, and never above a limit", () => {
  const step = fc.record({ verb: fc.constantFrom("take", "give back"), tree: fc.nat(1), pick: fc.nat(9) });
  fc.assert(
    fc.property(limit, limit, limit, fc.array(step, { maxLength: 80 }), (total, first, second, steps) => {
      const runtime = new PermitPool(total);
      const trees = [new PermitPool(first, runtime), new PermitPool(second, runtime)] as const;
      const pools = [runtime, ...trees];
      const live: { permit: Permit; tree: number }[] = [];
      for (const { verb, tree, pick } of steps) {
        const chosen = live[pick % Math.max(1, live.length)];
        if (verb === "take") {
          const free = trees[tree as 0 | 1].available;
          const permit = trees[tree as 0 | 1].take();
          expect(permit !== null).toBe(free);
          if (permit !== null) live.push({ permit, tree });
        } else if (chosen !== undefined) {
          chosen.permit[Symbol.dispose]();
          chosen.permit[Symbol.dispose]();
          live.splice(live.indexOf(chosen), 1);
        }
        for (const [at, pool] of pools.entries()) {
          expect(pool.inUse).toBe(live.filter((one) => at === 0 || one.tree === at - 1).length);
          expect(pool.inUse).toBeLessThanOrEqual(pool.limit ?? Infinity);
        }
      }
      for (const { permit } of live) permit[Symbol.dispose]();
      expect(pools.map(({ inUse }) => inUse)).toEqual([0, 0, 0]);
    }),
  );
});

test("turns: first come, first served in a branch, and no branch is passed over more often than there are branches", () => {
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ verb: fc.constant("add" as const), branch: fc.integer({ min: 0, max: 4 }) }),
    },
    { weight: 2, arbitrary: fc.record({ verb: fc.constant("take" as const), branch: fc.constant(0) }) },
    {
      weight: 1,
      arbitrary: fc.record({ verb: fc.constant("remove" as const), branch: fc.integer({ min: 0, max: 4 }) }),
    },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const queue = new FairQueue();
      const waiting = new Map<number, string[]>();
      const passedOver = new Map<number, number>();
      let next = 0;
      let served = "";
      for (const { verb, branch } of steps) {
        const line = waiting.get(branch) ?? [];
        if (verb === "add") {
          const id = `${branch}:${(next += 1)}`;
          queue.enqueue(
            async () => {
              served = id;
            },
            { id, branch: `${branch}` },
          );
          waiting.set(branch, [...line, id]);
          if (line.length === 0) passedOver.set(branch, 0);
        } else if (verb === "remove" && line.length > 0) {
          const id = line[next % line.length]!;
          queue.remove(id);
          waiting.set(
            branch,
            line.filter((other) => other !== id),
          );
        } else if (verb === "take") {
          const promised = [...queue.order()];
          expect(promised.map((id) => queue.ahead(id))).toEqual(promised.map((_, at) => at));
          void queue.dequeue()?.();
          const of = Number(served.split(":")[0]);
          if (promised.length === 0) continue;
          expect(served).toBe(promised[0]);
          expect(served).toBe(waiting.get(of)![0]);
          waiting.set(of, waiting.get(of)!.slice(1));
          for (const [other, ids] of waiting) {
            const count = other === of ? 0 : (passedOver.get(other) ?? 0) + 1;
            passedOver.set(other, ids.length === 0 ? 0 : count);
            expect(passedOver.get(other)).toBeLessThanOrEqual(4);
          }
        }
        expect(queue.size).toBe([...waiting.values()].flat().length);
      }
    }),
  );
});

/** A run of the model: where it is and what it holds. */
interface Run {
  readonly threadId: ThreadId;
  readonly tree: number;
  readonly path: AgentPath;
  permit: Permit | null;
  state: "waiting" | "running" | "in_wait" | "returning";
}

test("admission: any interleaving of asking, waiting, cancelling and throwing keeps the limits, leaks nothing and leaves nobody who could go", () => {
  const step = fc.record({
    verb: fc.constantFrom(
      "ask",
      "ask",
      "ask_and_throw",
      "lend",
      "return",
      "cancel",
      "settle",
      "refuse",
      "allow",
    ),
    tree: fc.nat(1),
    branch: fc.nat(2),
    pick: fc.nat(20),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { maxLength: 100 }),
      (each, total, steps) => {
        const runtime = new PermitPool(total);
        const pools = [new PermitPool(each, runtime), new PermitPool(each, runtime)] as const;
        const runs = new Map<ThreadId, Run>();
        const noSlot = new Set<ThreadId>();
        const admission = new Admission<Permit>(({ threadId }) => {
          const run = runs.get(threadId)!;
          if (noSlot.has(threadId)) return null;
          return pools[run.tree as 0 | 1].take();
        });
        const lane = (tree: number) => admission.lane(`thread_${tree}`, pools[tree as 0 | 1]);
        const ask = (run: Run, kind: "new" | "return", fails: boolean) => {
          try {
            lane(run.tree).request(
              { threadId: run.threadId, path: run.path, kind, needsPermit: true },
              (permit) => {
                // One permit has one holder.
                for (const other of runs.values()) if (other !== run) expect(other.permit).not.toBe(permit);
                if (fails) {
                  runs.delete(run.threadId);
                  throw new Error("no start");
                }
                run.permit = permit;
                run.state = "running";
              },
            );
          } catch (error) {
            expect((error as Error).message).toBe("no start");
          }
        };
        const pump = () => {
          try {
            admission.pump();
          } catch {
            // A callback that was made to throw, maybe several.
          }
        };
        let minted = 0;
        for (const { verb, tree, branch, pick } of steps) {
          const inState = (...states: Run["state"][]) => {
            const able = [...runs.values()].filter(({ state }) => states.includes(state));
            return able[pick % Math.max(1, able.length)];
          };
          if (verb === "ask" || verb === "ask_and_throw") {
            minted += 1;
            const run: Run = {
              threadId: `thread_${minted}`,
              tree,
              path: `/root/b${branch}/${minted}`,
              permit: null,
              state: "waiting",
            };
            runs.set(run.threadId, run);
            ask(run, "new", verb === "ask_and_throw");
          } else if (verb === "lend") {
            const run = inState("running");
            if (run !== undefined) {
              run.permit![Symbol.dispose]();
              run.permit = null;
              run.state = "in_wait";
            }
          } else if (verb === "return") {
            const run = inState("in_wait");
            if (run !== undefined) {
              run.state = "returning";
              ask(run, "return", false);
            }
          } else if (verb === "cancel") {
            const run = inState("waiting", "returning");
            if (run !== undefined) {
              expect(lane(run.tree).cancel(run.threadId)).toBe(true);
              runs.delete(run.threadId);
            }
          } else if (verb === "settle") {
            const run = inState("running", "in_wait");
            run?.permit?.[Symbol.dispose]();
            if (run !== undefined) runs.delete(run.threadId);
          } else if (verb === "refuse") {
            const run = inState("waiting", "returning");
            if (run !== undefined) noSlot.add(run.threadId);
          } else {
            noSlot.clear();
          }
          pump();

          const running = [...runs.values()].filter(({ state }) => state === "running");
          expect(runtime.inUse).toBe(running.length);
          expect(runtime.inUse).toBeLessThanOrEqual(total);
          for (const at of [0, 1] as const) {
            expect(pools[at].inUse).toBe(running.filter((run) => run.tree === at).length);
            expect(pools[at].inUse).toBeLessThanOrEqual(each);
            const queued = [...runs.values()].filter(
              (run) => run.tree === at && (run.state === "waiting" || run.state === "returning"),
            );
            expect(lane(at).size).toBe(queued.length);
            // Work-conserving: where a permit is free, nobody waits who has a slot.
            if (pools[at].available)
              expect(queued.filter(({ threadId }) => !noSlot.has(threadId))).toEqual([]);
            const places = queued.map(({ threadId }) => lane(at).position(threadId)!);
            expect(places.toSorted((one, other) => one - other)).toEqual(queued.map((_, index) => index + 1));
          }
        }
        noSlot.clear();
        for (let guard = 0; runs.size > 0 && guard < 1_000; guard += 1) {
          for (const run of runs.values()) {
            if (run.state !== "running" && run.state !== "in_wait") continue;
            run.permit?.[Symbol.dispose]();
            runs.delete(run.threadId);
          }
          pump();
        }
        expect([runs.size, runtime.inUse, lane(0).size, lane(1).size]).toEqual([0, 0, 0, 0]);
      },
    ),
  );
});

test("admission: with one permit a branch waits for at most one run of each other branch", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 60 }), (branches) => {
      const pool = new PermitPool(1);
      const admission = new Admission<Permit>(() => pool.take());
      const lane = admission.lane("thread_0", pool);
      const order: AgentPath[] = [];
      let holder: Permit | null = pool.take();
      for (const [at, branch] of branches.entries()) {
        const path: AgentPath = `/root/b${branch}/n${at}`;
        lane.request({ threadId: `thread_${at}`, path, kind: "new", needsPermit: true }, (permit) => {
          order.push(path);
          holder = permit;
        });
      }
      while (holder !== null) {
        const ended: Permit = holder;
        holder = null;
        ended[Symbol.dispose]();
        admission.pump();
      }
      expect(order).toHaveLength(branches.length);
      const distinct = new Set(order.map(branchOf));
      for (const branch of distinct) {
        const turns = order.flatMap((path, at) => (branchOf(path) === branch ? [at] : []));
        turns.reduce((last, turn) => {
          expect(turn - last).toBeLessThanOrEqual(distinct.size);
          return turn;
        }, -1);
        // In its own order, as it asked.
        const mine = order.filter((path) => branchOf(path) === branch);
        expect(mine).toEqual(
          mine.toSorted((one, other) => Number(one.split("/n")[1]) - Number(other.split("/n")[1])),
        );
      }
    }),
  );
});
