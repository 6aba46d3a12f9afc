/** Status words and `list_agents` under the `codex` profile (agents.md 37, 41 to 43), and what a restart makes of them. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { scripted } from "../../src/providers/scripted/provider.ts";
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
import { defineTool } from "../../src/tools/define-tool.ts";
import { callsOf, codeOf, codex, listed, turn, untilIdle } from "../support/codex.ts";
import { STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

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

  test("U-51 U-82 after a restart a follow-up by path works, and the child has its model, provider and history", async () => {
    const other = scripted({ "/root/a": [say("seven"), say("eight")] }, { models: { giant: {}, dwarf: {} } });
    await using h = await codex(store);
    const runtime = await h.newRuntime({ providers: { scripted: h.provider, other } });
    h.provider.append(
      "/root",
      spawn("a", "count", { fork_turns: "none", model: "other/dwarf" }),
      say("done"),
    );
    const tree = await runtime.openTree({ provider: "scripted" });
    await (await tree.root.send("go on")).outcome();
    await tree.idle();
    await runtime.close();
    const later = await h.newRuntime({ providers: { scripted: h.provider, other } });
    const again = await later.openTree({ id: tree.id });
    h.provider.append("/root", followUp("a", "count again"), say("done"));
    await (await again.root.send("go on")).outcome();
    await again.idle();
    expect(other.requests("/root/a").map(({ model }) => model)).toEqual(["dwarf", "dwarf"]);
    expect(h.provider.requests("/root/a")).toEqual([]);
    const texts = other.requests("/root/a")[1]!.messages.map((message) => JSON.stringify(message));
    for (const text of ["count", "seven", "count again"]) expect(texts.join("\n")).toContain(text);
    await later.close();
  });

  test("U-52 a reload below an interrupted and unloaded parent keeps that parent's authority", async () => {
    const read = defineTool({
      name: "read",
      input: z.strictObject({}),
      effects: ["read"],
      run: () => "seen",
    });
    const write = defineTool({
      name: "write",
      input: z.strictObject({}),
      effects: ["write"],
      run: () => "done",
    });
    await using h = await codex(store, {
      scripts: {
        "/root/a": [spawn("b", "look"), gate("a"), say("never")],
        "/root/a/b": [say("seven"), say("eight")],
        "/root/c": [gate("c"), say("nine")],
        "/root/d": [gate("c"), say("ten")],
      },
      runtime: { tools: [read, write], limits: { running: 2 } },
    });
    await h.tree.root.spawn("a", "have it looked at", { effects: ["read"] });
    await h.provider.gates.arrived("a");
    await untilIdle(h, "/root/a/b");
    await turn(h, interrupt("a"));
    await turn(h, spawn("c", "count"), spawn("d", "count"));
    await h.provider.gates.arrived("c", 2);
    const gone = (await h.tree.list()).agents.filter(({ resident }) => !resident).map(({ path }) => path);
    expect(gone).toEqual(["/root/a", "/root/a/b"]);
    h.provider.gates.open("c");
    await h.tree.idle();
    await turn(h, followUp("/root/a/b", "look again"));
    await h.tree.idle();
    expect((await (await h.tree.agent("/root/a")).summary()).resident).toBe(false);
    const tools = h.provider.requests("/root/a/b").map((request) => request.tools.map(({ name }) => name));
    expect(tools.map((names) => [names.includes("read"), names.includes("write")])).toEqual([
      [true, false],
      [true, false],
    ]);
  });

  test("U-53 U-87 a tree that is opened again loads nobody; a closed child stays closed and its siblings are there", async () => {
    await using h = await codex(store, { scripts: { "*": [say("seven"), say("eight")] } });
    await turn(h, together(spawn("a", "count"), spawn("b", "count"), spawn("c", "count")));
    await h.tree.idle();
    await (await h.tree.agent("/root/c")).close();
    await h.crash();
    expect((await h.tree.list()).agents.map(({ path, resident }) => [path, resident])).toEqual([
      ["/root", false],
      ["/root/a", false],
      ["/root/b", false],
    ]);
    await (await h.tree.agent("/root/a")).close();
    const [closed, toldClosed, sibling] = await turn(
      h,
      followUp("c", "more"),
      followUp("a", "more"),
      followUp("b", "more"),
    );
    expect([closed, toldClosed].map(codeOf)).toEqual(["AGENT_CLOSED", "AGENT_CLOSED"]);
    expect(sibling!.isError).toBe(false);
    await h.tree.idle();
    expect((await (await h.tree.agent("/root/b")).record()).lastOutcome?.text).toBe("eight");
  });

  test("U-41 U-48 U-114 a closed agent is shut down, told so, and left out of the list", async () => {
    await using h = await codex(store, { scripts: { "*": [say("seven")] } });
    await turn(h, together(spawn("a", "count"), spawn("b", "count")));
    await h.tree.idle();
    await (await h.tree.agent("/root/a")).close();
    const [agents, previous] = await turn(h, list(), interrupt("a"));
    expect(listed(agents).map(([path]) => path)).toEqual(["/root", "/root/b"]);
    expect(previous!.output).toEqual({ previous_status: "shutdown" });
    expect((await new Look(h).events("agent.closed")).map(({ path }) => path)).toEqual(["/root/a"]);
  });

  test("U-85 U-86 closing the root closes all below it, whoever was closed before", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [spawn("b", "count"), say("asked")],
        "/root/a/b": [gate("b"), say("never")],
        "*": [say("seven")],
      },
    });
    await turn(h, together(spawn("a", "count"), spawn("c", "count")));
    await h.provider.gates.arrived("b");
    await untilIdle(h, "/root/c");
    await (await h.tree.agent("/root/c")).close();
    expect(await h.tree.root.close()).toEqual(["/root/a/b", "/root/a", "/root"]);
    expect((await h.tree.records()).map(({ path, state }) => [path, state])).toEqual(
      ["/root", "/root/a", "/root/a/b", "/root/c"].map((path) => [path, "closed"]),
    );
    expect((await h.tree.list()).agents).toEqual([]);
  });

  test("U-49 a user's message answers with the id of a work, and is recorded", async () => {
    await using h = await codex(store, { scripts: { "/root": [say("hello")] } });
    const work = await h.tree.root.send("hi");
    expect(work.id).toMatch(/^wrk_\w+$/);
    await work.outcome();
    expect(
      (await h.tree.root.transcript()).map((item) => (item.kind === "user" ? item.text : item.kind)),
    ).toContain("hi");
  });

  test("U-35 U-42 U-43 calls after the runtime is closed are typed errors", async () => {
    await using h = await codex(store);
    await h.runtime.close();
    const late = [
      () => h.tree.root.send("hi"),
      () => h.tree.root.spawn("a", "count"),
      () => h.runtime.openTree({ id: h.tree.id }),
    ];
    for (const call of late) await expect(call()).rejects.toMatchObject({ code: "RUNTIME_CLOSED" });
  });
});
