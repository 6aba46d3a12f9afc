/** How a runtime holds its trees: opened once, with one rhythm of leases for all (REC-2, REC-6). */
import { describe, expect, test } from "vitest";
import type { LimitsInput } from "../../../src/protocol/limits.ts";
import { gate, say, together } from "../../../src/providers/scripted/script.ts";
import type { TreeOptions } from "../../../src/runtime/options.ts";
import { harness, STORES } from "../../support/harness.ts";

const SHORT: LimitsInput = { leaseMs: 1_000, leaseRenewMs: 200, leaseGiveUpMs: 600, pollMs: 50 };

describe.each(STORES)("trees of a runtime on %s", (store) => {
  test("REC-2 a tree that is opened twice at once is opened once", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(gate("root"), say("ok")), say("again")] },
    });
    const { id } = h.tree;
    await h.tree.root.send("go");
    await h.provider.gates.arrived("root");
    await h.tree.close();
    const [first, second] = await Promise.all([h.runtime.openTree({ id }), h.runtime.openTree({ id })]);
    expect(second).toBe(first);
    expect(first.owned).toBe(true);
    expect((await first.log(0, 500)).filter(({ type }) => type === "tree.claimed")).toHaveLength(2);
    await h.clock.advance(60_000);
    expect(first.owned).toBe(true);
  });

  test("REC-2 a runtime that is closed while it opens a tree gives that one back too", async () => {
    await using h = await harness({ store });
    const { id } = h.tree;
    await h.tree.close();
    const opening = h.runtime.openTree({ id });
    await h.runtime.close();
    expect((await opening).owned).toBe(false);
    expect(await h.store.read((view) => view.lease(id)?.live)).toBe(false);
  });

  test("REC-6 all trees of a runtime are renewed in its rhythm", async () => {
    await using h = await harness({ store, runtime: { limits: SHORT } });
    const other = await h.runtime.openTree();
    for (let step = 0; step < 50; step += 1) await h.clock.advance(100);
    expect([h.tree.owned, other.owned]).toEqual([true, true]);
    const lease = await h.store.read((view) => view.lease(other.id)!);
    expect(lease.expiresAt - h.clock.now()).toBeLessThanOrEqual(1_000);
  });

  test("REC-6 a tree has no rhythm of its own, and one that cannot keep a lease is refused", async () => {
    await using h = await harness({ store });
    for (const [name, value] of Object.entries({ ...SHORT, residents: 1, runningTotal: 1 })) {
      const limits = { [name]: value } as NonNullable<TreeOptions["limits"]>;
      await expect(h.runtime.openTree({ limits })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    }
    for (const limits of [{ leaseRenewMs: 6_000 }, { leaseGiveUpMs: 10_000 }]) {
      await expect(h.newRuntime({ limits })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    }
  });
});
