import { describe, expect, test } from "vitest";
import type { UnloadFacts } from "../../../src/residency/may-unload.ts";
import { Residency } from "../../../src/residency/slots.ts";
import type { ThreadId } from "../../../src/protocol/ids.ts";

const idle: UnloadFacts = {
  lastRunSettled: true,
  inParkableWait: false,
  reserved: false,
  triggerMailPending: false,
  queueOnlyMailPending: false,
  requestPending: false,
  pinPendingMail: false,
};
const busy = { ...idle, lastRunSettled: false };
const withMail = { ...idle, queueOnlyMailPending: true };
const pinned = { ...withMail, pinPendingMail: true };

const thread = (name: string): ThreadId => `thread_${name}`;

/** Agents are idle unless `facts` says otherwise; unloads end when they are told to. */
function homeOf(limit: number) {
  const facts = new Map<string, UnloadFacts>();
  const unloads = new Map<string, { resolve(gone: boolean): void; reject(error: Error): void }>();
  const asked: string[] = [];
  const released: string[] = [];
  let rooms = 0;
  const residency = new Residency({
    limit,
    facts: (threadId) => facts.get(threadId.slice("thread_".length)) ?? idle,
    unload: (threadId) => {
      const name = threadId.slice("thread_".length);
      asked.push(name);
      const { promise, resolve, reject } = Promise.withResolvers<boolean>();
      unloads.set(name, { resolve, reject });
      return promise;
    },
    onRoom: () => {
      rooms += 1;
    },
    onReleased: (threadId) => released.push(threadId.slice("thread_".length)),
  });
  const load = (...names: string[]) => {
    for (const name of names) residency.reserve(thread(name))!.commit();
  };
  const finish = async (name: string, gone: boolean | Error) => {
    if (gone instanceof Error) unloads.get(name)!.reject(gone);
    else unloads.get(name)!.resolve(gone);
    for (let at = 0; at < 5; at += 1) await Promise.resolve();
  };
  const victims = (need: number, overPins = false) =>
    residency.victims(need, overPins).map(({ threadId }) => threadId.slice("thread_".length));
  return { residency, facts, asked, released, load, finish, victims, rooms: () => rooms };
}

test("U-24 a reservation that is dropped gives its slot back", () => {
  const { residency, rooms } = homeOf(1);
  {
    using slot = residency.reserve(thread("a"))!;
    expect(slot.state).toBe("pending");
    expect(residency.reserve(thread("b"))).toBeNull();
  }
  expect([residency.count, rooms()]).toEqual([0, 1]);
  expect(residency.reserve(thread("b"))).not.toBeNull();
});

test("RES-7 the end of each slot is told once, whatever ended it", async () => {
  const { residency, released, load, finish } = homeOf(3);
  residency.reserve(thread("a"))![Symbol.dispose]();
  load("b", "c", "d");
  residency.release(thread("b"));
  residency.release(thread("b"));
  residency.makeRoom(2);
  await finish("c", true);
  expect(released).toEqual(["a", "b", "c"]);
});

test("U-25 a committed slot is held until it is released", () => {
  const { residency } = homeOf(1);
  {
    using slot = residency.reserve(thread("a"))!;
    slot.commit();
  }
  expect(residency.reserve(thread("b"))).toBeNull();
  residency.release(thread("a"));
  expect(residency.reserve(thread("b"))).not.toBeNull();
});

test("U-26 releasing an unknown thread changes nothing", () => {
  const { residency, load, rooms } = homeOf(1);
  load("a");
  residency.release(thread("x"));
  expect([residency.count, rooms()]).toEqual([1, 0]);
  expect(residency.reserve(thread("b"))).toBeNull();
});

test("U-27 releasing twice counts once", () => {
  const { residency, load } = homeOf(2);
  load("a", "b");
  residency.release(thread("a"));
  residency.release(thread("a"));
  expect([residency.count, residency.room]).toEqual([1, 1]);
});

test("U-17 a thread that was removed holds no slot", async () => {
  const { residency, load, finish } = homeOf(1);
  load("a");
  residency.makeRoom(1);
  // It is closed while its unload is under way.
  residency.release(thread("a"));
  expect(residency.reserve(thread("b"))).not.toBeNull();
  await finish("a", true);
  expect([residency.count, residency.unloading]).toEqual([1, 0]);
});

test.for([true, false])(
  "an unload that ends (%s) after its thread was released touches no later slot of it",
  async (gone) => {
    const { residency, load, finish } = homeOf(1);
    load("a");
    residency.makeRoom(1);
    residency.release(thread("a"));
    load("a");
    await finish("a", gone);
    expect([residency.count, residency.unloading, residency.slotOf(thread("a"))?.state]).toEqual([
      1,
      0,
      "resident",
    ]);
  },
);

test("U-19 each scope has its own limit", () => {
  const [one, other] = [homeOf(1), homeOf(1)];
  one.load("a");
  expect(one.residency.reserve(thread("b"))).toBeNull();
  expect(other.residency.reserve(thread("b"))).not.toBeNull();
});

test("a root that is not counted takes no slot and is nobody's victim", () => {
  const { residency, load, victims } = homeOf(1);
  residency.reserve(thread("root"), false)!.commit();
  load("a");
  expect([residency.count, residency.loaded]).toEqual([1, 2]);
  expect(victims(5)).toEqual(["a"]);
});

test("a pending load counts, and a second load of the same thread is none", () => {
  const { residency } = homeOf(2);
  residency.reserve(thread("a"));
  expect(residency.reserve(thread("a"))).toBeNull();
  expect([residency.count, residency.room]).toEqual([1, 1]);
});

test("who is loaded keeps its slot and is touched", () => {
  const { residency, load, victims } = homeOf(2);
  load("a", "b");
  expect(residency.reserve(thread("a"))).toBe(residency.slotOf(thread("a")));
  expect([residency.count, victims(1)]).toEqual([2, ["b"]]);
});

describe("who goes first", () => {
  test("the least recently used", () => {
    const { residency, load, victims } = homeOf(3);
    load("a", "b", "c");
    residency.slotOf(thread("a"))!.touch();
    expect(victims(2)).toEqual(["b", "c"]);
  });

  test("RES-3 those without mail, and with mail only when no other can", () => {
    const { load, facts, victims } = homeOf(4);
    load("a", "b", "c", "d");
    facts.set("a", withMail).set("b", withMail).set("c", busy);
    expect(victims(1)).toEqual(["d"]);
    expect(victims(3)).toEqual(["d", "a", "b"]);
  });

  test("RES-3 those pinned by their mail only where that is allowed, and last", () => {
    const { load, facts, victims } = homeOf(3);
    load("a", "b", "c");
    facts.set("a", pinned).set("b", withMail);
    expect(victims(3)).toEqual(["c", "b"]);
    expect(victims(3, true)).toEqual(["c", "b", "a"]);
  });

  test("nobody who is busy, pending or lent", () => {
    const { residency, load, facts, victims } = homeOf(3);
    load("a", "b");
    residency.reserve(thread("c"));
    facts.set("a", busy);
    residency.lend(thread("b"));
    expect(victims(3)).toEqual([]);
  });
});

describe("making room", () => {
  test("unloads no more than is missing, and tells when a slot is free", async () => {
    const { residency, load, asked, finish, rooms } = homeOf(3);
    load("a", "b");
    expect(residency.makeRoom(2)).toBe(2);
    expect(residency.makeRoom(2)).toBe(2);
    expect(asked).toEqual(["a"]);
    // It counts until it is gone.
    expect([residency.count, residency.unloading]).toEqual([2, 1]);
    expect(residency.reserve(thread("a"))).toBeNull();
    await finish("a", true);
    expect([residency.count, residency.unloading, rooms(), residency.has(thread("a"))]).toEqual([
      1,
      0,
      1,
      false,
    ]);
  });

  test.for([
    ["answers no", false],
    ["fails", new Error("disk full")],
  ] as const)("a flush that %s keeps the agent, touches it, and the next one is asked", async ([, how]) => {
    const { residency, load, asked, finish, facts } = homeOf(2);
    load("a", "b");
    residency.makeRoom(1);
    await finish("a", how);
    expect(asked).toEqual(["a", "b"]);
    expect(residency.slotOf(thread("a"))?.state).toBe("resident");
    await finish("b", how);
    // Nobody is left to ask: nothing goes on by itself.
    expect([asked.length, residency.unloading, residency.count]).toEqual([2, 0, 2]);
    expect(residency.makeRoom(1)).toBe(0);
    expect(asked).toEqual(["a", "b"]);
    // Not before something is different.
    const again: readonly (readonly [string, () => void])[] = [
      ["a", () => residency.slotOf(thread("a"))!.touch()],
      ["b", () => facts.set("b", withMail)],
      ["a", () => residency.askAgain(thread("a"))],
    ];
    for (const [name, change] of again) {
      change();
      expect(residency.makeRoom(1)).toBe(1);
      expect(asked.at(-1)).toBe(name);
      await finish(name, how);
    }
    expect(asked).toHaveLength(5);
  });

  test("answers what it cannot do", () => {
    const { residency, load, facts } = homeOf(2);
    load("a", "b");
    facts.set("a", busy);
    expect(residency.makeRoom(2)).toBe(1);
  });
});

describe("a slot that is lent", () => {
  test("is somebody else's, and counts again when the wait ends, even over the limit", () => {
    const { residency, load, rooms } = homeOf(1);
    load("a");
    residency.lend(thread("a"));
    expect([residency.count, residency.loaded, rooms()]).toEqual([0, 1, 1]);
    load("b");
    residency.reclaim(thread("a"));
    expect([residency.count, residency.room]).toEqual([2, 0]);
    residency.release(thread("b"));
    // Still full: no load is admitted while the count is over or at the limit.
    expect(residency.reserve(thread("c"))).toBeNull();
    residency.release(thread("a"));
    expect(residency.reserve(thread("c"))).not.toBeNull();
  });

  test("gives nothing back a second time when it is released", () => {
    const { residency, load } = homeOf(1);
    load("a");
    residency.lend(thread("a"));
    residency.release(thread("a"));
    expect([residency.count, residency.loaded]).toEqual([0, 0]);
  });
});

test("misuse is a loud bug", () => {
  const { residency, load } = homeOf(2);
  load("a");
  expect(() => residency.slotOf(thread("a"))!.commit()).toThrow("cannot be committed");
  expect(() => residency.reclaim(thread("a"))).toThrow("cannot be reclaimed");
  expect(() => residency.lend(thread("x"))).toThrow("unknown cannot be lent");
});
