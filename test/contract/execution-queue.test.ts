/** EXE-2: what the bound of the queue costs those who are nowhere near it. */
import { expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import type { Store } from "../../src/store/port.ts";

/** Counts how often the queue is gone through. */
function counting(inner: Store): { readonly store: Store; readonly walks: () => number } {
  let walks = 0;
  const store: Store = {
    ...inner,
    commit: (lease, plan) =>
      inner.commit(lease, (tx) =>
        plan({
          ...tx,
          triggered: (tree) => {
            walks += 1;
            return tx.triggered(tree);
          },
        }),
      ),
  };
  return { store, walks: () => walks };
}

test("EXE-2 a spawn does not go through the queue while all agents of the tree would fit in it", async () => {
  const { store, walks } = counting(createMemoryStore());
  await using runtime = await createRuntime({
    store,
    providers: { scripted: scripted({ "*": [repeat(together(gate("never"), say("ok")))] }) },
  });
  const tree = await runtime.openTree({ limits: { queue: 12, running: 1, spawnsPerMinute: null } });
  const before = walks();
  for (let at = 0; at < 12; at += 1) await tree.root.spawn(`a${at}`, "go");
  expect(walks()).toBe(before);
  await tree.root.spawn("a12", "go");
  expect(walks()).toBeGreaterThan(before);
  await expect(tree.root.spawn("a13", "go")).rejects.toMatchObject({ code: "QUEUE_FULL" });
});
