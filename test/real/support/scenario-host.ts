/**
 * A host in a process of its own, so that it can be killed: one tree with a real program at its root, whose children run on two
 * other providers. It prints what happens as NDJSON. Its second life opens the tree again and lets its work come to its end.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { z } from "zod";
import type { TreeId, WorkId } from "../../../src/protocol/ids.ts";
import { createModelProvider } from "../../../src/providers/model/model-provider.ts";
import { createGates } from "../../../src/providers/scripted/gates.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { gate, repeat, say } from "../../../src/providers/scripted/script.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { type ParentName, parentProvider } from "./parents.ts";

/** The first argument, as JSON. */
export interface HostInput {
  readonly parent: ParentName;
  readonly env: Readonly<Record<string, string>>;
  readonly workspace: string;
  readonly store: string;
  readonly model: string;
  /** What its root is to do, in its first life; in its second the tree and the work. */
  readonly task: string | { readonly tree: TreeId; readonly work: WorkId };
}

const tell = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

const input = JSON.parse(process.argv[2]!) as HostInput;
const { task } = input;
const gates = createGates();
// What holds a child up in the first life is out of the way in the second.
if (typeof task !== "string") gates.openAll();
const children = {
  "/root/one": [gate("one"), repeat(say("ONE"))],
  "/root/three": [gate("three"), repeat(say("THREE"))],
};
const vendor = createOpenAICompatible({ name: "loopback", baseURL: input.model, apiKey: "dummy-model" });
// A result that comes before it is waited for is put into the turn as a message, where there is no script.
const waited = Promise.withResolvers<void>();
const hold = defineTool({
  name: "hold",
  description: "Comes back when the root waits.",
  input: z.object({}),
  run: async () => {
    await waited.promise;
    return "go on";
  },
});
const store = await openSqliteStore({ path: input.store });
const runtime = await createRuntime({
  store,
  providers: {
    parent: await parentProvider(input.parent, input),
    scripted: scripted(children, { gates }),
    model: createModelProvider({ models: { mock: vendor("mock-model") } }),
  },
  tools: [hold],
  subagents: { onLostRun: "retry" },
});
const tree = await runtime.openTree(
  typeof task === "string"
    ? { provider: "parent", workspace: input.workspace, onLostRun: "retry" }
    : { id: task.tree },
);
const work = typeof task === "string" ? await tree.root.send(task) : tree.work(task.work);
tell({ tree: tree.id, work: work.id });
const ended = work.outcome();
void (async () => {
  for await (const { type, path } of tree.events({ after: 0 })) {
    tell({ type, path });
    if (type === "wait.started" && path === "/root") waited.resolve();
  }
})();
tell({ outcome: await ended });
await tree.idle();
await runtime.close();
await store.close();
process.exit(0);
