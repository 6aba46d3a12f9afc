/** Paths and references under the `codex` profile: what is taken, what is refused, and what a bare name means. */
import { describe, expect, test } from "vitest";
import { say, send, spawn, together } from "../../src/providers/scripted/script.ts";
import { callsOf, codeOf, codex, refusal, turn } from "../support/codex.ts";
import { STORES } from "../support/harness.ts";

const IDLE = { "*": [say("done"), say("done again")] };

describe.each(STORES)("names on %s", (store) => {
  test("B2 six malformed names get six refusals, and each leaves nothing behind", async () => {
    await using h = await codex(store);
    const names = ["BadName", "bad-name", "", "root", "a/b", ".."];
    const made = await turn(h, together(...names.map((name) => spawn(name, "look"))));
    expect(made.map(codeOf)).toEqual(Array(6).fill("INVALID_ARGUMENT"));
    expect(new Set(made.map(refusal)).size).toBe(6);
    expect(await h.tree.counts()).toMatchObject({ registered: 1, resident: 1 });
  });

  test("B3 names that begin with a digit, are long, or merely look reserved are taken", async () => {
    await using h = await codex(store, { scripts: IDLE });
    const names = ["9_9", "a".repeat(300), "morpheus"];
    const made = await turn(h, together(...names.map((name) => spawn(name, "look"))));
    expect(made.map(({ output }) => output)).toEqual(names.map((name) => ({ task_name: `/root/${name}` })));
    await h.tree.idle();
    const agents = (await h.tree.list()).agents.map(({ path, status }) => [path, status]);
    expect(agents).toEqual([
      ["/root", { kind: "idle", last: "completed" }],
      ...names.map((name) => [`/root/${name}`, { kind: "idle", last: "completed" }]),
    ]);
  });

  test("B4 a path stays taken, whether its agent is loaded or not", async () => {
    await using h = await codex(store, { scripts: IDLE, runtime: { limits: { running: 1 } } });
    await turn(h, spawn("worker", "look"));
    await h.tree.idle();
    expect((await (await h.tree.agent("/root/worker")).summary()).resident).toBe(true);
    const [loaded] = await turn(h, spawn("worker", "look"));
    await turn(h, spawn("other", "look"));
    await h.tree.idle();
    expect((await (await h.tree.agent("/root/worker")).summary()).resident).toBe(false);
    const [unloaded] = await turn(h, spawn("worker", "look"));
    expect([loaded, unloaded].map(codeOf)).toEqual(["AGENT_EXISTS", "AGENT_EXISTS"]);
    expect(refusal(unloaded)).toContain("/root/worker");
    expect((await h.tree.counts()).registered).toBe(3);
  });

  test("B12 eight references that name nobody get their refusals", async () => {
    await using h = await codex(store, { scripts: IDLE });
    const foreign = await h.runtime.openTree();
    const other = await foreign.root.spawn("lost", "look");
    await turn(h, spawn("dup", "look"));
    const references = [
      "",
      "Dup",
      "../x",
      "/other/x",
      "/root/dup/",
      "root",
      "/morpheus",
      other.agent.threadId,
    ];
    const made = await turn(h, together(...references.map((reference) => send(reference, "hello"))));
    expect(made.map(codeOf)).toEqual([...Array(7).fill("INVALID_ARGUMENT"), "AGENT_NOT_FOUND"]);
    // `/other/x` and `/morpheus` share their fault: they do not start with `/root`.
    expect(new Set(made.map(refusal)).size).toBe(7);
    expect(refusal(made[3])).toBe(refusal(made[6]));
    expect(refusal(made[4])).toContain("may not end with `/`");
    expect((await other.agent.mail()).rows.filter((mail) => mail.kind === "message")).toEqual([]);
  });

  test("B13 a bare name means an agent below the caller, even the caller's own name", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/b": [send("b", "are you there?"), spawn("b", "look"), send("b", "now?"), say("done")],
        "/root/b/b": [say("done")],
      },
    });
    await turn(h, spawn("b", "look"));
    await h.tree.idle();
    const [missing, spawned, sent] = await callsOf(h, "/root/b");
    expect(codeOf(missing)).toBe("AGENT_NOT_FOUND");
    expect(refusal(missing)).toContain("/root/b/b");
    expect(spawned).toMatchObject({ output: { task_name: "/root/b/b" }, isError: false });
    expect(sent).toMatchObject({ output: "", isError: false });
    const [, hello] = (await (await h.tree.agent("/root/b/b")).mail()).rows;
    expect(hello).toMatchObject({ kind: "message", content: { text: "now?" } });
  });
});
