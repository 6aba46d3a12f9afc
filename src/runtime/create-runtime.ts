/**
 * `createRuntime`: the one place that constructs and wires. A runtime owns trees of one store through leases; everything
 * else is told what it needs.
 */
import { AgentControl } from "../control/agent-control.ts";
import { inTime } from "../control/close-session.ts";
import { type Grant, tryReserve } from "../control/dispatch.ts";
import { Ownership } from "../control/ownership.ts";
import { createReactions } from "../control/reactions.ts";
import { sweepProcesses } from "../control/processes.ts";
import { leaveInOrder } from "../control/leave-in-order.ts";
import { recover } from "../control/recovery.ts";
import type { Shared } from "../control/shared.ts";
import { Tree } from "../control/tree.ts";
import { sweepWorktrees } from "../control/worktrees.ts";
import { Admission } from "../execution/admission.ts";
import { PermitPool } from "../execution/permits.ts";
import { InterruptedError, RejectedError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import { type Limits, limitsSchema } from "../protocol/limits.ts";
import { type Profile, PROFILES } from "../protocol/profile.ts";
import type { ProcessIdentity, ProvenDead } from "../protocol/process-identity.ts";
import { canonicalJson } from "../platform/canonical-json.ts";
import { abortable, type Begin, beginUnless, type CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import { ownIdentity, provenDead } from "../platform/process-identity.ts";
import { gitCapture } from "../platform/workspace/git-capture.ts";
import type { Residency } from "../residency/slots.ts";
import type { Lease, Page, Store } from "../store/port.ts";
import type { ThreadPorts } from "../threads/ports.ts";
import { Threads } from "./threads.ts";
import { RUNTIME } from "./arguments.ts";
import type { PageOptions } from "./agent.ts";
import { Claims } from "./claims.ts";
import { type ConfigSources, rootConfig } from "./configs.ts";
import {
  checkRuntimeOptions,
  checkTreeOptions,
  requireLeaseBounds,
  requireOpenedAs,
  treeDefaults,
  type RuntimeOptions,
  type TreeOptions,
} from "./options.ts";
import { connect, type Connection, type ConnectOptions } from "./connection.ts";
import { HeldTrees } from "./held-trees.ts";
import { createTree, type NewThread } from "./new-tree.ts";
import { residencyOf } from "./residency.ts";
import { sharedOf, sourcesOf } from "./shared.ts";
import type { OpenPendingOptions, Runtime } from "./runtime.ts";
import { TreeHandle } from "./tree-handle.ts";
import { listTrees, openPendingTrees, type TreeSummary } from "./trees.ts";
import { Visits } from "./visits.ts";

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
  readonly threads: Threads;
  readonly #options: RuntimeOptions;
  readonly #shared: Shared;
  readonly #sources: ConfigSources;
  readonly #limits: Limits;
  readonly #trees = new HeldTrees();
  readonly #claims: Claims;
  readonly #admission: Admission<Grant>;
  readonly #permits: PermitPool;
  readonly #residency: Residency;
  readonly #ownership: Ownership;
  readonly #visits: Visits;
  readonly #threadPorts: ThreadPorts;
  #closing: Promise<void> | null = null;

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.#limits = limitsSchema.parse(options.limits ?? {});
    requireLeaseBounds(this.#limits);
    this.#admission = new Admission((applicant) => tryReserve(applicant, this.#pump));
    this.#permits = new PermitPool(this.#limits.runningTotal);
    this.#residency = this.#newResidency(this.#limits.residents);
    this.#sources = sourcesOf(options);
    this.#shared = sharedOf(options, this.#sources, {
      control: (treeId) => this.#trees.requireOwned(treeId).handle.control,
      threadPorts: () => this.#threadPorts,
      treesHere: () => this.#trees.known.keys(),
      reservationsOf: (id) => this.#trees.known.get(id)?.tree.reservations,
      mirror: async (threadId) => (this.#closing !== null ? undefined : this.threads.mirror(threadId)),
    });
    this.store = this.#shared.store;
    this.#claims = new Claims({
      store: this.store,
      token: () => this.#shared.ids.mint("tok"),
      leaseMs: this.#limits.leaseMs,
      owner: () => this.#identity,
      isDead: this.#isDead,
      shared: this.#shared,
    });
    this.#ownership = new Ownership(this.store, this.#shared.clock, this.#shared.logger, this.#limits);
    this.#visits = new Visits({
      shared: this.#shared,
      claim: async (id) => {
        this.#requireOpen();
        return this.#claims.claim(id);
      },
      release: (lease) => this.#claims.release(lease),
      owned: async (id) => {
        await this.#trees.settled(id);
        return this.#trees.owned(id)?.tree;
      },
      isMine: (id) => this.#trees.isMine(id),
    });
    this.#threadPorts = {
      ...this.#visits.ports(),
      providers: this.#sources.providers,
      // Checkpoints of git's are there whoever has taken them.
      capture: this.#shared.workspaces.capture ?? gitCapture(),
      provenDead: this.#isDead,
      open: async (id, options) => (await this.openTree({ id, ...options })).control,
      make: (id, { id: _id, parent: _parent, ...asked }, lineage, within) =>
        this.#visits.during(id, (lease) => this.#make(lease, asked, { lineage, within })),
    };
    this.threads = new Threads(this.#threadPorts);
  }

  #pump = (): void => this.#admission.pump();

  async #make(lease: Lease, options: TreeOptions, thread?: NewThread): Promise<void> {
    const defaults = treeDefaults(this.#options, options);
    const config = rootConfig(this.#sources, options, defaults.profile);
    await createTree(this.store, lease, this.#shared, defaults, options, config, thread);
  }

  get #identity(): ProcessIdentity {
    return this.#options.identity ?? ownIdentity();
  }

  /** This process lives, whatever is said of others. */
  readonly #isDead: ProvenDead = (owner) =>
    canonicalJson(owner) !== canonicalJson(this.#identity) && (this.#options.provenDead ?? provenDead)(owner);

  async openTree(options: TreeOptions & CallOptions = {}): Promise<TreeHandle> {
    this.#requireOpen();
    checkTreeOptions(options);
    const { signal, ...asked } = options;
    return abortable(signal, (begin) => this.#openTree(asked, begin));
  }

  async #openTree(options: TreeOptions, begin: Begin): Promise<TreeHandle> {
    const treeId = (options.id as TreeId | undefined) ?? this.#shared.ids.mint("thread");
    for (let opening; (opening = this.#trees.opened(treeId)) !== undefined;) await opening;
    this.#requireOpen();
    const known = this.#trees.owned(treeId);
    if (known !== undefined) {
      const { wakeOnAgentMessages } = known.tree.profile;
      requireOpenedAs(options, { wakeOnAgentMessages, onHostGone: known.handle.control.hosts.onGone });
      return known.handle;
    }
    const opened = this.#open(treeId, options, begin).finally(() => this.#trees.opening.delete(treeId));
    this.#trees.opening.set(treeId, opened);
    return opened;
  }

  #requireOpen(): void {
    if (this.#closing === null) return;
    throw new InterruptedError("RUNTIME_CLOSED", "the runtime is closed; create another one.");
  }

  async #open(treeId: TreeId, options: TreeOptions, begin: Begin): Promise<TreeHandle> {
    if (options.id !== undefined && (await this.store.read((view) => view.tree(treeId))) === undefined) {
      throw new RejectedError(
        "INVALID_ARGUMENT",
        `no tree ${options.id} is in this store (${this.store.name}); list the trees there.`,
        { id: options.id },
      );
    }
    await this.#trees.ending.get(treeId)?.catch(() => undefined);
    const lost = this.#trees.known.get(treeId)?.tree;
    if (lost !== undefined) await inTime(lost, lost.over());
    await this.#visits.over(treeId);
    const claimedAt = this.#shared.clock.monotonic();
    const lease = await this.#claims.claim(treeId);
    try {
      begin();
      if (options.id === undefined) {
        await this.#make(lease, options);
      }
      return await this.#adopt(treeId, lease, claimedAt, options);
    } catch (error) {
      const failed = this.#trees.known.get(treeId)?.tree;
      if (failed !== undefined) this.#ownership.remove(failed);
      this.#trees.known.delete(treeId);
      await this.#claims.release(lease).catch(() => undefined);
      throw error;
    }
  }

  async trees(page: PageOptions = {}): Promise<Page<TreeSummary>> {
    check("Runtime.trees", RUNTIME.trees, page);
    const { after = null, limit = 100, signal } = page;
    return abortable(signal, () => listTrees(this.store, { after, limit }, this.#isDead));
  }

  async openPending(options: OpenPendingOptions = {}): Promise<readonly TreeHandle[]> {
    check("Runtime.openPending", RUNTIME.openPending, options);
    this.#requireOpen();
    const { limit = 100, signal } = options;
    return abortable(signal, () => {
      const open = (id: TreeId): Promise<TreeHandle> => this.#openTree({ id }, beginUnless(signal));
      return openPendingTrees({ ...this.#threadPorts, shared: this.#shared, open }, limit, { signal });
    });
  }

  async actAs(token: string, options: ConnectOptions = {}): Promise<Connection> {
    check("Runtime.actAs", RUNTIME.actAs, { token, options });
    const { host, signal } = options;
    return abortable(signal, (begin) => connect(this.store, this.#trees, { token, host, begin }));
  }

  async #adopt(treeId: TreeId, lease: Lease, claimedAt: number, options: TreeOptions): Promise<TreeHandle> {
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
      bounds: record,
      residency: profile.residentsPerTree
        ? this.#newResidency(Math.max(1, record.limits.running ?? this.#limits.residents))
        : this.#residency,
      permits,
      lane: this.#admission.lane(
        treeId,
        permits,
        () => this.#trees.known.get(treeId)?.tree.sessions.keys() ?? [],
      ),
      onLost: (why) => this.#treeLost(tree, why),
    });
    tree.reactions = createReactions(this.#pump);
    const control = new AgentControl(tree, this.#pump, options.onHostGone);
    const handle = new TreeHandle(tree, control, root, () => this.#giveBack(tree));
    this.#trees.known.set(treeId, { tree, handle });
    this.#ownership.add(tree, claimedAt);
    try {
      await sweepProcesses(tree);
      await tree.transact((tx) => recover(tx));
      await sweepWorktrees(tree);
    } catch (error) {
      tree.lose("it could not be recovered");
      await inTime(tree, tree.over());
      throw error;
    }
    tree.requireOwned();
    this.#ownership.recovered(treeId);
    return handle;
  }

  /** Its lease may be there yet: the next claim of this runtime takes it over, and no other one can before its time. */
  #treeLost(tree: Tree, why: string): void {
    const { treeId, lease } = tree;
    this.#ownership.remove(tree);
    this.#admission.close(treeId);
    this.#claims.lost(lease);
    if (this.#trees.opening.has(treeId) || this.#trees.ending.has(treeId)) return;
    const told = async (): Promise<unknown> => this.#options.onTreeLost?.(treeId, why);
    told().catch((error: unknown) => {
      this.#shared.logger.error({ treeId, err: error }, "`onTreeLost` has failed");
    });
  }

  #newResidency(limit: number): Residency {
    return residencyOf(limit, {
      shared: () => this.#shared,
      trees: () => this.#trees.known.values().map(({ tree }) => tree),
      pump: this.#pump,
    });
  }

  /** The tree may have been opened anew since it was lost; that one stays. */
  #giveBack(tree: Tree): Promise<void> {
    const { treeId } = tree;
    if (this.#trees.known.get(treeId)?.tree !== tree)
      return this.#trees.ending.get(treeId) ?? Promise.resolve();
    this.#trees.known.delete(treeId);
    const ended = this.#end(tree).finally(() => this.#trees.ending.delete(treeId));
    this.#trees.ending.set(treeId, ended);
    return ended;
  }

  /** The lease is kept until nothing of this owner is under way any more, or has had its time. */
  async #end(tree: Tree): Promise<void> {
    if (tree.state === "owned") tree.state = "closing";
    tree.abandon(new InterruptedError("RUNTIME_CLOSED", "the tree was given back; open it again."));
    this.#admission.close(tree.treeId);
    await inTime(tree, tree.over());
    await tree.jobs.end(tree.shared.clock, tree.limits);
    if (tree.state === "closing") await leaveInOrder(tree);
    this.#ownership.remove(tree);
    await this.#claims.release(tree.lease);
  }

  async close(options: CallOptions = {}): Promise<void> {
    check("Runtime.close", RUNTIME.call, options);
    return abortable(options.signal, () => (this.#closing ??= this.#close()));
  }

  /** Every tree is given back, whatever becomes of another; the first failure is told then. */
  async #close(): Promise<void> {
    await Promise.allSettled(this.#trees.opening.values());
    for (const { tree } of this.#trees.known.values()) void this.#giveBack(tree).catch(() => undefined);
    const ended = await Promise.allSettled(this.#trees.ending.values());
    await this.#visits.allOver();
    for (const end of ended) if (end.status === "rejected") throw end.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
