/** Status words and `list_agents` under the `codex` profile (agents.md 37, 41 to 43), and what a restart makes of them. */
import { describe, expect, test } from "vitest";
import {
  fail,
  followUp,
  gate,
  interrupt,
  list,
  say,
  spawn,
  together,
  end,
} from "../../src/providers/scripted/script.ts";
import { callsOf, codex, listed, requestOf, turn, untilIdle } from "../support/codex.ts";
import { STORES } from "../support/harness.ts";

describe.each(STORES)("status on %s", (store) => {
  test("U-37 U-38 U-39 U-40 running, completed with and without text, errored and interrupted have their words", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/done": [say("seven")],
        "/root/empty": [end()],
        "/root/failed": [fail({ code: "PROVIDER_REFUSED", message: "no such thing" })],
        "/root/cut": [gate("cut"), say("never")],
        "/root/works": [gate("works"), say("eight")],
      },
      runtime: { limits: { running: 5 } },
    });
    const names = ["done", "empty", "failed", "cut", "works"];
    const [, , , , , first] = await turn(h, together(...names.map((name) => spawn(name, "count"))), list());
    // Whoever was spawned is listed at once, loaded or on its way.
    expect(listed(first).map(([path]) => path)).toEqual([
      "/root",
      ...names.toSorted().map((name) => `/root/${name}`),
    ]);
    for (const name of ["done", "empty", "failed"]) await untilIdle(h, `/root/${name}`);
    const [, agents] = await turn(h, interrupt("cut"), list());
    expect(Object.fromEntries(listed(agents))).toEqual({
      "/root": "running",
      "/root/cut": "interrupted",
      "/root/done": { completed: "seven" },
      "/root/empty": { completed: null },
      "/root/failed": { errored: expect.stringContaining("no such thing") as unknown as string },
      "/root/works": "running",
    });
    h.provider.gates.open("works");
  });

  test("U-46 after a restart only the root is listed, and whoever has not run since is pending", async () => {
    await using h = await codex(store, {
      scripts: { "/root/a": [say("seven"), list(), say("eight")], "/root/b": [say("nine")] },
    });
    await turn(h, together(spawn("a", "count"), spawn("b", "count")));
    await h.tree.idle();
    await h.crash();
    const [agents] = await turn(h, list());
    expect(listed(agents)).toEqual([["/root", "running"]]);
    await h.crash();
    // The user reaches the child before the root has run again.
    const child = await h.tree.agent("/root/a");
    await (await child.send("list them")).outcome();
    const [seen] = await callsOf(h, "/root/a");
    expect(listed(seen)).toEqual([
      ["/root", "pending_init"],
      ["/root/a", "running"],
    ]);
  });

  test("U-51 after a restart a follow-up by path works, and the child has its history", async () => {
    await using h = await codex(store, {
      scripts: { "/root/a": [say("seven"), say("eight")] },
      scripted: { models: { small: { efforts: ["low", "high"], defaultEffort: "low" }, large: {} } },
    });
    await turn(h, spawn("a", "count", { fork_turns: "none", model: "large" }));
    await h.tree.idle();
    await h.crash();
    await turn(h, followUp("a", "count again"));
    await h.tree.idle();
    expect(requestOf(h, "/root/a", 1)).toEqual([
      "NEW_TASK from /root: count",
      "said seven",
      "NEW_TASK from /root: count again",
    ]);
    expect(h.provider.requests("/root/a").map(({ model }) => model)).toEqual(["large", "large"]);
  });

  test("U-114 a closed agent is left out of the list", async () => {
    await using h = await codex(store, { scripts: { "*": [say("seven")] } });
    await turn(h, together(spawn("a", "count"), spawn("b", "count")));
    await h.tree.idle();
    await (await h.tree.agent("/root/a")).close();
    const [agents, previous] = await turn(h, list(), interrupt("a"));
    expect(listed(agents).map(([path]) => path)).toEqual(["/root", "/root/b"]);
    expect(previous!.output).toEqual({ previous_status: "shutdown" });
  });
});
