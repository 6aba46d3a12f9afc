/**
 * The runtime as its users have it: the public entry, a provider that answers from a script at once and remembers nothing, and
 * limits that are out of the way of the workload. Virtual time is not used: what is measured is this machine's.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createMemoryStore,
  createRuntime,
  openSqliteStore,
  scripted,
  type Agent,
  type AgentRecord,
  type LimitsInput,
  type Runtime,
  type ScriptedProvider,
  type Store,
  type TreeHandle,
} from "../../src/index.ts";
import { newAgent } from "../../src/control/new-agent.ts";
import { unload } from "../../src/control/load.ts";
import { createIds, systemRandom } from "../../src/platform/ids.ts";
import { Agent as AgentHandle } from "../../src/runtime/agent.ts";
import { say } from "../../src/providers/scripted/script.ts";

export type StoreKind = "memory" | "sqlite" | "sqlite-full";
type Scripts = Parameters<typeof scripted>[0];

export interface CoppiceOptions {
  readonly store: StoreKind;
  readonly scripts?: Scripts;
  readonly limits?: LimitsInput;
  /** Providers beside `scripted`, by name; each answers `ok`. */
  readonly others?: readonly string[];
}

const MANY = 1_000_000_000;
const MINUTE = 60_000;

/** Nothing is refused, nothing times out; what bounds memory and parallelism stays as it is by default. */
const OUT_OF_THE_WAY: LimitsInput = {
  agentsPerTree: null,
  directChildren: null,
  spawnsPerMinute: null,
  runsPerMinute: null,
  queue: null,
  stepsPerRun: null,
  tokensPerTree: null,
  moneyPerTree: null,
  mailboxMessages: MANY,
  mailboxBytes: 2 ** 50,
  causalChain: MANY,
  runsPerWork: MANY,
  // A loaded machine is no reason to lose a tree.
  leaseMs: 30 * MINUTE,
  leaseGiveUpMs: 20 * MINUTE,
};

export class Coppice implements AsyncDisposable {
  readonly store: Store;
  readonly provider: ScriptedProvider;
  readonly runtime: Runtime;
  tree: TreeHandle;
  readonly file: string | null;
  readonly #folder: string | null;

  constructor(parts: {
    readonly store: Store;
    readonly provider: ScriptedProvider;
    readonly runtime: Runtime;
    readonly tree: TreeHandle;
    readonly folder: string | null;
  }) {
    this.store = parts.store;
    this.provider = parts.provider;
    this.runtime = parts.runtime;
    this.tree = parts.tree;
    this.#folder = parts.folder;
    this.file = parts.folder === null ? null : join(parts.folder, "store.db");
  }

  /** Children of the root, each with its first task answered. `together` of them are asked for at once. */
  async crowd(
    count: number,
    options: { readonly from?: number; readonly together?: number } = {},
  ): Promise<Agent[]> {
    const { from = 0, together = 500 } = options;
    const agents: Agent[] = [];
    for (let at = from; at < from + count; at += together) {
      const some = Array.from({ length: Math.min(together, from + count - at) }, (_, index) =>
        this.tree.root.spawn(`a${at + index}`, "be there"),
      );
      const spawned = await Promise.all(some);
      await Promise.all(spawned.map(({ work }) => work.outcome()));
      for (const { agent } of spawned) agents.push(agent);
    }
    return agents;
  }

  /**
   * Agents that are registered and have never run, as records put straight into the store: for workloads that ask for many
   * identities and are not about making them.
   */
  async register(
    count: number,
    options: { readonly from?: number; readonly together?: number } = {},
  ): Promise<Agent[]> {
    const { from = 0, together = 1000 } = options;
    const [pattern] = await this.crowd(1, { from: MANY + from });
    const like = await pattern!.record();
    const { tree } = this.tree.control;
    const ids = createIds(systemRandom);
    const agents: Agent[] = [];
    for (let at = from; at < from + count; at += together) {
      const records = Array.from(
        { length: Math.min(together, from + count - at) },
        (_, index): AgentRecord => {
          const threadId = ids.mint("thread");
          const path: AgentRecord["path"] = `/root/a${at + index}`;
          const { treeId, parent, depth, config, createdAt, createdBy } = like;
          const { lineage } = like.thread!;
          const tokenDigest = `${threadId}${threadId}`;
          const own = { threadId, path, tokenDigest, thread: { lineage } };
          return newAgent({ treeId, parent, depth, config, createdAt, createdBy, ...own });
        },
      );
      await this.store.commit(tree.lease, (tx) => {
        for (const record of records) tx.putAgent(record);
        const known = tx.tree(tree.treeId)!;
        tx.putTree({ ...known, agents: known.agents + records.length, revision: known.revision + 1 });
      });
      for (const record of records) agents.push(new AgentHandle(this.tree.control, record));
    }
    return agents;
  }

  /** Unloads every session that may go, as the pressure on slots would; answers how many those were. */
  async unloadAll(): Promise<number> {
    const { tree } = this.tree.control;
    let unloaded = 0;
    for (const threadId of tree.sessions.keys()) {
      if (!(await unload(tree, threadId))) continue;
      tree.residency.release(threadId);
      unloaded += 1;
    }
    return unloaded;
  }

  /** Gives the tree back and takes it over again; answers how long the taking over was. */
  async reopen(): Promise<number> {
    await this.tree.close();
    const before = performance.now();
    this.tree = await this.runtime.openTree({ id: this.tree.id });
    return performance.now() - before;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime.close();
    await this.store.close();
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Every agent answers `ok` unless its path has a script. */
export async function coppice(options: CoppiceOptions): Promise<Coppice> {
  const folder = options.store === "memory" ? null : mkdtempSync(join(tmpdir(), "coppice-bench-"));
  const store =
    folder === null
      ? createMemoryStore()
      : await openSqliteStore({
          path: join(folder, "store.db"),
          synchronous: options.store === "sqlite-full" ? "full" : "normal",
        });
  const provider = scripted(options.scripts ?? {}, { recorded: 0, otherwise: say("ok") });
  const others = (options.others ?? []).map(
    (name) => [name, scripted({}, { recorded: 0, otherwise: say("ok") })] as const,
  );
  const runtime = await createRuntime({
    store,
    providers: { scripted: provider, ...Object.fromEntries(others) },
    limits: { ...OUT_OF_THE_WAY, ...options.limits },
  });
  const tree = await runtime.openTree({});
  return new Coppice({ store, provider, runtime, tree, folder });
}
