import { describe, expect, test } from "vitest";
import { say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";

describe.each(STORES)("the walk on %s", (store) => {
  test("a root answers its user", async () => {
    await using h = await harness({ store, scripts: { "/root": [say("hello")] } });
    const outcome = await h.ask("hi");
    expect(outcome).toMatchObject({ ending: "completed", text: "hello", shared: false });
    expect(await h.tree.root.status()).toEqual({ kind: "idle", last: "completed" });
  });

  test("a root spawns a child, waits for it and answers with its result", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "count the files"),
          wait({ targets: ["worker"] }),
          say((context) => `the worker said ${JSON.stringify(context.lastToolResult)}`),
        ],
        "/root/worker": [say("there are 7")],
      },
    });
    const outcome = await h.ask("how many files?");
    expect(outcome.ending).toBe("completed");
    expect(outcome.text).toContain("there are 7");
  });

  test("a work waits for the works under it, and their results wake its executor", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "count"),
          say("started"),
          say((context) => `woken: ${context.inputs.at(-1)}`),
        ],
        "/root/worker": [say("seven")],
      },
    });
    const outcome = await h.ask("go");
    expect(outcome.ending).toBe("completed");
    expect(outcome.text).toContain("woken");
    expect(outcome.text).toContain("seven");
  });
});
