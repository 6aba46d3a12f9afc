/** What a command of another process is given that JSON cannot hold: refused before a row of it is stored (REC-2). */
import { describe, expect, test } from "vitest";
import type { CommandVerb } from "../../src/protocol/command.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { harness, STORES } from "../support/harness.ts";

const cyclic: Record<string, unknown> = { target: "/root" };
cyclic["message"] = cyclic;
let deep: unknown = "x";
for (let level = 0; level < 20_000; level += 1) deep = [deep];

const budget = { target: "/root", budget: "tokens" };
const BAD: readonly (readonly [what: string, verb: CommandVerb, given: object])[] = [
  ["NaN", "raise_budget", { ...budget, limit: Number.NaN }],
  ["Infinity", "raise_budget", { ...budget, limit: Number.POSITIVE_INFINITY }],
  ["a big integer", "raise_budget", { ...budget, limit: 5n }],
  ["no limit at all", "raise_budget", { ...budget, limit: undefined }],
  ["a cycle", "send", cyclic],
  ["a deep list", "send", { target: "/root", message: deep }],
  ["a function", "send", { target: "/root", message: () => "x" }],
  ["a map", "send", new Map([["target", "/root"]])],
  ["an id that is no text", "send", { target: "/root", message: "x", command_id: 5n }],
];

describe.each(STORES)("arguments of a command on %s", (store) => {
  test.each(BAD)("REC-2 BUD-1 %s is refused, and nothing of it is stored", async (_what, verb, given) => {
    await using h = await harness({ store });
    const before = await h.store.read((view) => view.tree(h.tree.id)!.limits);
    for (const owned of [true, false]) {
      if (!owned) await h.runtime.close();
      const writes = h.faulty.writes;
      const said = commandTree(h.faulty, h.tree.id, verb, given as JsonObject, {
        clock: h.clock,
        provenDead: () => !owned,
      });
      await expect(said).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
      await h.clock.settle();
      expect(h.faulty.writes).toBe(writes);
      expect(await h.store.read((view) => view.pendingCommands(h.tree.id))).toEqual([]);
    }
    expect(await h.store.read((view) => view.tree(h.tree.id)!.limits)).toEqual(before);
  });
});
