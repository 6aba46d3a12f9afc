/**
 * One simulated life of a tree, from a seed: what its agents do, who disturbs it, what fails, and in which order everything
 * settles. It ends when the tree has come to rest, and answers what was broken, if anything.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../src/platform/clock.ts";
import type { LimitsInput } from "../../../src/protocol/limits.ts";
import type { LineageLimitsInput } from "../../../src/protocol/lineage-limits.ts";
import { type ProfileName, PROFILES } from "../../../src/protocol/profile.ts";
import { spentScope } from "../../../src/control/spent-scope.ts";
import type { Tree } from "../../../src/control/tree.ts";
import type { TreeId } from "../../../src/protocol/ids.ts";
import type { WorkRecord } from "../../../src/protocol/work.ts";
import { createMemoryStore } from "../../../src/store/memory.ts";
import type { Store, StoreView } from "../../../src/store/port.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { seededScheduler } from "../../../src/testing/scheduler.ts";
import { Actors } from "./actors.ts";
import { describeMemory, withoutTrace } from "./describe.ts";
import { dice } from "./randomness.ts";
import { type Faults, type Owner, World } from "./world.ts";

export interface Scenario {
  readonly seed: number;
  readonly store: "memory" | "sqlite";
  /** Mailbox 3, residents 1, running 1. */
  readonly tiny: boolean;
  /** A request takes little mail, so that batches matter. */
  readonly smallBatches: boolean;
  readonly others: boolean;
  readonly fate: boolean;
  readonly faults: Faults;
  readonly failures: boolean;
  readonly questions: boolean;
  readonly onLostRun: "notify" | "retry";
  readonly profile: ProfileName;
  readonly acts: number;
  readonly lastStep: number;
  readonly earlyTimers: number;
  /** Several providers, forks, rollbacks, and what else users do to threads. */
  readonly threads: boolean;
  /** Where the first thread begins. */
  readonly provider: string;
  /** Tokens of the tree, few requests' worth; null for the default. */
  readonly tokens: number | null;
  /** Programs call by the tokens of agents that run. */
  readonly calls: boolean;
}

export interface Life {
  readonly scenario: Scenario;
  readonly trace: readonly number[];
  readonly steps: number;
  readonly commits: number;
  /** Null when every promise held. */
  readonly broken: string | null;
  /** The end of the event log, and what the scheduler did last. */
  readonly tail: string;
}

/** One seed in so many lives in a file. */
const SQLITE_EVERY = 25;

/** What a seed stands for. */
export function scenarioOf(seed: number): Scenario {
  const d = dice(seed, "scenario");
  const rough = d.chance(0.6);
  const scenario: Scenario = {
    seed,
    store: seed % SQLITE_EVERY === 0 ? "sqlite" : "memory",
    tiny: d.chance(0.35),
    smallBatches: d.chance(0.3),
    others: d.chance(0.5),
    fate: rough && d.chance(0.6),
    faults: {
      refuse: rough && d.chance(0.4) ? 0.04 : 0,
      crash: rough && d.chance(0.5) ? 0.03 : 0,
      lateAnswers: d.chance(0.25),
      lose: 0,
    },
    failures: d.chance(0.5),
    questions: d.chance(0.4),
    onLostRun: d.chance(0.3) ? "retry" : "notify",
    acts: 3 + d.below(25),
    lastStep: 3 + d.below(10),
    earlyTimers: d.chance(0.5) ? 0.02 : 0,
    profile: d.chance(0.15) ? "codex" : "default",
    threads: false,
    provider: "scripted",
    tokens: null,
    calls: dice(seed, "calls").chance(0.3),
  };
  // Drawn last, so that what was drawn before keeps its meaning.
  const lose = rough && d.chance(0.25) ? 0.02 : 0;
  const threads = d.chance(0.5);
  const faults = { ...scenario.faults, lose };
  const tokens = dice(seed, "budget").chance(0.15) ? 6_000 + dice(seed, "tokens").below(14_000) : null;
  if (!threads) return { ...scenario, faults, tokens };
  // Many short runs, so that there is much to fork, to hand over and to take back.
  return {
    ...scenario,
    faults,
    tokens,
    threads,
    acts: 15 + d.below(60),
    lastStep: 1 + d.below(4),
    provider: d.weighted({ scripted: 50, able: 40, poor: 10 }),
  };
}

const LIMITS: LimitsInput = {
  depth: 3,
  agentsPerTree: 14,
  waitMinimumMs: 100,
  waitDefaultMs: 5000,
  interruptGraceMs: 200,
  transportWaitMs: 3000,
  pollMs: 400,
  retries: 2,
  running: 3,
  residents: 6,
};
/** So small that every limit of a thread is met. */
const TINY_LINEAGE: LineageLimitsInput = {
  snapshotBytes: 4096,
  outcomesKept: 1,
  seedChars: 1024,
  seedMessages: 2,
  messageChars: 60,
  ancestorDepth: 1,
  ancestorDepthMaximum: 2,
  handoffTokens: 1024,
  handoffBytes: 2000,
  offProviderRuns: 2,
  handoffsSoft: 1,
  handoffsHard: 2,
  gapRangesSoft: 1,
};
const TINY: LimitsInput = { ...LIMITS, running: 1, residents: 1, mailboxMessages: 3 };

/** Virtual time in which everything must have come to rest once nobody disturbs it any more. */
const REST_MS = 30 * 60_000;
const MOST_STEPS = 60_000;

export async function simulate(scenario: Scenario, replay?: readonly number[]): Promise<Life> {
  const { seed, earlyTimers } = scenario;
  const scheduler = seededScheduler(seed, { earlyTimers, ...(replay === undefined ? {} : { replay }) });
  await using ground = await openGround(scenario.store, scheduler.process("store").clock);
  const world = new World({
    scheduler,
    store: ground.store,
    behaviour: {
      seed,
      lastStep: scenario.lastStep,
      failures: scenario.failures,
      questions: scenario.questions,
    },
    limits: {
      ...(scenario.tiny ? TINY : LIMITS),
      ...(scenario.tokens === null ? {} : { tokensPerTree: scenario.tokens }),
      ...(scenario.smallBatches ? { mailPerRequestBytes: 12 } : {}),
    },
    lineage: scenario.tiny ? TINY_LINEAGE : {},
    threads: scenario.threads,
    calls: scenario.calls,
    faults: scenario.faults,
    tree: { onLostRun: scenario.onLostRun, profile: scenario.profile, provider: scenario.provider },
  });
  try {
    await live(world, scenario);
  } catch (error) {
    world.fail(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  const tail =
    world.broken === null
      ? ""
      : [world.tail, describeMemory(world), withoutTrace(scheduler.dump())].join("\n");
  return {
    scenario,
    trace: scheduler.trace(),
    steps: scheduler.steps,
    commits: world.commits,
    broken: world.broken?.message ?? null,
    tail,
  };
}

/** The store that outlives every process of the simulation. */
async function openGround(
  kind: Scenario["store"],
  clock: Clock,
): Promise<AsyncDisposable & { readonly store: Store }> {
  if (kind === "memory") {
    return { store: createMemoryStore({ clock }), [Symbol.asyncDispose]: async () => undefined };
  }
  const folder = mkdtempSync(join(tmpdir(), "coppice-simulation-"));
  const store = await openSqliteStore({
    path: join(folder, "store.db"),
    synchronous: "normal",
    exclusive: true,
    clock,
  });
  return {
    store,
    async [Symbol.asyncDispose]() {
      // Nobody drives its clock any more: what is queued stays undone.
      void store.close().catch(() => undefined);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function live(world: World, scenario: Scenario): Promise<void> {
  const { scheduler } = world;
  await scheduler.complete(world.start().opened);
  const actors = new Actors(world, scenario);
  actors.begin();
  const keeper = new Keeper(world);
  await scheduler.run({
    maxSteps: MOST_STEPS,
    until: () => {
      world.judgeMemory();
      keeper.look();
      return actors.done || world.broken !== null;
    },
  });
  world.calm = true;
  for (const { process, natives } of world.owners) {
    process.thaw();
    for (const native of Object.values(natives)) native.gates.openAll();
  }
  const settle = {
    maxSteps: MOST_STEPS,
    forMs: REST_MS,
    until: () => {
      world.judgeMemory();
      keeper.look();
      actors.answerAll();
      return world.broken !== null || (world.owner !== null && !keeper.busy && atRest(world));
    },
  };
  // An act may still be under way when the tree rests, and what is given back comes after the last commit.
  for (let round = 0; round < 20; round += 1) {
    await scheduler.run(settle);
    await scheduler.run({ maxSteps: MOST_STEPS, forMs: 1000 });
    if (world.broken !== null) return;
    if (world.owner !== null && atRest(world)) break;
  }
  judgeRest(world);
}

/** Opens the tree again when nobody holds it, and once more for as long as that is refused. */
class Keeper {
  readonly #world: World;
  /** The process that is opening the tree. */
  #opening: Owner | null = null;
  #resting = false;
  /** Forks that are being opened, or were not long ago, and by whom: a process that dies over it answers nobody. */
  readonly #forks = new Map<TreeId, Owner>();

  constructor(world: World) {
    this.#world = world;
  }

  get busy(): boolean {
    return this.#opening !== null || this.#resting;
  }

  look(): void {
    if (this.#opening?.process.state() === "killed") this.#opening = null;
    if (this.busy) return;
    const { owner } = this.#world;
    if (owner !== null) {
      if (this.#world.calm) this.#openForks(owner);
      return;
    }
    this.#opening = this.#world.start();
    // What it waits for is not there yet, and with nothing to wait for a run would end.
    this.#world.scheduler.process("outside").offer("somebody opens the tree", () => undefined);
    void this.#follow(this.#opening);
  }

  /** Trees that were left with something to do come to rest as well: by whoever has them, or by this owner. */
  #openForks(owner: Owner): void {
    const world = this.#world;
    const left = world.look((view) => world.forks(view)).filter((treeId) => world.handleOf(treeId) === null);
    for (const treeId of left) {
      const by = this.#forks.get(treeId);
      if (by !== undefined && by.process.state() !== "killed") continue;
      this.#forks.set(treeId, owner);
      void this.#openFork(owner, treeId).finally(() =>
        world.scheduler.process("outside").clock.setTimer(500, () => this.#forks.delete(treeId)),
      );
    }
  }

  async #openFork(owner: Owner, id: TreeId): Promise<void> {
    const alive = this.#world.owners.filter(({ process }) => process.state() === "running");
    for (const one of [owner, ...alive]) {
      this.#forks.set(id, one);
      const handle = await one.runtime?.openTree({ id }).catch(() => null);
      if (handle?.owned !== true) continue;
      one.forks.set(id, handle);
      return;
    }
  }

  /** Who had lost the tree may have it again by now, through a verb on one of its threads. */
  async #adopt(): Promise<void> {
    const { treeId } = this.#world;
    if (treeId === null) return;
    for (const one of this.#world.owners.filter(({ process }) => process.state() === "running")) {
      const handle = await one.runtime?.openTree({ id: treeId }).catch(() => null);
      if (handle?.owned === true) one.handle = handle;
    }
  }

  async #follow(owner: Owner): Promise<void> {
    try {
      await owner.opened;
    } catch {
      // Refused while another's lease lives, or by a fault: it ends, and the next one tries after a while.
      this.#world.kill(owner);
      this.#resting = true;
      void this.#adopt();
      this.#world.scheduler.process("outside").clock.setTimer(500, () => (this.#resting = false));
    }
    if (this.#opening === owner) this.#opening = null;
  }
}

function atRest(world: World): boolean {
  return faultOfRest(world) === null;
}

/** What is still to be done in any tree, or null. */
function faultOfRest(world: World): string | null {
  return world.look((view) => {
    for (const tree of [world.treeId!, ...world.forks(view)]) {
      const fault = faultOfTree(view, tree);
      if (fault !== null) return tree === world.treeId ? fault : `${fault} in the fork ${tree}`;
      if (world.calm && world.handleOf(tree) === null) return `nobody owns ${tree}`;
    }
    return null;
  });
}

function faultOfTree(view: StoreView, tree: TreeId): string | null {
  const runs = view.openRuns(tree);
  if (runs.length > 0) return `${runs.length} runs are open`;
  const open = view
    .works(tree, { limit: 10_000 })
    .rows.filter((work) => work.state !== "ended" && !isShelved(view, work));
  if (open.length > 0) return `${open.length} works are open`;
  // In a scope whose budget is spent, mail waits until it is raised (BUD-2), which nobody does here.
  const { exhausted } = view.tree(tree)!;
  const triggered = view.triggered(tree).filter((id) => {
    const agent = view.agent(id);
    return agent?.state === "open" && spentScope(exhausted, agent.path) === null;
  });
  if (triggered.length > 0) return `${triggered.length} agents have mail that should have started a run`;
  if (view.pendingCommands(tree).length > 0) return "commands wait";
  if (view.arrivals(tree).length > 0) return "mail of others waits to be looked at";
  return null;
}

/** `codex`: an interrupt has turned its request queue-only; the next trigger takes it (INT-8). */
function isShelved(view: StoreView, work: WorkRecord): boolean {
  const profile = PROFILES[view.tree(work.treeId)!.profile];
  if (!profile.interruptQueuesTriggers) return false;
  // A run that was lost is asked for again by a notice.
  return [work.requestMailId, work.retryMailId].some((id) => {
    const asks = id === null ? undefined : view.mail(id);
    return asks?.state === "accepted" && !asks.trigger;
  });
}

/** At rest nothing is held: no permit, no slot without a session, no place in a queue. */
function judgeRest(world: World): void {
  const fault = faultOfRest(world);
  if (fault !== null) world.fail(`MBX-6 at rest, and then ${fault}`);
  if (world.owner === null) return world.fail("REC-2 nobody owns the tree");
  for (const owner of world.owners) {
    const handles = [owner.handle, ...owner.forks.values()].filter((handle) => handle?.owned === true);
    if (owner.process.state() === "running")
      judgeOwner(
        world,
        handles.map((handle) => handle!.control.tree),
      );
  }
}

function judgeOwner(world: World, trees: readonly Tree[]): void {
  const [first] = trees;
  if (first === undefined) return;
  const loaded = trees.reduce((sum, { sessions }) => sum + sessions.size, 0);
  if (!first.profile.residentsPerTree && first.residency.loaded !== loaded)
    world.fail(`EXE-4 at rest: slots in use are ${first.residency.loaded}, and sessions ${loaded}`);
  for (const tree of trees) {
    const { count, limit } = tree.residency;
    if (count > limit) world.fail(`RES-2 at rest: ${count} sessions are resident and the limit is ${limit}`);
    const slots = tree.profile.residentsPerTree ? tree.residency.loaded - tree.sessions.size : 0;
    const held = {
      "permits in use": tree.permits.inUse,
      "runs in memory": tree.runs.size,
      "agents in the queue": tree.lane.size,
      "agents being started": tree.starting.size,
      "grants without a run": tree.granted.size,
      "slots without a session": slots,
    };
    for (const [what, count] of Object.entries(held))
      if (count !== 0) world.fail(`EXE-4 at rest: ${what} is ${count}`);
    for (const [, session] of tree.sessions) {
      if (session.lifecycle.state !== "idle")
        world.fail(`LST-1 at rest ${session.agent.path} is ${session.lifecycle.state}`);
      if (session.run !== null || session.drive !== null)
        world.fail(`LST-1 at rest ${session.agent.path} still has a run in memory`);
    }
  }
}
