/** Laws of slots and of the order of use. A failure prints its seed. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { Lru, type LruLinks } from "../../src/residency/lru.ts";
import { mayUnload, type UnloadFacts } from "../../src/residency/may-unload.ts";
import { Residency, type Slot } from "../../src/residency/slots.ts";

test("order of use: equal to a list that is searched and spliced", () => {
  interface Node extends LruLinks<Node> {
    readonly at: number;
  }
  const step = fc.record({ verb: fc.constantFrom("touch", "touch", "remove"), at: fc.nat(7) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const nodes = Array.from({ length: 8 }, (_, at): Node => ({
        at,
        older: null,
        newer: null,
        listed: false,
      }));
      const lru = new Lru<Node>();
      let reference: number[] = [];
      for (const { verb, at } of steps) {
        reference = reference.filter((other) => other !== at);
        if (verb === "touch") reference.push(at);
        if (verb === "touch") lru.touch(nodes[at]!);
        else lru.remove(nodes[at]!);
        expect([...lru].map((node) => node.at)).toEqual(reference);
        expect(lru.size).toBe(reference.length);
      }
    }),
  );
});

const facts = fc.record<UnloadFacts>({
  lastRunSettled: fc.boolean(),
  inParkableWait: fc.boolean(),
  reserved: fc.boolean(),
  triggerMailPending: fc.boolean(),
  queueOnlyMailPending: fc.boolean(),
  requestPending: fc.boolean(),
  pinPendingMail: fc.boolean(),
});

const idle: UnloadFacts = {
  lastRunSettled: true,
  inParkableWait: false,
  reserved: false,
  triggerMailPending: false,
  queueOnlyMailPending: false,
  requestPending: false,
  pinPendingMail: false,
};

const IDS = Array.from({ length: 6 }, (_, at): ThreadId => `thread_${at}`);

test("slots: never above the limit but by a return, none leaked, and nobody is unloaded who may not be", async () => {
  const step = fc.record({
    verb: fc.constantFrom(
      "reserve",
      "commit",
      "drop",
      "touch",
      "lend",
      "reclaim",
      "release",
      "room",
      "unloaded",
      "failed",
      "facts",
    ),
    at: fc.nat(5),
    need: fc.integer({ min: 1, max: 3 }),
    pinned: fc.boolean(),
    facts,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { maxLength: 80 }),
      async (limit, steps) => {
        const known = new Map<ThreadId, UnloadFacts>();
        const factsOf = (id: ThreadId) => known.get(id) ?? idle;
        const unloads: { readonly id: ThreadId; readonly end: (gone: boolean) => void }[] = [];
        const states = new Map<ThreadId, string>();
        const slots = new Map<ThreadId, Slot>();
        let allowPinned = false;
        const residency: Residency = new Residency({
          limit,
          facts: factsOf,
          unload: (id) => {
            expect(states.get(id)).toBe("resident");
            expect(mayUnload(factsOf(id))).toBe(true);
            if (factsOf(id).pinPendingMail && factsOf(id).queueOnlyMailPending)
              expect(allowPinned).toBe(true);
            states.set(id, "unloading");
            const { promise, resolve } = Promise.withResolvers<boolean>();
            unloads.push({ id, end: resolve });
            return promise;
          },
          onRoom: () => expect(residency.count).toBeGreaterThanOrEqual(0),
        });
        const gone = (id: ThreadId) => {
          states.delete(id);
          slots.delete(id);
        };
        for (const { verb, at, need, pinned, facts: changed } of steps) {
          const id = IDS[at]!;
          const state = states.get(id);
          const before = residency.count;
          if (verb === "facts") known.set(id, changed);
          else if (verb === "reserve" && state === undefined) {
            const slot = residency.reserve(id);
            expect(slot === null).toBe(before >= limit);
            if (slot !== null) {
              slots.set(id, slot);
              states.set(id, "pending");
            }
          } else if (verb === "commit" && state === "pending") {
            slots.get(id)!.commit();
            states.set(id, "resident");
          } else if (verb === "drop" && state !== undefined) {
            slots.get(id)![Symbol.dispose]();
            slots.get(id)![Symbol.dispose]();
            if (state === "pending") gone(id);
          } else if (verb === "touch") slots.get(id)?.touch();
          else if (verb === "lend" && state === "resident") {
            residency.lend(id);
            states.set(id, "lent");
          } else if (verb === "reclaim" && state === "lent") {
            residency.reclaim(id);
            states.set(id, "resident");
          } else if (verb === "release") {
            residency.release(id);
            residency.release(id);
            gone(id);
          } else if (verb === "room") {
            allowPinned = pinned;
            residency.makeRoom(need, pinned);
          } else if (verb === "unloaded" || verb === "failed") {
            const next = unloads.shift();
            if (next !== undefined) {
              const same = slots.get(next.id)?.state === "unloading";
              if (same) states.set(next.id, "resident");
              next.end(verb === "unloaded");
              for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
              if (same && verb === "unloaded") gone(next.id);
            }
          }
          const counted = [...states.values()].filter((one) => one !== "lent").length;
          expect(residency.count).toBe(counted);
          expect(residency.loaded).toBe(states.size);
          expect(residency.unloading).toBe([...states.values()].filter((one) => one === "unloading").length);
          if (verb !== "reclaim" && residency.count > before)
            expect(residency.count).toBeLessThanOrEqual(limit);
          expect(residency.room).toBe(Math.max(0, limit - residency.count));
        }
        for (const id of IDS) residency.release(id);
        expect([residency.count, residency.loaded, residency.unloading]).toEqual([0, 0, 0]);
      },
    ),
  );
});
