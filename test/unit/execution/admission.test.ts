import { describe, expect, test } from "vitest";
import { Admission, type Applicant } from "../../../src/execution/admission.ts";
import { type Permit, PermitPool } from "../../../src/execution/permits.ts";
import type { AgentPath } from "../../../src/protocol/agent-path.ts";
import type { ThreadId } from "../../../src/protocol/ids.ts";

type Grant = Disposable & { readonly permit: Permit | null };

/** An admission whose reservations are permits; `refuse` names those that find no slot. */
function roomOf(...limits: number[]) {
  const refuse = new Set<string>();
  const runtime = new PermitPool(null);
  const pools = limits.map((limit) => new PermitPool(limit, runtime));
  const tree = (threadId: string): number => Number(threadId.slice("thread_".length, "thread_".length + 1));
  const admission = new Admission<Grant>(({ threadId, needsPermit }) => {
    if (refuse.has(threadId)) return null;
    const permit = needsPermit ? pools[tree(threadId)]!.take() : null;
    if (needsPermit && permit === null) return null;
    return { permit, [Symbol.dispose]: () => permit?.[Symbol.dispose]() };
  });
  const lanes = pools.map((pool, at) => admission.lane(`thread_${at}`, pool));
  const admitted: string[] = [];
  const grants = new Map<string, Grant>();
  /** `0/a/b` is `/root/a/b` of tree 0. */
  const ask = (place: string, overrides: Partial<Applicant> = {}) =>
    lanes[Number(place[0])]!.request(
      {
        threadId: thread(place),
        path: `/root${place.slice(1)}` as AgentPath,
        kind: "new",
        needsPermit: true,
        ...overrides,
      },
      (grant) => {
        admitted.push(place);
        grants.set(place, grant);
      },
    );
  const end = (place: string) => {
    grants.get(place)![Symbol.dispose]();
    admission.pump();
  };
  return { admission, runtime, pools, lane: lanes[0]!, lanes, admitted, ask, end, refuse };
}

const thread = (place: string): ThreadId => `thread_${place}`;

test("a free permit is taken at once, without the queue", () => {
  const { ask, admitted, lane } = roomOf(1);
  expect(ask("0/a")).toBe("admitted");
  expect(admitted).toEqual(["0/a"]);
  expect(lane.size).toBe(0);
});

test("whoever finds none waits, with a position, and goes when one is given back", () => {
  const { ask, end, admitted, lane } = roomOf(1);
  ask("0/a");
  expect(ask("0/b")).toBe("waiting");
  expect(ask("0/c")).toBe("waiting");
  expect([lane.position(thread("0/b")), lane.position(thread("0/c")), lane.position(thread("0/a"))]).toEqual([
    1,
    2,
    null,
  ]);
  end("0/a");
  expect(admitted).toEqual(["0/a", "0/b"]);
  expect(lane.position(thread("0/c"))).toBe(1);
});

test("U-15 a root takes no permit and does not wait behind those who do", () => {
  const { ask, admitted, pools } = roomOf(1);
  ask("0/a");
  ask("0/b");
  expect(ask("0", { needsPermit: false })).toBe("admitted");
  expect(admitted).toEqual(["0/a", "0"]);
  expect(pools[0]!.inUse).toBe(1);
});

test("EXE-3 a wide branch does not starve another", () => {
  const { ask, end, admitted } = roomOf(1);
  ask("0/a/1");
  for (const place of ["0/a/2", "0/a/3", "0/a/4", "0/b/1", "0/b/2", "0/c"]) ask(place);
  for (let at = 0; at < 6; at += 1) end(admitted[at]!);
  expect(admitted.slice(1)).toEqual(["0/a/2", "0/b/1", "0/c", "0/a/3", "0/b/2", "0/a/4"]);
});

test("EXE-3 whoever comes back from a wait goes before all that are new, in its order", () => {
  const { ask, end, admitted, lane } = roomOf(1);
  ask("0/a");
  for (const place of ["0/b", "0/c"]) ask(place);
  for (const place of ["0/d", "0/e"]) ask(place, { kind: "return" });
  expect(lane.position(thread("0/e"))).toBe(2);
  expect(lane.position(thread("0/b"))).toBe(3);
  for (let at = 0; at < 4; at += 1) end(admitted[at]!);
  expect(admitted).toEqual(["0/a", "0/d", "0/e", "0/b", "0/c"]);
});

test("EXE-3 trees take turns at permits of the runtime, returns of any tree first", () => {
  const admitted: string[] = [];
  const runtime = new PermitPool(1);
  const pools = [new PermitPool(null, runtime), new PermitPool(null, runtime)] as const;
  const admission = new Admission<Permit>(({ threadId }) =>
    pools[threadId.startsWith("thread_0") ? 0 : 1].take(),
  );
  let last: Permit | undefined;
  const ask = (tree: 0 | 1, name: string, kind: Applicant["kind"]) =>
    admission
      .lane(`thread_${tree}`, pools[tree])
      .request(
        { threadId: `thread_${tree}${name}`, path: `/root/${name}`, kind, needsPermit: true },
        (permit) => {
          admitted.push(`${tree}${name}`);
          last = permit;
        },
      );
  ask(0, "a", "new");
  for (const name of ["b", "c", "d"]) ask(0, name, "new");
  for (const name of ["e", "f"]) ask(1, name, "new");
  ask(1, "g", "return");
  for (let at = 0; at < 6; at += 1) {
    last![Symbol.dispose]();
    admission.pump();
  }
  expect(admitted).toEqual(["0a", "1g", "0b", "1e", "0c", "1f", "0d"]);
});

describe("whoever cannot go now", () => {
  test("is passed over by those who can, and goes when it can", () => {
    const { ask, end, admitted, refuse, admission } = roomOf(1);
    ask("0/a");
    refuse.add(thread("0/b"));
    ask("0/b");
    ask("0/c");
    end("0/a");
    expect(admitted).toEqual(["0/a", "0/c"]);
    refuse.clear();
    admission.pump();
    expect(admitted).toEqual(["0/a", "0/c"]);
    end("0/c");
    expect(admitted).toEqual(["0/a", "0/c", "0/b"]);
  });

  test("is passed over though it comes back from a wait: it may wait for the other's slot", () => {
    const { ask, end, admitted, refuse } = roomOf(1);
    ask("0/a");
    refuse.add(thread("0/r"));
    ask("0/r", { kind: "return" });
    ask("0/c");
    end("0/a");
    expect(admitted).toEqual(["0/a", "0/c"]);
  });

  test("keeps its place before newcomers when it is asked again", () => {
    const { ask, admitted, refuse } = roomOf(2);
    refuse.add(thread("0/a"));
    ask("0/a");
    refuse.clear();
    ask("0/b");
    expect(admitted).toEqual(["0/a", "0/b"]);
  });
});

describe("cancelling", () => {
  test("takes one out for good, whatever it waits for", () => {
    const { ask, end, admitted, lane, refuse } = roomOf(1);
    ask("0/a");
    ask("0/b");
    ask("0/r", { kind: "return" });
    refuse.add(thread("0"));
    ask("0", { needsPermit: false });
    expect(lane.size).toBe(3);
    for (const place of ["0/b", "0/r", "0"]) expect(lane.cancel(thread(place))).toBe(true);
    expect(lane.cancel(thread("0/b"))).toBe(false);
    expect(lane.size).toBe(0);
    end("0/a");
    expect(admitted).toEqual(["0/a"]);
  });

  test("lets the same thread wait again", () => {
    const { ask, end, admitted, lane } = roomOf(1);
    ask("0/a");
    ask("0/b");
    lane.cancel(thread("0/b"));
    ask("0/b");
    end("0/a");
    expect(admitted).toEqual(["0/a", "0/b"]);
  });

  test("a closed tree takes nothing of others any more", () => {
    const { admission, ask, end, admitted, lanes } = roomOf(1, 1);
    ask("0/a");
    ask("0/b");
    ask("0/r", { kind: "return" });
    admission.close("thread_0");
    expect(lanes[0]!.size).toBe(0);
    end("0/a");
    expect(admitted).toEqual(["0/a"]);
    expect(ask("1/x")).toBe("admitted");
  });
});

test("a thread that waits cannot wait twice", () => {
  const { ask } = roomOf(0);
  ask("0/a");
  expect(() => ask("0/a")).toThrow("one run at a time");
});

test("a callback that throws gives its grant back, and others still go", () => {
  const { admission, pools, lane, ask, end, admitted } = roomOf(1);
  ask("0/a");
  const failing = { threadId: thread("0/b"), path: "/root/b", kind: "new", needsPermit: true } as const;
  lane.request(failing, () => {
    throw new Error("no start");
  });
  ask("0/c");
  expect(() => end("0/a")).toThrow("no start");
  expect(admitted).toEqual(["0/a", "0/c"]);
  end("0/c");
  expect(() =>
    lane.request(failing, () => {
      throw new Error("no start");
    }),
  ).toThrow("no start");
  expect([pools[0]!.inUse, lane.size]).toEqual([0, 0]);
  admission.pump();
});

test("a callback may ask, cancel and give back: it takes effect before the pump ends", () => {
  const { lane, ask, end, admitted, admission } = roomOf(1);
  ask("0/a");
  lane.request({ threadId: thread("0/b"), path: "/root/b", kind: "new", needsPermit: true }, (grant) => {
    ask("0/d");
    lane.cancel(thread("0/c"));
    grant[Symbol.dispose]();
    admission.pump();
  });
  ask("0/c");
  end("0/a");
  expect(admitted).toEqual(["0/a", "0/d"]);
});

test("many may wait and leave one after the other", () => {
  const { ask, end, admitted, lane } = roomOf(1);
  ask("0/a");
  for (let at = 0; at < 2_000; at += 1) ask(`0/${at % 7}/${at}`);
  for (let at = 0; at < 2_000; at += 1) end(admitted[at]!);
  expect(admitted).toHaveLength(2_001);
  expect(lane.size).toBe(0);
});
