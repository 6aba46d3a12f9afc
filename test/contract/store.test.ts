/** The store's part of the contract, and the conformance suite, on every store that is shipped. */
import { describe, expect, test } from "vitest";
import type { TreeId } from "../../src/protocol/ids.ts";
import { GENERATION_WEIGHT } from "../../src/store/sqlite/record-cache.ts";
import { sampleId } from "../../src/testing/store-records.ts";
import { runStoreCase, storeConformance, withWorld } from "../../src/testing/store-conformance.ts";
import { storeNames, stores } from "../support/stores.ts";

const shared = ["memory", "sqlite"] as const;

describe.for(shared)("the store", (name) => {
  storeConformance({ name, open: stores[name], test });
});

test.for(storeNames)("MBX-2 [%s] mail is read in the order of commits, without a gap", (name) =>
  runStoreCase("numbers a recipient's mail without a gap, in the order of commits", stores[name]),
);

test("RES-7 [sqlite] large bodies that were stored or read do not stay in memory", () =>
  withWorld(stores.sqlite, async ({ store, lease, tree }) => {
    const text = "x".repeat(1_000_000);
    const artifacts = Array.from({ length: 20 }, (_, at) => artifact(tree, at, text));
    for (const one of artifacts) await store.commit(lease, (tx) => tx.putArtifact(one));
    // A record that is held is answered as it is; the latest are asked for first, because reading pushes others out.
    const held = await store.read((view) =>
      artifacts.toReversed().filter((one) => view.artifact(one.id) === one),
    );
    expect(held.length * text.length).toBeLessThanOrEqual(2 * GENERATION_WEIGHT);
    const read = await store.read((view) => artifacts.map(({ id }) => view.artifact(id)!));
    const kept = await store.read((view) =>
      artifacts.toReversed().filter(({ id }, at) => view.artifact(id) === read.at(-1 - at)),
    );
    expect(kept.length * text.length).toBeLessThanOrEqual(2 * GENERATION_WEIGHT);
    expect(read.at(-1)).toEqual(artifacts.at(-1));
  }));

function artifact(treeId: TreeId, at: number, text: string) {
  const id = sampleId("art", at);
  return { id, treeId, bytes: text.length, digest: "digest", text, provider: null, createdAt: at };
}
