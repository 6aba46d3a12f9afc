/** What users do to threads, and what happens to providers that own their loops. Nobody waits for an answer. */
import { RejectedError, TransientError } from "../../../src/protocol/errors.ts";
import type { AgentRecord } from "../../../src/protocol/agent.ts";
import { PIN_SECTIONS } from "../../../src/protocol/snapshot.ts";
import { FORK_STRATEGIES } from "../../../src/protocol/thread.ts";
import type { ForkPointName } from "../../../src/lineage/fork-points.ts";
import {
  crashAfter,
  hang,
  type NativeMethod,
  refuse,
  unauthenticated,
} from "../../../src/providers/scripted/native/faults.ts";
import type { RollbackTo } from "../../../src/threads/rollback.ts";
import type { Dice } from "./randomness.ts";
import type { Owner, World } from "./world.ts";

const PROVIDERS = ["scripted", "other", "able", "poor"] as const;
/** Trees beside the first one. */
const MOST_FORKS = 4;

const ASKED: readonly NativeMethod[] = [
  "openSession",
  "ensureThread",
  "resumeThread",
  "startTurn",
  "forkThread",
  "rollbackThread",
  "findForks",
];

export class ThreadActs {
  readonly #world: World;
  readonly #dice: Dice;

  constructor(world: World, d: Dice) {
    this.#world = world;
    this.#dice = d;
  }

  async act({ runtime }: Owner): Promise<unknown> {
    const d = this.#dice;
    const { threads } = runtime!;
    const kind = d.weighted({
      continue: 40,
      select: 8,
      pin: 6,
      fork: 12,
      merge: 10,
      rollback: 14,
      undo: 6,
      handoff: 6,
      rename: 2,
      end: 3,
      look: 3,
    });
    const roots = this.#roots();
    const thread = d.pick(kind === "continue" && d.chance(0.9) ? roots : this.#threads());
    const id = thread.threadId;
    const provider = d.pick(PROVIDERS);
    const fork = roots.filter(({ thread: facts }) => facts?.lineage.relationshipToParent === "fork");
    switch (kind) {
      case "continue":
        return threads.continue(id, `message ${d.below(100)}`, {
          onBusy: d.pick(["reject", "queue", "queue", "steer"]),
          // A fork whose first run goes where its source ran may be the provider's own.
          ...(d.chance(thread.runs === 0 ? 0.25 : 0.6) ? { provider } : {}),
          ...(d.chance(0.1) ? { expectedRevision: thread.revision } : {}),
          ...(d.chance(0.1) ? { commandId: `key ${d.below(4)}` } : {}),
        });
      case "select":
        return threads.select(id, { provider, model: null, effort: null, cleanContext: d.chance(0.3) });
      case "pin":
        return threads.pin(id, d.pick(PIN_SECTIONS), `pinned ${d.below(1000)} ${"x".repeat(d.below(200))}`);
      case "fork":
        if (fork.length >= MOST_FORKS) return;
        return threads.fork(id, {
          at: this.#point(thread),
          policy: {
            strategy: d.pick(FORK_STRATEGIES),
            replay: { mode: d.pick(["recent", "summary_plus_recent"]) },
            requestId: d.chance(0.3) ? `fork ${d.below(3)}` : null,
          },
        });
      case "merge":
        if (fork.length === 0) return;
        return threads.mergeBack(d.pick(fork).threadId);
      case "rollback":
        return threads.rollBack(id, {
          to: this.#target(thread),
          native: d.pick(["allowed", "allowed", "demanded"]),
        });
      case "undo":
        return threads.undoRollback(id);
      case "handoff":
        return this.#handoff(threads, thread);
      case "rename":
        return threads.rename(id, d.pick([null, "a title", "another"]));
      case "end":
        // The first thread goes on: with it all would be over.
        if (id === this.#world.treeId) return;
        return thread.state === "open" ? threads.close(id) : threads.archive(id);
      case "look":
        return d.chance(0.5)
          ? threads.preview(id, { provider, model: null, effort: null, cleanContext: false })
          : threads.reconcile(id);
    }
  }

  /** Something goes wrong with a provider that owns its loop, now or at one of its next calls. */
  disturb({ natives }: Owner): void {
    const d = this.#dice;
    const native = d.pick(Object.values(natives));
    const lost = native.conversations.all().filter((one) => one.driver === native.driver && !one.lost);
    switch (d.weighted({ fault: 60, lose: 25, kill: 15 })) {
      case "fault":
        return native.fault(
          d.pick(ASKED),
          d.pick([
            refuse(new RejectedError("PROVIDER_REFUSED", "This was drawn.", {})),
            refuse(new TransientError("PROVIDER_UNREACHABLE", "This was drawn.", {})),
            unauthenticated(),
            crashAfter(),
            crashAfter(),
            hang("for a while", { done: d.chance(0.5) }),
          ]),
        );
      case "lose":
        if (lost.length > 0) native.lose({ nativeId: d.pick(lost).id });
        return;
      case "kill":
        return native.kill();
    }
  }

  async #handoff(threads: NonNullable<Owner["runtime"]>["threads"], thread: AgentRecord): Promise<unknown> {
    const d = this.#dice;
    const waiting = this.#world.look((view) =>
      view
        .handoffsOf(thread.threadId, { limit: 1000 })
        .rows.filter(({ status, deliveredAt }) => status === "ready" && deliveredAt === null),
    );
    if (waiting.length === 0) return;
    const { id } = d.pick(waiting);
    return d.chance(0.5) ? threads.editHandoff(id, "in the user's words") : threads.regenerateHandoff(id);
  }

  #point({ threadId, runs, items }: AgentRecord): ForkPointName {
    const d = this.#dice;
    const kind = d.pick(["latest_stable", "latest_stable", "run", "message"] as const);
    if (kind === "message") return { kind, seq: 1 + d.below(items + 1) };
    const run = this.#world.look((view) => view.runAt(threadId, 1 + d.below(runs + 1)));
    return kind === "run" && run !== undefined ? { kind, runId: run.id } : { kind: "latest_stable" };
  }

  #target({ runs, items }: AgentRecord): RollbackTo {
    const d = this.#dice;
    return d.chance(0.7)
      ? { kind: "ordinal", ordinal: Math.max(0, runs - 1 - d.below(3)) }
      : { kind: "before_message", seq: 1 + d.below(items + 1) };
  }

  /** The first thread and its forks. */
  #roots(): readonly AgentRecord[] {
    return this.#world.look((view) =>
      [this.#world.treeId!, ...this.#world.forks(view)].flatMap((id) => view.agent(id) ?? []),
    );
  }

  /** Subagents too, now and then. */
  #threads(): readonly AgentRecord[] {
    const roots = this.#roots();
    if (!this.#dice.chance(0.15)) return roots;
    const found = this.#world.look((view) =>
      roots.flatMap(({ treeId }) => view.agents(treeId, "/root", { limit: 100 }).rows),
    );
    return found.length === 0 ? roots : found;
  }
}
