/** What a runtime may do with trees that it has lost, is just opening, or only visits (REC-2, REC-6, HDR-5). */
import { describe, expect, test } from "vitest";
import { gate, repeat, say } from "../../src/providers/scripted/script.ts";
import type { WriteKind } from "../../src/testing/faulty-store.ts";
import { sampleMail } from "../../src/testing/store-records.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const LIVING = { provenDead: () => false };
const SECOND = { host: "test", bootId: "boot", pid: 77, startedAt: "77" } as const;

/** Whether it is settled by now. */
async function isOver(h: Harness, promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  const end = (): void => void (over = true);
  void promise.then(end, end);
  await h.clock.settle();
  return over;
}

/** The first write of a kind hangs until it is resumed. */
function hangsOnce(h: Harness, kind: WriteKind): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = 1;
  h.onWrite = (_write, asked) => {
    if (asked !== kind || (left -= 1) < 0) return null;
    resolve();
    return { kind: "hang" };
  };
  return promise;
}

describe.each(STORES)("a tree that is not this runtime's on %s", (store) => {
  const open = (more: HarnessOptions = {}): Promise<Harness> =>
    harness({ store, scripts: { "*": [repeat(say("done"))] }, runtime: LIVING, ...more });

  /** Another process has the tree, and the first has noticed it. */
  async function lost(h: Harness) {
    const first = { tree: h.tree, runtime: h.runtime };
    const second = await h.newRuntime({ identity: SECOND, provenDead: () => true });
    await second.openTree({ id: h.tree.id });
    await expect(first.tree.root.tell("late")).rejects.toMatchObject({ code: "FENCED" });
    expect(first.tree.owned).toBe(false);
    return { ...first, second };
  }

  test("REC-2 REC-6 a command on a thread of a tree that was lost is told whose it is, at once", async () => {
    await using h = await open();
    const { id } = h.tree;
    const { runtime, second } = await lost(h);
    let claims = 0;
    h.onWrite = (_write, kind) => (kind === "claim" && (claims += 1) > 4 ? { kind: "error" } : null);
    const { threads } = runtime;
    const owned = { code: "NOT_OWNER", details: { owner: { pid: SECOND.pid } } };
    await expect(threads.rename(id, "x")).rejects.toMatchObject(owned);
    await expect(threads.pin(id, "decisions", "x")).rejects.toMatchObject(owned);
    await expect(threads.select(id, null)).rejects.toMatchObject(owned);
    await expect(threads.discardDraft(id)).rejects.toMatchObject(owned);
    expect(claims).toBe(4);
    h.onWrite = () => null;
    await second.close();
    expect(await threads.rename(id, "mine again")).toMatchObject({ title: "mine again" });
  });

  test("REC-2 HDR-5 nobody acts in a tree that was lost, and in one that is being opened when it is recovered", async () => {
    await using h = await open({ tree: { hostDriven: true } });
    const token = await h.tree.root.token();
    const { id } = h.tree;
    await h.tree.close();
    const hung = hangsOnce(h, "commit");
    const opening = h.runtime.openTree({ id });
    await hung;
    const acting = h.runtime.actAs(token);
    expect(await isOver(h, acting)).toBe(false);
    h.faulty.resume();
    h.tree = await opening;
    (await acting).close();
    const { runtime, second } = await lost(h);
    await expect(runtime.actAs(token)).rejects.toMatchObject({ code: "NOT_OWNER" });
    await second.close();
  });

  test("REC-2 REC-3 a runtime that is closed has ended its commits on trees of nobody, and left no lease", async () => {
    await using h = await open();
    const { id } = h.tree;
    await h.tree.close();
    const hung = hangsOnce(h, "commit");
    const named = h.runtime.threads.rename(id, "named");
    const next = h.runtime.threads.rename(id, "after");
    await hung;
    const closing = h.runtime.close();
    expect(await isOver(h, closing)).toBe(false);
    h.faulty.resume();
    await Promise.all([
      closing,
      expect(named).resolves.toMatchObject({ title: "named" }),
      expect(next).rejects.toMatchObject({ code: "RUNTIME_CLOSED" }),
    ]);
    expect(await h.store.read((view) => view.lease(id)?.live)).toBe(false);
  });
});

test("REC-1 REC-6 a lease that cannot be read costs its own tree, and no other one", async () => {
  await using h = await harness({
    store: "sqlite",
    scripts: { "*": [gate("work"), repeat(say("done"))] },
    runtime: LIVING,
  });
  const lostTrees: string[] = [];
  await h.runtime.close();
  h.runtime = await h.newRuntime({ onTreeLost: (id) => void lostTrees.push(id) });
  const trees = [await h.runtime.openTree({}), await h.runtime.openTree({}), await h.runtime.openTree({})];
  const [broken, ...whole] = trees.map(({ id }) => id);
  h.edit("UPDATE leases SET body = substr(body, 1, 9) WHERE id = ?", broken!);
  await h.clock.advance(30_000);
  await look(h).until("it is noticed", () => lostTrees.length > 0);
  expect(lostTrees).toEqual([broken]);
  expect(trees.map(({ owned }) => owned)).toEqual([false, true, true]);
  h.cut();
  await h.store.send(trees.map(({ id }, index) => sampleMail(id, id, index, { trigger: true })));
  h.runtime = await h.newRuntime({ provenDead: () => true });
  const opened = await h.runtime.openPending();
  expect(opened.map(({ id }) => id)).toEqual(whole);
});
