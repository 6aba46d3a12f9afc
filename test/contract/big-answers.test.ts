/** What one commit of a very long answer may cost: no tick of it may be so long that the lease is lost meanwhile (REC-6). */
import { expect, test } from "vitest";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { Store, StoreTx } from "../../src/store/port.ts";
import { createSetClock } from "../../src/testing/store-harness.ts";
import { stores } from "../support/stores.ts";

const ANSWER = "a long answer ".repeat(50_000);

/** A store that notes the characters of the records of works which commits read, where they are large. */
function watched(store: Store, read: number[]): Store {
  const noting = (tx: StoreTx): StoreTx =>
    new Proxy(tx, {
      get(target, key: keyof StoreTx) {
        const value: unknown = target[key];
        if (key === "work")
          return (id: Parameters<StoreTx["work"]>[0]) => {
            const work = target.work(id);
            const { length } = JSON.stringify(work ?? null);
            if (length > ANSWER.length / 2) read.push(length);
            return work;
          };
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  return { ...store, commit: (lease, plan) => store.commit(lease, (tx) => plan(noting(tx))) };
}

test.for(["memory", "sqlite"] as const)(
  "REC-6 [%s] the commit of a long answer reads nothing of it back",
  async (name) => {
    const subject = await stores[name](createSetClock());
    const read: number[] = [];
    await using runtime = await createRuntime({
      store: watched(subject.store, read),
      providers: { scripted: scripted({ "*": [repeat(say(ANSWER))] }) },
    });
    const tree = await runtime.openTree({});
    const { work } = await tree.root.spawn("a", "go");
    expect((await work.outcome()).text).toBe(ANSWER);
    await tree.idle();
    expect(read).toEqual([]);
    await runtime.close();
    await subject.cleanup();
  },
);
