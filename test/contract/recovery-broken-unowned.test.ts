/** A command on a tree that nobody owns, in which a row cannot be read: that is set aside, and the command carried out (REC-1, REC-2). */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const VERBS = [
  ["close", { target: "/root" }],
  ["interrupt", { target: "/root", cascade: "subtree" }],
  ["followup", { target: "/root", message: "go on" }],
] as const;
const TABLES = ["agents", "runs", "works"] as const;

describe.each(STORES)("a tree that nobody owns, with a row that cannot be read, on %s", (store) => {
  test.for(TABLES.flatMap((table) => VERBS.map(([verb, given]) => [verb, table, given] as const)))(
    "REC-1 REC-2 `%s` is carried out where one of %s is broken",
    async ([verb, table, given]) => {
      await using h = await harness({
        store,
        scripts: {
          "/root/a": [together(gate("a"), say("a")), repeat(say("more"))],
          "*": [say("one"), repeat(say("more"))],
        },
      });
      const { agent, work } = await h.tree.root.spawn("a", "go");
      await h.provider.gates.arrived("a");
      const [run] = await look(h).runs("/root/a");
      const ids = { agents: agent.threadId, runs: run!.id, works: work.id };
      let closed = false;
      const closing = h.runtime.close().then(() => (closed = true));
      while (!closed) await h.clock.advance(1_000);
      await closing;
      h.damageRow(table, ids[table]);
      const how = { clock: h.clock, provenDead: () => true };
      const receipt = await commandTree(h.store, h.tree.id, verb, given, how);
      expect(receipt).toMatchObject({ appliedBy: "here" });
    },
  );
});
