/**
 * A process on a store that others share, to be killed, frozen and raced with. It says what it did on standard output, a JSON
 * line each, after the fact: what it says has been acknowledged to it.
 *
 * `node process.ts <path> <mode> <tree or -> <options as JSON>`
 */
import { createInterface } from "node:readline";
import { z } from "zod";
import { CoppiceError, describeError } from "../../../src/protocol/errors.ts";
import type { JsonObject } from "../../../src/protocol/json.ts";
import type { CommandVerb } from "../../../src/protocol/command.ts";
import type { LimitsInput } from "../../../src/protocol/limits.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import {
  call,
  followUp,
  gate,
  repeat,
  say,
  send,
  spawn,
  type StepFunction,
  together,
  wait,
} from "../../../src/providers/scripted/script.ts";
import { commandTree } from "../../../src/runtime/command-tree.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import type { TreeHandle } from "../../../src/runtime/tree-handle.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";

const [path = "", mode = "", tree = "-", given = "{}"] = process.argv.slice(2);
const options = JSON.parse(given) as JsonObject;
const tell = (line: JsonObject): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

/** Does something of everything, decided by what it was asked; the same after a restart as before. */
const act: StepFunction = (context) => {
  const asked = context.inputs.join("\n");
  if (context.toolResults.length > 0)
    return context.ownSteps % 5 === 0 ? wait({ timeout_ms: 100 }) : say("done");
  const number = Number(/task (\d+)/.exec(asked)?.[1] ?? 0);
  if (context.path !== "/root") {
    return number % 3 === 0
      ? together(call("list_agents"), send("/root", `from ${context.path}`))
      : say(`done ${number}`);
  }
  const child = `c_${number % 7}`;
  if (number === 0) return say("noted");
  return number < 8
    ? spawn(child, `task ${number}`, { wake: "always" })
    : followUp(child, `task ${number}`, number % 2 === 0 ? {} : { detached: true });
};

const store = await openSqliteStore({ path, synchronous: "normal", busyTimeoutMs: 30_000 });

/** Starts a process that outlives everybody, and says which. */
const serve = defineTool({
  name: "serve",
  input: z.strictObject({}),
  run: async (_input, run) => {
    const { pid } = await run.startProcess({ command: "/bin/sh", args: ["-c", "sleep 1000 & wait"] });
    tell({ pid });
    return pid;
  },
});

async function open(): Promise<TreeHandle> {
  const runtime = await createRuntime({
    store,
    limits: (options["runtimeLimits"] ?? {}) as LimitsInput,
    providers: {
      scripted: scripted({
        "*": mode === "serve" ? [call("serve"), together(gate("for ever"), say("never"))] : [repeat(act)],
      }),
    },
    tools: [serve],
    subagents: { onLostRun: options["onLostRun"] === "retry" ? "retry" : "notify" },
  });
  const limits = {
    runsPerMinute: null,
    spawnsPerMinute: null,
    waitMinimumMs: 100,
    ...(options["limits"] as object | undefined),
  };
  return runtime.openTree(tree === "-" ? { limits, onLostRun: "retry" } : { id: tree });
}

/** Asks the root for one thing after the other, several at a time. */
async function load(handle: TreeHandle): Promise<void> {
  let next = (await handle.works({ limit: 10_000 })).rows.length;
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      for (;;) {
        const work = await handle.root.send(`task ${(next += 1)}`, { onBusy: "queue" });
        tell({ asked: work.id });
        const { ending } = await work.outcome();
        tell({ ended: work.id, ending });
      }
    }),
  );
}

try {
  switch (mode) {
    case "load": {
      const handle = await open();
      tell({ ready: handle.id });
      await load(handle);
      break;
    }
    case "pulse": {
      const handle = await open();
      tell({ ready: handle.id });
      // One message for each line that comes in, so that it is idle in between.
      for await (const _line of createInterface({ input: process.stdin })) {
        const { seq } = await handle.root.tell(`${process.pid}`);
        tell({ wrote: seq });
      }
      break;
    }
    case "serve": {
      const handle = await open();
      tell({ ready: handle.id });
      await handle.root.send("serve");
      break;
    }
    case "drain": {
      const handle = await open();
      tell({ ready: handle.id });
      await handle.idle();
      await handle.close();
      tell({ drained: handle.id });
      break;
    }
    case "hold": {
      const handle = await open();
      tell({ ready: handle.id });
      await new Promise((resolve) => process.stdin.once("data", resolve));
      await handle.close();
      break;
    }
    case "command": {
      tell({ ready: tree });
      await new Promise((resolve) => process.stdin.once("data", resolve));
      const {
        verb,
        arguments: args,
        commandId,
      } = options as { verb: CommandVerb; arguments: JsonObject; commandId: string };
      const receipt = await commandTree(store, tree as `thread_${string}`, verb, args, {
        commandId,
        timeoutMs: 30_000,
      });
      tell({ applied: receipt.appliedBy, answer: receipt.answer });
      break;
    }
  }
} catch (error) {
  tell({ refused: CoppiceError.is(error) ? error.code : "OTHER", text: describeError(error) });
}
if (mode === "serve") await new Promise(() => undefined);
process.stdin.destroy();
await store.close();
