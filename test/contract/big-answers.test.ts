/** What one commit of a very long answer may cost: no tick of it may be so long that the lease is lost meanwhile (REC-6). */
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { call, repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { Store, StoreTx } from "../../src/store/port.ts";
import { createSetClock } from "../../src/testing/store-harness.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";
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

const BYTES = 200_000;
const KEYS = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`key${at}`, at]));
const line = `(${BYTES} bytes, not shown: answer with text, or the name of a file)`;

/** What a tool answers, what its agent is shown, and whether all of it is written, once. */
const ANSWERS = [
  ["bytes", new Uint8Array(BYTES), line, false],
  ["a buffer", Buffer.alloc(BYTES), line, false],
  ["floats", new Float64Array(BYTES / 8), line, false],
  ["raw bytes", new ArrayBuffer(BYTES), line, false],
  ["a blob", new Blob([new Uint8Array(BYTES)]), line, false],
  ["bytes within", { path: "a.png", data: [new Uint8Array(BYTES)] }, { path: "a.png", data: [line] }, false],
  ["very many keys", KEYS, { shortened: true, bytes: JSON.stringify(KEYS).length }, true],
] as const;

test.for(STORES.flatMap((store) => ANSWERS.map((answer) => [store, ...answer] as const)))(
  "REC-6 MBX-9 [%s] %s that a tool answers: written as JSON at most once, and read back by nobody",
  async ([store, , answer, shown, whole]) => {
    const lookAt = defineTool({ name: "look_at", input: z.strictObject({}), run: () => answer });
    await using h = await harness({
      store,
      runtime: { tools: [lookAt] },
      scripts: { "/root": [call("look_at"), repeat(say("seen"))] },
    });
    const [written, parsed] = [vi.spyOn(JSON, "stringify"), vi.spyOn(JSON, "parse")];
    try {
      expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "seen" });
      const given = written.mock.results.filter((_, at) => written.mock.calls[at]![0] === answer);
      expect(given.map(({ value }) => (value as string).length > BYTES)).toEqual([whole]);
      expect(Math.max(0, ...parsed.mock.calls.map(([text]) => text.length))).toBeLessThan(BYTES);
    } finally {
      written.mockRestore();
      parsed.mockRestore();
    }
    expect(
      (await look(h).outputs("/root", "look_at")).map(({ output, isError }) => [output, isError]),
    ).toMatchObject([[shown, false]]);
  },
);
