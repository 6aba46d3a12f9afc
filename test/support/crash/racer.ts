/**
 * A process that races with others for one thread. It does what it is told, a JSON line each, and answers with a line each.
 *
 * `node racer.ts <path>`
 */
import { createInterface } from "node:readline";
import { CoppiceError, describeError } from "../../../src/protocol/errors.ts";
import type { JsonObject } from "../../../src/protocol/json.ts";
import type { CommandVerb } from "../../../src/protocol/command.ts";
import type { TreeId } from "../../../src/protocol/ids.ts";
import { gate, repeat, say, together } from "../../../src/providers/scripted/script.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { liveOwner } from "../../../src/control/live-owner.ts";
import { provenDead } from "../../../src/platform/process-identity.ts";
import { commandTree } from "../../../src/runtime/command-tree.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import type { TreeHandle } from "../../../src/runtime/tree-handle.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";

type Order = { readonly round: number; readonly tree: TreeId } & (
  | { readonly act: "command"; readonly verb: CommandVerb; readonly arguments: JsonObject }
  /** Owns the thread and runs up to where it is about to settle. */
  | { readonly act: "own" | "settle" }
  /** Takes every other process for dead. */
  | { readonly act: "reconcile" }
);

const [path = ""] = process.argv.slice(2);
const store = await openSqliteStore({ path, synchronous: "normal", busyTimeoutMs: 30_000 });
const provider = scripted({
  "/root": [repeat(({ inputs }) => together(gate(/settle \d+/.exec(inputs.at(-1)!)![0]), say("done")))],
});
const runtime = await createRuntime({ store, providers: { scripted: provider }, provenDead: () => true });
/** It takes nobody for dead who is not. */
const alive = await createRuntime({ store, providers: { scripted: provider } });
const trees = new Map<TreeId, TreeHandle>();

async function carryOut(order: Order): Promise<void> {
  const { tree } = order;
  switch (order.act) {
    case "command":
      await (order.verb === "archive" ? archive(tree) : command(order));
      return;
    case "own": {
      const handle = await runtime.openTree({ id: tree });
      trees.set(tree, handle);
      await handle.root.send(`settle ${order.round}`);
      await provider.gates.arrived(`settle ${order.round}`);
      return;
    }
    case "settle": {
      const handle = trees.get(tree)!;
      provider.gates.open(`settle ${order.round}`);
      // It is lost when the other was faster.
      await handle.idle().catch(() => undefined);
      await handle.close().catch(() => undefined);
      return;
    }
    case "reconcile":
      await runtime.threads.reconcile(tree);
  }
}

function command({ tree, verb, arguments: given }: Extract<Order, { act: "command" }>): Promise<unknown> {
  return commandTree(store, tree, verb, given, { timeoutMs: 60_000 });
}

/** By the owner or here, as `coppice thread archive`; and again when the tree has changed hands in between. */
async function archive(tree: TreeId): Promise<void> {
  for (;;) {
    try {
      const owned = (await store.read((view) => liveOwner(view, tree, provenDead))) !== null;
      if (owned)
        await command({ act: "command", round: 0, tree, verb: "archive", arguments: { thread: tree } });
      else await alive.threads.archive(tree);
      return;
    } catch (error) {
      if (!CoppiceError.is(error) || error.code !== "NOT_OWNER") throw error;
    }
  }
}

process.stdout.write(`${JSON.stringify({ ready: process.pid })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order;
  const told = await carryOut(order).then(
    () => ({ won: true }),
    (error: unknown) => ({
      won: false,
      code: CoppiceError.is(error) ? error.code : "OTHER",
      text: describeError(error),
    }),
  );
  process.stdout.write(`${JSON.stringify({ round: order.round, ...told })}\n`);
}
await runtime.close();
await alive.close();
await store.close();
