/** WRK-4: works under works, who waits for whom, and when nobody does. */
import { describe, expect, test } from "vitest";
import {
  call,
  fail,
  followUp,
  gate,
  list,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

/** The first work id in what a model was sent. */
const reportFirst = (result: string) => (context: { readonly messages: readonly object[] }) =>
  call("report_result", {
    work_id: /wrk_[A-Za-z0-9]{21}/.exec(JSON.stringify(context.messages))?.[0] ?? "",
    result,
  });

async function awaiting(h: Harness, path: string): Promise<void> {
  await look(h).until(`${path} awaits`, async () =>
    (await look(h).works(path)).some(({ state }) => state === "awaiting_children"),
  );
}

describe.each(STORES)("works under works on %s", (store) => {
  test("WRK-4 a request has as parents the works that its run serves at that moment", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("w", "go"), say("started"), say("woken")],
        "/root/w": [
          spawn("a", "under the first"),
          gate("in"),
          list(),
          spawn("b", "under both"),
          reportFirst("reported"),
          spawn("c", "under the second"),
          say("waiting"),
          say("woken"),
          say("woken"),
        ],
        "*": [say("ok")],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("in");
    const [first] = await look(h).works("/root/w");
    const second = await (await h.tree.agent("/root/w")).send("more");
    h.provider.gates.open("in");
    await second.outcome();
    await asked.outcome();
    const parents = async (path: string) => (await look(h).work(path)).parents;
    expect(first!.parents).toEqual([asked.id]);
    expect(await parents("/root/w/a")).toEqual([first!.id]);
    expect(await parents("/root/w/b")).toEqual([first!.id, second.id]);
    expect(await parents("/root/w/c")).toEqual([second.id]);
    const works = await look(h).works();
    for (const work of works)
      for (const id of work.parents)
        expect(works.findIndex((one) => one.id === id)).toBeLessThan(works.indexOf(work));
  });

  test.for(["always", "settled_only", "never"] as const)(
    "WRK-4 it waits for the open works under it and is woken by their results, whatever their wake (%s) says",
    async (wake) => {
      await using h = await harness({
        store,
        scripts: {
          "/root": [
            together(spawn("a", "go", { wake }), spawn("b", "go", { wake })),
            say("started"),
            say((context) => `first ${context.inputs.join().includes("result a")}`),
            say((context) => `second ${context.inputs.join().includes("result b")}`),
          ],
          "/root/a": [gate("a"), say("result a")],
          "/root/b": [gate("b"), say("result b")],
        },
      });
      const asked = await h.tree.root.send("go");
      await awaiting(h, "/root");
      expect(await asked.record()).toMatchObject({ openUnder: 2, outcome: null });
      expect(await h.tree.root.status()).toEqual({ kind: "awaiting_children" });
      h.provider.gates.open("a");
      await look(h).until(
        "it was woken",
        async () => (await look(h).runs("/root")).filter(({ status }) => status === "completed").length === 2,
      );
      // The run that took the first result served the work, and one is still open: it awaits again.
      expect(await asked.record()).toMatchObject({ state: "awaiting_children", openUnder: 1 });
      h.provider.gates.open("b");
      await expect(asked.outcome()).resolves.toMatchObject({ ending: "completed", text: "second true" });
      const runs = await look(h).runs("/root");
      expect(runs.map(({ serves, woken }) => [serves, woken])).toEqual([
        [[asked.id], false],
        [[asked.id], true],
        [[asked.id], true],
      ]);
    },
  );

  test("WRK-4 a result that came but is not delivered holds the work too", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("a", "go", { wake: "never" }),
          gate("answering"),
          say("early"),
          say((context) => `with ${context.inputs.join().includes("result a")}`),
        ],
        "/root/a": [say("result a")],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("answering");
    await look(h).until("a has ended", async () => (await look(h).work("/root/a")).state === "ended");
    expect(await asked.record()).toMatchObject({ openUnder: 1 });
    h.provider.gates.open("answering");
    await expect(asked.outcome()).resolves.toMatchObject({ text: "with true" });
  });

  test("WRK-4 results taken at a boundary or by a wait leave nothing to await", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "go"), spawn("b", "go")),
          wait({ targets: ["a", "b"], timeout_ms: 60_000 }),
          say("done"),
        ],
        "*": [say("ok")],
      },
    });
    await expect(h.ask("go")).resolves.toMatchObject({ text: "done" });
    await h.tree.idle();
    expect((await look(h).runs("/root")).length).toBe(1);
  });

  test("WRK-4 the rule looks at the parent work, never at the executor: levels wait for their own", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("a", "go"),
          say("r1"),
          say((context) => `root got ${context.inputs.join().includes("a got true")}`),
        ],
        "/root/a": [
          // A work under another agent's, at a sibling that is idle by itself.
          spawn("b", "go"),
          say("a1"),
          say((context) => `a got ${context.inputs.join().includes("deep")}`),
        ],
        "/root/a/b": [gate("deep"), say("deep")],
      },
    });
    const asked = await h.tree.root.send("go");
    await awaiting(h, "/root");
    await awaiting(h, "/root/a");
    // Another work of the same agent is not held by it.
    const other = await (await h.tree.agent("/root/a")).send("aside");
    h.provider.append("/root/a", say("never reached"));
    await look(h).until("the other is over", async () => (await other.record()).state === "ended");
    expect((await look(h).works("/root/a"))[0]!.state).toBe("awaiting_children");
    h.provider.append("/root/a", say("again"));
    h.provider.gates.open("deep");
    await asked.outcome();
  });

  test("WRK-4 `detached`, and a `replyTo` that is not the requester, are not waited for", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(
            spawn("d", "go", { detached: true }),
            spawn("listener", "listen", { detached: true, wake: "never" }),
          ),
          spawn("r", "go", { reply_to: "/root/listener" }),
          followUp("r", "again", { detached: true }),
          say("done"),
          say("woken by d"),
          say("woken by r"),
        ],
        "/root/listener": [say("listening"), say("heard")],
        "*": [gate("in"), say("ok"), say("ok")],
      },
    });
    await expect(h.ask("go")).resolves.toMatchObject({ ending: "completed", text: "done" });
    const works = await look(h).works();
    expect(
      works
        .filter(({ executorPath }) => ["/root/d", "/root/r"].includes(executorPath))
        .map(({ detached, holds }) => [detached, holds]),
    ).toEqual([
      [true, []],
      [true, []],
      [true, []],
    ]);
    h.provider.gates.open("in");
    await h.tree.idle();
    const results = (await look(h).mail("/root/listener")).filter(({ kind }) => kind === "final_answer");
    expect(results.map(({ resultOf }) => resultOf)).toEqual([
      works.find(({ executorPath }) => executorPath === "/root/r")!.id,
    ]);
  });

  test.for(["interrupt", "failure", "report"] as const)(
    "WRK-4 a work that ends by %s does not wait: its children go on, detached",
    async (how) => {
      await using h = await harness({
        store,
        scripts: {
          "/root/w": [
            spawn("c", "go"),
            ...(how === "report" ? [reportFirst("by report")] : []),
            gate("in"),
            ...(how === "failure" ? [fail({ code: "PROVIDER_REFUSED", accepted: true })] : []),
            say("done"),
            say("woken"),
          ],
          "/root/w/c": [gate("c"), say("ok")],
        },
      });
      const { agent, work } = await h.tree.root.spawn("w", "go");
      await h.provider.gates.arrived("in");
      await h.provider.gates.arrived("c");
      const child = await look(h).work("/root/w/c");
      expect(child.holds).toEqual(how === "report" ? [] : [work.id]);
      if (how === "interrupt") await agent.interrupt();
      h.provider.gates.open("in");
      const endings = { interrupt: "interrupted", failure: "provider_error", report: "completed" } as const;
      await expect(work.outcome()).resolves.toMatchObject({ ending: endings[how] });
      await look(h).until("its run is over", async () => (await agent.record()).currentRun === null);
      expect(await look(h).work("/root/w/c")).toMatchObject({ state: "running", holds: [] });
      expect((await look(h).events("work.detached", "/root/w/c")).length).toBe(1);
      h.provider.gates.open("c");
      await look(h).until(
        "the child has ended",
        async () => (await look(h).work("/root/w/c")).state === "ended",
      );
      await h.tree.idle();
      expect((await look(h).work("/root/w/c")).outcome!.ending).toBe("completed");
      // Detached, it wakes who has completed, and nobody else.
      expect((await look(h).runs("/root/w")).length).toBe(how === "report" ? 2 : 1);
    },
  );

  test("WRK-4 an awaiting work, its children and what they owe survive a crash", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("w", "go"),
          say("started"),
          say((context) => `got ${context.inputs.join().includes("seven")}`),
        ],
        "/root/w": [
          spawn("c", "go"),
          say("waiting"),
          say((context) => (context.inputs.join().includes("eight") ? "seven" : "nothing")),
        ],
        "/root/w/c": [gate("before", { beforeAcceptance: true }), say("eight")],
      },
    });
    const asked = await h.tree.root.send("go");
    await awaiting(h, "/root/w");
    await awaiting(h, "/root");
    await h.provider.gates.arrived("before");
    await h.crash();
    expect((await look(h).works()).map(({ state, openUnder }) => [state, openUnder])).toEqual([
      ["awaiting_children", 1],
      ["awaiting_children", 1],
      ["queued", 0],
    ]);
    h.provider.gates.open("before");
    await expect(h.tree.work(asked.id).outcome()).resolves.toMatchObject({
      ending: "completed",
      text: "got true",
    });
  });

  test("WRK-4 `codex`: no work waits", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex" },
      scripts: { "/root": [spawn("w", "go"), say("done")], "*": [gate("in"), say("ok")] },
    });
    await expect(h.ask("go")).resolves.toMatchObject({ ending: "completed", text: "done" });
    expect(await look(h).work("/root/w")).toMatchObject({ detached: true, holds: [], state: "running" });
    h.provider.gates.open("in");
    await h.tree.idle();
    expect((await look(h).runs("/root")).length).toBe(1);
  });
});
