/** A checker that first looks at a tree with a long history. */
import { expect, test } from "vitest";
import { invariants } from "../../../src/testing/invariants.ts";
import { repeat, say } from "../../../src/providers/scripted/script.ts";
import { harness } from "../../support/harness.ts";

test("a long log is read to its end", async () => {
  await using h = await harness({ scripts: { "/root": [repeat(say("ok"))] } });
  await h.ask("first");
  await h.tree.control.tree.transact((tx) => {
    for (let told = 0; told < 11_000; told += 1) tx.emit("tree.claimed", null);
  });
  await h.ask("last");
  const found = await h.store.read((view) => invariants(h.tree.id).check(view));
  expect(found).toEqual([]);
});
