/** Kills in the life of a tree whose agents run on providers with loops of their own: every promise holds as for loops of ours. */
import { describe, expect, test } from "vitest";
import { exclusiveFork, noFork, turnFork } from "../../src/providers/scripted/native/provider.ts";
import { ownTool } from "../../src/providers/scripted/native/words.ts";
import {
  call,
  followUp,
  repeat,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import type { Fault } from "../../src/testing/faulty-store.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const more = repeat(say((context) => `done ${context.ownSteps}`));

/** Each kind of provider below another: a join, a follow-up, plain mail, a wake, tools of both sides. */
function life(store: NonNullable<HarnessOptions["store"]>, onLostRun: "notify" | "retry") {
  const providers = {
    steered: turnFork({
      "/root": [
        together(
          spawn("one", "first", { model: "plain/any" }),
          spawn("two", "second", { model: "scripted/scripted" }),
        ),
        together(say("now the rest"), ownTool("shell", { command: "ls" }), wait({ targets: ["one"] })),
        together(followUp("one", "again"), send("two", "by the way")),
        wait({ targets: ["one", "two"], mode: "any" }),
        more,
      ],
    }),
    plain: noFork({ "/root/one": [spawn("deep", "third", { model: "exclusive/any" }), more] }),
    exclusive: exclusiveFork({ "/root/one/deep": [ownTool("shell"), more] }),
  };
  const options: HarnessOptions = {
    store,
    others: providers,
    tree: { provider: "steered", onLostRun },
    runtime: { subagents: { onLostRun } },
    scripts: { "/root/two": [call("list_agents"), more] },
  };
  return { options, kill: () => Object.values(providers).forEach((provider) => provider.kill()) };
}

describe.each(STORES)("native runs and kills on %s", (store) => {
  test("RUN-5 every promise holds after each commit of a life", async () => {
    const { options } = life(store, "notify");
    await using h = await harness(options);
    const checker = invariants(h.tree.id);
    const broken: unknown[] = [];
    const work = await h.tree.root.send("go");
    const { shared } = h.tree.control.tree;
    const commit = shared.store.commit.bind(shared.store);
    shared.store.commit = (lease, plan) =>
      commit(lease, (tx) => {
        const value = plan(tx);
        broken.push(...checker.check(tx));
        return value;
      });
    await h.tree.idle();
    expect(broken).toEqual([]);
    expect((await work.outcome()).ending).toBe("completed");
    const works = await look(h).works();
    expect(works.map(({ outcome }) => outcome?.ending)).toEqual(works.map(() => "completed"));
  });

  test.for([
    ["crash_after", "notify"],
    ["crash_before", "retry"],
  ] as const)(
    "RUN-5 REC-1 at every commit (%s), with %s: nothing lost, nothing twice, every promise kept",
    { timeout: 240_000 },
    async ([kind, onLostRun]) => {
      let kills = 0;
      for (let write = 1; await killedAt(write, kind, onLostRun); write += store === "memory" ? 1 : 7)
        kills += 1;
      expect(kills).toBeGreaterThan(store === "memory" ? 40 : 6);
    },
  );

  async function killedAt(
    write: number,
    kind: Fault["kind"],
    onLostRun: "notify" | "retry",
  ): Promise<boolean> {
    const { options, kill } = life(store, onLostRun);
    await using h = await harness(options);
    const checker = invariants(h.tree.id);
    const check = async (when: string): Promise<void> => {
      const broken = await h.store.read((view) => checker.check(view));
      expect(broken, `${kind} ${write}, ${when}`).toEqual([]);
    };
    const base = h.faulty.writes;
    h.onWrite = (number) => (number === base + write ? ({ kind } as Fault) : null);
    let ended = false;
    h.tree.root
      .send("go")
      .then(() => h.tree.idle())
      .then(
        () => (ended = true),
        () => undefined,
      );
    await waitUntil("it has crashed or ended", () => h.faulty.crashed || ended);
    if (!h.faulty.crashed) return false;
    await check("dead");
    kill();
    h.onWrite = () => null;
    await h.crash();
    await check("opened again");
    await h.tree.idle();
    await check("idle again");
    const works = await look(h).works();
    expect(works.filter(({ state }) => state !== "ended")).toEqual([]);
    const { agents } = await h.tree.list();
    const mail = (await Promise.all(agents.map(({ path }) => look(h).mail(path)))).flat();
    const results = mail.filter((one) => one.kind === "final_answer").map(({ resultOf }) => String(resultOf));
    const asked = works.filter(({ replyTo }) => replyTo !== null).map(({ id }) => id);
    expect(results.toSorted(), `results after ${kind} ${write}`).toEqual(asked.toSorted());
    return true;
  }
});
