/**
 * Programs in which agents run, that call the tools by their agent's token while the run goes on (WAI-5, EXE-4): some wait, some
 * beside one another, some give up in the middle. What happens to the run meanwhile is drawn elsewhere.
 */
import type { JsonObject } from "../../../src/protocol/json.ts";
import { callByName, type HostTool } from "../../../src/tools/host-tools.ts";
import { NAMES } from "./agent-script.ts";
import { dice, type Dice } from "./randomness.ts";
import type { Owner, World } from "./world.ts";

/** Trees beside the first one. */
const MOST = 3;

export class TokenActs {
  readonly #world: World;
  readonly #dice: Dice;
  /** One token an agent, since the next one ends the last. */
  readonly #tools = new WeakMap<Owner, Map<string, Promise<readonly HostTool[]>>>();
  #calls = 0;

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#dice = dice(seed, "calls");
  }

  async act(owner: Owner): Promise<unknown> {
    const d = this.#dice;
    const { clock } = owner.process;
    const running = this.#running();
    if (running.length === 0) return;
    const path = d.pick(running);
    const gone = new AbortController();
    if (d.chance(0.25)) clock.setTimer(d.below(6000), () => gone.abort(new Error("the program has gone")));
    const callId = `call ${(this.#calls += 1)}`;
    const [name, input] = this.#call();
    const calling = callByName(await this.#toolsOf(owner, path), name, input, {
      signal: gone.signal,
      callId,
    });
    return calling.catch((error: unknown) => {
      if (error !== gone.signal.reason) throw error;
    });
  }

  #call(): readonly [string, JsonObject] {
    const d = this.#dice;
    const targets = d.chance(0.7) ? { targets: [d.pick(NAMES)] } : {};
    // It asks for an approval first. Without threads nobody looks after other trees.
    const others = this.#world.options.threads
      ? this.#world.look((view) => this.#world.forks(view)).length
      : MOST;
    switch (d.weighted({ wait: 60, spawn: 15, follow: 10, elsewhere: others < MOST ? 15 : 0 })) {
      case "wait":
        return ["wait_agent", { ...targets, timeout_ms: 100 + d.below(8000) }];
      case "spawn":
        return [
          "spawn_agent",
          { task_name: d.pick(NAMES), message: "asked from outside", fork_turns: "none" },
        ];
      case "follow":
        return ["followup_task", { target: d.pick(NAMES), message: "from outside, too" }];
      case "elsewhere":
        return ["create_thread", { threads: [{ message: "of its own" }] }];
    }
  }

  #toolsOf(owner: Owner, path: string): Promise<readonly HostTool[]> {
    const known = this.#tools.get(owner) ?? new Map<string, Promise<readonly HostTool[]>>();
    this.#tools.set(owner, known);
    const tools = known.get(path) ?? this.#connect(owner, path);
    known.set(path, tools);
    tools.catch(() => known.delete(path));
    return tools;
  }

  async #connect(owner: Owner, path: string): Promise<readonly HostTool[]> {
    const agent = await owner.handle!.agent(path);
    const connection = await owner.runtime!.actAs(await agent.token());
    return connection.tools();
  }

  #running(): readonly string[] {
    return this.#world.look((view) =>
      view.openRuns(this.#world.treeId!).flatMap(({ status, threadId }) => {
        const agent = view.agent(threadId);
        return status === "running" && agent !== undefined ? [agent.path] : [];
      }),
    );
  }
}
