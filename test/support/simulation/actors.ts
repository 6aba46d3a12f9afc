/**
 * Those outside of the tree: users, other processes that share the store, and fate, which freezes, kills and takes over.
 * Each act is drawn and done at a moment that the scheduler chooses; nobody waits for its answer.
 */
import { CoppiceError } from "../../../src/protocol/errors.ts";
import { createIds, seededRandom } from "../../../src/platform/ids.ts";
import type { AgentRecord } from "../../../src/protocol/agent.ts";
import type { CommandVerb } from "../../../src/protocol/command.ts";
import type { JsonObject } from "../../../src/protocol/json.ts";
import type { MailDraft } from "../../../src/protocol/mail.ts";
import type { StoreView } from "../../../src/store/port.ts";
import type { RuntimeRequestRecord } from "../../../src/protocol/wait.ts";
import { NAMES } from "./agent-script.ts";
import { dice, type Dice } from "./randomness.ts";
import { ThreadActs } from "./thread-acts.ts";
import { TokenActs } from "./token-acts.ts";
import type { Owner, World } from "./world.ts";

export interface ActorOptions {
  readonly seed: number;
  readonly acts: number;
  /** Other processes append mail and commands. */
  readonly others: boolean;
  /** Crashes, freezes and takeovers of the owner. */
  readonly fate: boolean;
  /** The user forks, switches, rolls back …; providers that own their loop fail. */
  readonly threads: boolean;
  /** Programs call by the tokens of agents that run. */
  readonly calls: boolean;
}

export class Actors {
  readonly #world: World;
  readonly #options: ActorOptions;
  readonly #dice: Dice;
  readonly #ids;
  readonly #threads: ThreadActs;
  readonly #tokens: TokenActs;
  #left: number;
  #pending = 0;

  constructor(world: World, options: ActorOptions) {
    this.#world = world;
    this.#options = options;
    this.#dice = dice(options.seed, "actors");
    this.#ids = createIds(seededRandom(options.seed * 1000));
    this.#left = options.acts;
    this.#threads = new ThreadActs(world, this.#dice);
    this.#tokens = new TokenActs(world, options.seed);
  }

  /** All acts are done; what they asked for may still be under way. */
  get done(): boolean {
    return this.#left === 0 && this.#pending === 0;
  }

  /** Arranges the next act: at once, after a while, or when nothing else can happen. */
  begin(): void {
    const user = this.#world.scheduler.process("outside");
    if (this.#left === 0) return;
    this.#left -= 1;
    this.#pending += 1;
    const act = (): void => {
      this.#pending -= 1;
      this.#act();
      this.begin();
    };
    const hold = (left: number): void => user.offer("waits", () => (left === 0 ? act() : hold(left - 1)));
    if (this.#dice.chance(0.25)) user.clock.setTimer(this.#dice.below(3000), act);
    else hold(this.#dice.below(this.#options.threads ? 50 : 15));
  }

  #act(): void {
    const d = this.#dice;
    const { others, fate, threads, calls } = this.#options;
    const what = d.weighted({
      user: 60,
      other: others ? 25 : 0,
      fate: fate ? 15 : 0,
      thread: threads ? 110 : 0,
      provider: threads ? 45 : 0,
      call: calls ? 80 : 0,
    });
    if (what === "other") this.#try(this.#other());
    else if (what === "fate") this.#fate();
    else {
      const { owner } = this.#world;
      if (owner === null) return;
      if (what === "thread") this.#try(this.#threads.act(owner));
      else if (what === "call") this.#try(this.#tokens.act(owner));
      else if (what === "provider") this.#threads.disturb(owner);
      else this.#try(this.#user(owner));
    }
  }

  /** Refusals are answers; anything else is a fault of the runtime. */
  #try(doing: Promise<unknown>): void {
    doing.catch((error: unknown) => {
      if (CoppiceError.is(error) && error.family !== "invariant") return;
      this.#world.fail(
        `ERR-1 an outside call failed: ${error instanceof Error ? error.stack : String(error)}`,
      );
    });
  }

  async #user(owner: Owner): Promise<unknown> {
    const d = this.#dice;
    const tree = owner.handle!;
    const kind = d.weighted({
      root: 30,
      child: 10,
      tell: 10,
      spawn: 8,
      interrupt: 14,
      close: 5,
      answer: 10,
      unload: 10,
      list: 2,
    });
    const path = d.chance(0.6) ? d.pick(this.#busyPaths()) : d.pick(this.#paths());
    const onBusy = d.pick(["steer", "queue", "reject"] as const);
    const keyed = d.chance(0.2) ? { commandId: `key ${d.below(4)}` } : {};
    const interrupting = {
      cascade: d.pick(["none", "subtree"] as const),
      pending: d.pick(["keep", "cancel"] as const),
    };
    const politely = d.chance(0.3);
    const name = d.pick(NAMES);
    if (kind === "root") return tree.root.send("a question", { onBusy, ...keyed });
    if (kind === "answer") return this.#answer(owner);
    if (kind === "list") return tree.list({});
    if (kind === "unload")
      return void tree.control.tree.residency.makeRoom(tree.control.tree.residency.limit);
    const agent = await tree.agent(path);
    switch (kind) {
      case "child":
        return agent.send("you there", { onBusy });
      case "tell":
        return agent.tell("for your information", keyed);
      case "spawn":
        return agent.spawn(name, "a task of the user");
      case "interrupt":
        return agent.interrupt(interrupting);
      case "close":
        // Seldom the root: with it the tree is over.
        return path === "/root" && !politely ? undefined : agent.close({ politely });
    }
  }

  /** Another process without the lease: mail by `send`, verbs by rows of the command inbox. */
  async #other(): Promise<unknown> {
    const d = this.#dice;
    const world = this.#world;
    const treeId = world.treeId!;
    const agents = this.#agents();
    const agent = d.pick(agents);
    const now = world.scheduler.process("outside").clock.now();
    if (d.chance(0.5)) {
      const draft: MailDraft = {
        id: this.#ids.mint("msg"),
        treeId,
        recipient: agent.threadId,
        recipientPath: agent.path,
        author: { kind: "user", name: "cli" },
        kind: "user",
        authority: "user",
        trigger: d.chance(0.5),
        steer: d.chance(0.3),
        nextRun: false,
        workId: null,
        resultOf: null,
        content: { text: "from elsewhere", bytes: 14, artifact: null },
        start: null,
        redirectedFrom: null,
        key: d.chance(0.2) ? `mail ${d.below(3)}` : null,
        createdAt: now,
      };
      await world.store.send([draft]);
      world.look((view) => world.judge(view, treeId));
      return;
    }
    const verb = d.pick<CommandVerb>(["interrupt", "close", "followup", "send", "answer"]);
    const open = this.#requests();
    const asked: JsonObject = {
      target: verb === "close" && agent.path === "/root" ? "/root/c" : agent.path,
      message: "by command",
      cascade: d.pick(["none", "subtree"]),
      pending: d.pick(["keep", "cancel"]),
      request: open.length === 0 ? "req_none" : d.pick(open).id,
      answer: "yes",
    };
    await world.store.command({
      id: this.#ids.mint("cmd"),
      treeId,
      verb,
      arguments: asked,
      state: "pending",
      answer: null,
      createdAt: now,
      doneAt: null,
    });
  }

  #fate(): void {
    const d = this.#dice;
    const { owner, scheduler } = this.#world;
    const outside = scheduler.process("outside");
    switch (d.weighted({ kill: 40, freeze: 30, takeover: 30 })) {
      case "kill":
        if (owner !== null) this.#world.kill(owner);
        break;
      case "freeze":
      case "takeover": {
        if (owner === null) return;
        // Long enough now and then for the lease to run out.
        owner.process.freeze();
        outside.clock.setTimer(d.below(12_000), () => owner.process.thaw());
      }
    }
  }

  async #answer(owner: Owner): Promise<unknown> {
    const open = this.#requests();
    if (open.length === 0) return;
    return owner.handle!.answer(this.#dice.pick(open).id, "yes");
  }

  #paths(): readonly string[] {
    return ["/root", ...this.#agents().map((agent) => agent.path)];
  }

  /** Agents that run, wait or owe something. */
  #busyPaths(): readonly string[] {
    const paths = this.#world.look((view) =>
      this.#openAgents(view)
        .filter((agent) => agent.currentRun !== null || view.openWorksOf(agent.threadId).length > 0)
        .map((agent) => agent.path),
    );
    return paths.length === 0 ? ["/root"] : paths;
  }

  #agents(): readonly AgentRecord[] {
    return this.#world.look((view) => {
      const open = this.#openAgents(view);
      return open.length > 0 ? open : this.#openAgents(view, true);
    });
  }

  #openAgents(view: StoreView, closed = false): readonly AgentRecord[] {
    return view.agents(this.#world.treeId!, "/root", { limit: 1000, closed }).rows;
  }

  #requests(): readonly RuntimeRequestRecord[] {
    return this.#world.look((view) =>
      this.#openAgents(view).flatMap((agent) => view.openRequestsOf(agent.threadId)),
    );
  }

  /** Answers everything that is open, so that the tree can come to rest. */
  answerAll(): void {
    const { owner } = this.#world;
    if (owner === null) return;
    for (const request of this.#requests()) this.#try(owner.handle!.answer(request.id, "at last"));
    for (const treeId of this.#world.look((view) => this.#world.forks(view))) {
      const handle = this.#world.handleOf(treeId);
      const open = this.#world.look((view) =>
        view
          .agents(treeId, "/root", { limit: 1000 })
          .rows.flatMap(({ threadId }) => view.openRequestsOf(threadId)),
      );
      if (handle !== null) for (const { id } of open) this.#try(handle.answer(id, "at last"));
    }
  }
}
