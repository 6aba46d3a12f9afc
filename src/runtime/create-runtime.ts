/**
 * `createRuntime`: the one place that constructs and wires. A runtime owns trees of one store through leases; everything
 * else is told what it needs.
 */
import { AgentControl } from "../control/agent-control.ts";
import { type Grant, tryReserve } from "../control/dispatch.ts";
import { unload, unloadFacts } from "../control/load.ts";
import { Ownership } from "../control/ownership.ts";
import { createReactions } from "../control/reactions.ts";
import { sweepProcesses } from "../control/processes.ts";
import { recover } from "../control/recovery.ts";
import { type Shared, Tree } from "../control/tree.ts";
import { Admission } from "../execution/admission.ts";
import { BackOff } from "../execution/back-off.ts";
import { PermitPool } from "../execution/permits.ts";
import { InterruptedError, RejectedError } from "../protocol/errors.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import { type Limits, limitsSchema } from "../protocol/limits.ts";
import { type Profile, PROFILES } from "../protocol/profile.ts";
import { check } from "../platform/check.ts";
import { systemClock } from "../platform/clock.ts";
import { createIds, systemRandom } from "../platform/ids.ts";
import { guardedLogger, silentLogger } from "../platform/logger.ts";
import { ownIdentity, provenDead } from "../platform/process-identity.ts";
import { createRedactor } from "../platform/redact.ts";
import { defaultTracer } from "../platform/telemetry.ts";
import { folderExists } from "../platform/workspace.ts";
import { loadRoles } from "../policy/roles.ts";
import { withinCeiling } from "../policy/resolve-config.ts";
import { Residency } from "../residency/slots.ts";
import { createMemoryStore } from "../store/memory.ts";
import type { Lease, Store } from "../store/port.ts";
import { createToolHost } from "../tools/host.ts";
import { RUNTIME } from "./arguments.ts";
import { configResolver, type ConfigSources, rootConfig } from "./configs.ts";
import {
  checkRuntimeOptions,
  checkTreeOptions,
  requireLeaseBounds,
  requireWaitBounds,
  type RuntimeOptions,
  type TreeOptions,
} from "./options.ts";
import { agentOfToken, Connection, type ConnectOptions } from "./connection.ts";
import { createTree } from "./new-tree.ts";
import { TreeHandle } from "./tree-handle.ts";

/** Owns trees of one store until it is closed. From `createRuntime`. */
export interface Runtime extends AsyncDisposable {
  readonly store: Store;
  /**
   * Makes a tree, or takes over an existing one: what was under way when its last owner ended is recovered (REC-1).
   * @throws RejectedError `NOT_OWNER` while another process owns it, `INVALID_ARGUMENT` for an unknown id.
   */
  openTree(options?: TreeOptions): Promise<TreeHandle>;
  /**
   * Acts as the agent whose token this is (SEC-1); for a host-driven root, as its host.
   * @throws RejectedError `TOKEN_INVALID`; `NOT_OWNER` when the tree is another process's, or its root another host's (HDR-5).
   */
  actAs(token: string, options?: ConnectOptions): Promise<Connection>;
  /** Gives every tree back and ends what runs, as a crash would: the store has it all. The store stays open. */
  close(): Promise<void>;
}

/**
 * Makes a runtime: it owns trees of one store, and everything beneath is built here. Nothing is read or written
 * yet.
 * @throws RejectedError `INVALID_ARGUMENT`.
 */
export async function createRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  checkRuntimeOptions(options);
  return new OwnRuntime(options);
}

class OwnRuntime implements Runtime {
  readonly store: Store;
  readonly #options: RuntimeOptions;
  readonly #shared: Shared;
  readonly #sources: ConfigSources;
  readonly #limits: Limits;
  readonly #trees = new Map<TreeId, { readonly tree: Tree; readonly handle: TreeHandle }>();
  /** Trees that are being opened: who asks for one of them meanwhile gets the same. */
  readonly #opening = new Map<TreeId, Promise<TreeHandle>>();
  readonly #admission: Admission<Grant>;
  readonly #permits: PermitPool;
  readonly #residency: Residency;
  readonly #ownership: Ownership;
  #closed = false;

  constructor(options: RuntimeOptions) {
    const clock = options.clock ?? systemClock;
    const random = options.random ?? systemRandom;
    const redact = createRedactor(options.secrets ?? []);
    const logger = guardedLogger(options.logger ?? silentLogger, redact);
    this.#options = options;
    this.store = options.store ?? createMemoryStore({ clock });
    this.#limits = limitsSchema.parse(options.limits ?? {});
    requireLeaseBounds(this.#limits);
    this.#admission = new Admission((applicant) => tryReserve(applicant, this.#pump));
    this.#permits = new PermitPool(this.#limits.runningTotal);
    this.#residency = this.#newResidency(this.#limits.residents);
    this.#ownership = new Ownership(this.store, clock, logger, this.#limits);
    const providers = options.providers ?? {};
    const tools = options.tools ?? [];
    const roles = options.roles ?? loadRoles([], tools);
    this.#sources = {
      providers,
      tools,
      roles,
      subagents: options.subagents ?? {},
      prices: options.prices ?? {},
    };
    const backOffs = new Map<string, BackOff>();
    this.#shared = {
      store: this.store,
      clock,
      random,
      logger,
      ids: createIds(random),
      tracer: options.tracer ?? defaultTracer(),
      redact,
      secrets: options.secrets ?? [],
      prices: options.prices ?? {},
      inspect: options.inspect,
      toolHost: createToolHost({
        tools,
        control: (treeId) => this.#control(treeId),
        redact,
        logger,
      }),
      adapter: (name) => providers[name],
      backOff: (name) => {
        let backOff = backOffs.get(name);
        if (backOff === undefined) {
          backOff = new BackOff({ clock, random });
          backOffs.set(name, backOff);
        }
        return backOff;
      },
      hasTool: (name) => tools.some((tool) => tool.name === name),
      resolveConfig: configResolver(this.#sources),
      withinCeiling: (config, above) => ({
        ...config,
        ...withinCeiling(
          config,
          above.map((one) => one.effects),
          tools,
        ),
      }),
      workspaceExists: folderExists,
    };
  }

  #pump = (): void => this.#admission.pump();

  async openTree(options: TreeOptions = {}): Promise<TreeHandle> {
    if (this.#closed)
      throw new InterruptedError("RUNTIME_CLOSED", "the runtime is closed; create another one.");
    checkTreeOptions(options);
    const treeId = (options.id as TreeId | undefined) ?? this.#shared.ids.mint("thread");
    const opening = this.#opening.get(treeId);
    if (opening !== undefined) return opening;
    const known = this.#trees.get(treeId);
    if (known !== undefined && known.tree.state === "owned") return known.handle;
    const opened = this.#open(treeId, options).finally(() => this.#opening.delete(treeId));
    this.#opening.set(treeId, opened);
    return opened;
  }

  async #open(treeId: TreeId, options: TreeOptions): Promise<TreeHandle> {
    if (options.id !== undefined && (await this.store.read((view) => view.tree(treeId))) === undefined) {
      throw new RejectedError(
        "INVALID_ARGUMENT",
        `no tree ${options.id} is in ${this.store.name}; list the trees there.`,
        { id: options.id },
      );
    }
    const identity = this.#options.identity ?? ownIdentity();
    const lease = await this.store.claim({
      treeId,
      token: this.#shared.ids.mint("tok"),
      owner: identity,
      leaseMs: this.#limits.leaseMs,
      provenDead: this.#options.provenDead ?? provenDead,
    });
    try {
      if (options.id === undefined) {
        const defaults = this.#treeDefaults(options);
        const config = rootConfig(this.#sources, options, defaults.profile);
        await createTree(this.store, lease, this.#shared, defaults, options, config);
      }
      return await this.#adopt(treeId, lease, options);
    } catch (error) {
      this.#trees.delete(treeId);
      await this.store.release(lease, { abandon: true }).catch(() => undefined);
      throw error;
    }
  }

  async actAs(token: string, options: ConnectOptions = {}): Promise<Connection> {
    check("Runtime.actAs", RUNTIME.actAs, { token, options });
    const agent = await agentOfToken(this.store, token);
    const control = this.#control(agent.treeId);
    const seat = agent.hostDriven ? control.hosts.connect(options.host) : null;
    return new Connection(control, agent, token, seat);
  }

  #treeDefaults(options: TreeOptions): { readonly limits: Limits; readonly profile: Profile } {
    const profile = PROFILES[options.profile ?? this.#options.profile ?? "default"];
    const limits = limitsSchema.parse({
      running: profile.running,
      ...this.#options.limits,
      ...options.limits,
    });
    requireWaitBounds(limits);
    return { limits, profile };
  }

  async #adopt(treeId: TreeId, lease: Lease, options: TreeOptions): Promise<TreeHandle> {
    const { record, root } = await this.store.read((view) => ({
      record: view.tree(treeId)!,
      root: view.agent(treeId)!,
    }));
    const base = PROFILES[record.profile];
    const profile: Profile = {
      ...base,
      wakeOnAgentMessages:
        options.wakeOnAgentMessages ?? record.wakeOnAgentMessages ?? base.wakeOnAgentMessages,
    };
    // A lane of an earlier ownership that was lost counts by pools of its own.
    this.#admission.close(treeId);
    const permits = new PermitPool(record.limits.running, this.#permits);
    const tree = new Tree({
      shared: this.#shared,
      treeId,
      lease,
      profile,
      limits: record.limits,
      residency: profile.residentsPerTree
        ? this.#newResidency(Math.max(1, record.limits.running ?? this.#limits.residents))
        : this.#residency,
      permits,
      lane: this.#admission.lane(treeId, permits, () => this.#trees.get(treeId)?.tree.sessions.keys() ?? []),
    });
    tree.reactions = createReactions(this.#pump);
    const control = new AgentControl(tree, this.#pump, options.onHostGone);
    const handle = new TreeHandle(tree, control, root, () => this.#giveBack(treeId));
    this.#trees.set(treeId, { tree, handle });
    try {
      await sweepProcesses(tree);
      await tree.transact((tx) => recover(tx));
    } catch (error) {
      tree.lose("it could not be recovered");
      throw error;
    }
    this.#ownership.add(tree);
    return handle;
  }

  #newResidency(limit: number): Residency {
    const treeOf = (threadId: ThreadId): Tree | undefined => {
      for (const { tree } of this.#trees.values()) if (tree.sessions.has(threadId)) return tree;
      return undefined;
    };
    const lookAgain = (): void => {
      this.#pump();
      for (const { tree } of this.#trees.values()) tree.watchers.changed();
    };
    return new Residency({
      limit,
      facts: (threadId) => {
        const tree = treeOf(threadId);
        return tree === undefined ? NOT_LOADED : unloadFacts(tree, threadId);
      },
      unload: async (threadId) => {
        const tree = treeOf(threadId);
        if (tree === undefined) return true;
        try {
          const gone = await unload(tree, threadId);
          // Who waited for this place meanwhile is asked again when the slot has its state back.
          if (!gone) this.#shared.clock.defer(lookAgain);
          return gone;
        } catch (error) {
          // The store failed: it stays resident (RES-4), and who waits is asked again after a while.
          this.#shared.logger.warn({ threadId, err: error }, "an agent could not be unloaded");
          this.#shared.clock.setTimer(UNLOAD_RETRY_MS, lookAgain, { keepAlive: true });
          return false;
        }
      },
      onRoom: lookAgain,
    });
  }

  #control(treeId: TreeId): AgentControl {
    const found = this.#trees.get(treeId);
    if (found === undefined)
      throw new RejectedError("NOT_OWNER", `this process does not own the tree ${treeId}.`, { treeId });
    return found.handle.control;
  }

  async #giveBack(treeId: TreeId): Promise<void> {
    const found = this.#trees.get(treeId);
    if (found === undefined) return;
    this.#trees.delete(treeId);
    this.#ownership.remove(treeId);
    const { tree } = found;
    const owned = tree.state === "owned";
    tree.state = "closing";
    tree.abandon(new InterruptedError("RUNTIME_CLOSED", "the tree was given back; open it again."));
    this.#admission.close(treeId);
    if (owned) await this.store.release(tree.lease, { abandon: true });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.allSettled(this.#opening.values());
    for (const treeId of this.#trees.keys()) await this.#giveBack(treeId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** After a store failed under an unload. */
const UNLOAD_RETRY_MS = 500;

/** A slot whose load is under way, or whose session is just gone. */
const NOT_LOADED = {
  lastRunSettled: false,
  inParkableWait: false,
  reserved: true,
  triggerMailPending: false,
  queueOnlyMailPending: false,
  requestPending: false,
  handoffBeingDelivered: false,
  nativeForkIntentOpen: false,
  pinPendingMail: false,
} as const;
