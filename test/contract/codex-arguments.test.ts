/** Arguments of the six tools under the `codex` profile: which faults are refused, in which order, and in what words. */
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readRoleFolder } from "../../src/policy/role-folder.ts";
import { loadRoles } from "../../src/policy/roles.ts";
import {
  call,
  followUp,
  gate,
  interrupt,
  list,
  say,
  send,
  spawn,
  together,
} from "../../src/providers/scripted/script.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { codeOf, codex, refusal, requestOf, requestsOf, turn } from "../support/codex.ts";
import { STORES } from "../support/harness.ts";
import { makeFolder } from "../support/stores.ts";

const MODELS = {
  small: { efforts: ["low", "high"], defaultEffort: "low" },
  large: { efforts: ["high", "highest"], defaultEffort: "high" },
};
const ANY = { "*": [say("done")] };

const detailsOf = (made: { output: unknown } | undefined): JsonObject =>
  (made!.output as { details: JsonObject }).details;

describe.each(STORES)("arguments on %s", (store) => {
  test("B5 a blank message is refused by spawn, send and follow-up, before the target is looked at", async () => {
    await using h = await codex(store, { scripts: ANY });
    await turn(h, spawn("worker", "look"));
    await h.tree.idle();
    const blank = ["", "   ", "\n\t"];
    const made = await turn(
      h,
      together(
        ...blank.flatMap((text) => [spawn("a", text), send("worker", text), followUp("nobody", text)]),
      ),
    );
    expect(made.map(codeOf)).toEqual(Array(9).fill("INVALID_ARGUMENT"));
    expect(new Set(made.map(refusal))).toEqual(new Set([refusal(made[0])]));
    expect(detailsOf(made[0])).toMatchObject({ argument: "message" });
    expect((await h.tree.counts()).registered).toBe(2);
    expect((await (await h.tree.agent("/root/worker")).mail()).rows).toHaveLength(1);
  });

  test("B6 a field that a tool does not know is refused, and the known ones are listed", async () => {
    await using h = await codex(store);
    const tools: readonly (readonly [string, JsonObject, readonly string[]])[] = [
      [
        "spawn_agent",
        { task_name: "a", message: "look", items: [] },
        ["task_name", "message", "fork_turns", "model", "reasoning_effort", "agent_type"],
      ],
      ["send_message", { target: "/root", message: "look", interrupt: true }, ["target", "message"]],
      ["followup_task", { target: "/root", message: "look", items: [] }, ["target", "message"]],
      ["wait_agent", { targets: ["/root"] }, ["timeout_ms"]],
      ["interrupt_agent", { target: "/root", cascade: "subtree" }, ["target"]],
      ["list_agents", { closed: true }, ["path_prefix"]],
    ];
    const made = await turn(h, together(...tools.map(([name, input]) => call(name, input))));
    expect(made.map(codeOf)).toEqual(Array(6).fill("INVALID_ARGUMENT"));
    for (const [at, [, input, known]] of tools.entries()) {
      const stranger = Object.keys(input).at(-1)!;
      expect(refusal(made[at])).toContain(`\`${stranger}\``);
      expect(refusal(made[at])).toContain(known.join(", "));
      expect(detailsOf(made[at])["accepted"]).toEqual(known);
    }
    const request = h.provider.requests("/root")[0]!;
    expect(request.tools.map((tool) => [tool.name, tool.parameters["required"] ?? []])).toEqual([
      ["spawn_agent", ["task_name", "message"]],
      ["send_message", ["target", "message"]],
      ["followup_task", ["target", "message"]],
      ["wait_agent", []],
      ["interrupt_agent", ["target"]],
      ["list_agents", []],
    ]);
    for (const [name, , known] of tools) {
      const { parameters } = request.tools.find((tool) => tool.name === name)!;
      expect(Object.keys(parameters["properties"] as JsonObject)).toEqual(known);
      expect(parameters["additionalProperties"]).toBe(false);
    }
  });

  test("B6 a missing name, a legacy field and a legacy fork field are refused by their names", async () => {
    await using h = await codex(store);
    const [nameless, legacy, items] = await turn(
      h,
      together(
        call("spawn_agent", { message: "look" }),
        call("spawn_agent", { task_name: "a", message: "look", fork_context: true }),
        call("send_message", { target: "/root", message: "look", items: [] }),
      ),
    );
    expect(refusal(nameless)).toContain("task_name");
    expect(refusal(legacy)).toContain("fork_turns");
    expect(refusal(items)).toContain("`items`");
    expect((await h.tree.counts()).registered).toBe(1);
  });

  test("B7 a fork count that is a word, zero, negative or no text is refused", async () => {
    await using h = await codex(store);
    const made = await turn(
      h,
      together(...["banana", "0", "-1", 3].map((turns) => spawn("a", "look", { fork_turns: turns }))),
    );
    expect(made.map(codeOf)).toEqual(Array(4).fill("INVALID_ARGUMENT"));
    for (const [at, shown] of ["banana", "0", "-1"].entries()) {
      expect(detailsOf(made[at])).toEqual({ argument: "fork_turns", value: shown });
    }
    // A number is a fault of the arguments, seen before what it would mean.
    expect(detailsOf(made[3])).toMatchObject({ tool: "spawn_agent", faults: [{ path: "fork_turns" }] });
    expect((await h.tree.counts()).registered).toBe(1);
  });

  test("B8 any spelling of all, and no text at all, forks everything", async () => {
    await using h = await codex(store, { scripts: ANY });
    await turn(h);
    const made = await turn(
      h,
      together(
        spawn("a", "look", { fork_turns: " ALL " }),
        spawn("b", "look", { fork_turns: "" }),
        spawn("c", "look"),
      ),
    );
    expect(made.map(({ isError }) => isError)).toEqual([false, false, false]);
    await h.tree.idle();
    const seen = ["a", "b", "c"].map((name) => requestOf(h, `/root/${name}`, 0));
    for (const request of seen) {
      expect(request.slice(0, 3)).toEqual(["[inherited]\ngo on", "said done", "[inherited]\ngo on"]);
      expect(request.at(-1)).toBe("NEW_TASK from /root: look");
    }
  });

  test("B10 an unknown model, effort or role is refused with the choices", async () => {
    using folder = makeFolder();
    symlinkSync(join(folder.path, "nowhere"), join(folder.path, "gone.md"));
    const { problems } = await readRoleFolder(folder.path);
    const roles = loadRoles({
      problems,
      files: [
        { file: "broken.md", bytes: new TextEncoder().encode("no front matter") },
        {
          file: "deep.md",
          bytes: new TextEncoder().encode("---\ndescription: Thinks long.\nmodel: large\n---\nThink."),
        },
      ],
    });
    await using h = await codex(store, { scripted: { models: MODELS }, runtime: { roles } });
    const [model, effort, otherEffort, role, broken, gone, roleEffort] = await turn(
      h,
      together(
        spawn("a", "look", { model: "giant" }),
        spawn("a", "look", { reasoning_effort: "highest" }),
        spawn("a", "look", { model: "large", reasoning_effort: "low" }),
        spawn("a", "look", { agent_type: "poet" }),
        spawn("a", "look", { agent_type: "broken" }),
        spawn("a", "look", { agent_type: "gone" }),
        spawn("a", "look", { agent_type: "deep", reasoning_effort: "low" }),
      ),
    );
    expect(detailsOf(model)).toEqual({ argument: "model", value: "giant", available: ["small", "large"] });
    expect(refusal(model)).toContain("small, large");
    expect(detailsOf(effort)).toMatchObject({ argument: "reasoning_effort", available: ["low", "high"] });
    expect(refusal(effort)).toContain("low, high");
    expect(detailsOf(otherEffort)).toMatchObject({ model: "large", available: ["high", "highest"] });
    expect(detailsOf(role)).toMatchObject({
      argument: "agent_type",
      value: "poet",
      available: ["deep", "default", "explorer", "worker"],
    });
    expect(refusal(broken)).toContain("not available");
    expect(refusal(broken)).toContain("broken.md");
    expect(refusal(gone)).toContain("not available");
    expect(refusal(gone)).toContain("gone.md");
    expect(detailsOf(roleEffort)).toMatchObject({
      model: "large",
      value: "low",
      available: ["high", "highest"],
    });
    expect((await h.tree.counts()).registered).toBe(1);
  });

  test("B15 a follow-up to the root is refused, by path and by id, and leaves it as it was", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/worker": [
          followUp("/root", "do more"),
          () => followUp(h.tree.root.threadId, "do more"),
          say("done"),
        ],
      },
    });
    await turn(h, spawn("worker", "look"));
    await h.tree.idle();
    const before = (await h.tree.root.mail()).rows;
    const results = requestOf(h, "/root/worker", -1).filter((words) => words.startsWith("followup_task →"));
    expect(results).toHaveLength(2);
    for (const words of results) expect(words).toContain("root agent cannot be given follow-ups");
    expect(before.map((mail) => mail.kind)).toEqual(["user", "final_answer"]);
    expect(requestsOf(h, "/root")).toBe(2);
    expect((await h.tree.root.runs()).rows).toHaveLength(1);
  });

  test("B50 of several faults of a spawn the first in order is told", async () => {
    await using h = await codex(store, {
      scripts: { "/root/busy": [gate("busy"), say("done")] },
      scripted: { models: MODELS },
      runtime: { limits: { running: 1 } },
    });
    const all = {
      task_name: "busy",
      message: " ",
      fork_turns: "banana",
      model: "giant",
      reasoning_effort: "loudest",
      agent_type: "poet",
    };
    const cured: readonly (readonly [string, JsonObject])[] = [
      ["items", { ...all, task_name: "BadName", items: [] }],
      ["fork_turns", { ...all, task_name: "BadName" }],
      ["message", { ...all, task_name: "BadName", fork_turns: "none" }],
      ["model", { ...all, task_name: "BadName", fork_turns: "none", message: "look" }],
      [
        "reasoning_effort",
        { ...all, task_name: "BadName", fork_turns: "none", message: "look", model: "small" },
      ],
      [
        "agent_type",
        {
          ...all,
          task_name: "BadName",
          fork_turns: "none",
          message: "look",
          model: "small",
          reasoning_effort: "low",
        },
      ],
      ["task_name", { task_name: "BadName", message: "look" }],
    ];
    const [, ...made] = await turn(
      h,
      spawn("busy", "look", { fork_turns: "none" }),
      together(
        ...cured.map(([, input]) => call("spawn_agent", input)),
        spawn("busy", "look", { fork_turns: "none" }),
      ),
    );
    for (const [at, [fault]] of cured.entries()) expect(refusal(made[at])).toContain(fault);
    expect(made.slice(1, 7).map((one) => detailsOf(one)["argument"])).toEqual(
      cured.slice(1).map(([fault]) => fault),
    );
    // The path is taken as well, but capacity is looked at first.
    expect(codeOf(made[7])).toBe("AGENT_LIMIT_REACHED");
    h.provider.gates.open("busy");
    await h.tree.idle();
    const [duplicate] = await turn(h, spawn("busy", "look", { fork_turns: "none" }));
    expect(codeOf(duplicate)).toBe("AGENT_EXISTS");
    expect((await h.tree.counts()).registered).toBe(2);
  });

  test("B50 of several faults of a follow-up the message comes first, then the target, the root, and capacity", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/idle": [say("done"), say("done")],
        "/root/busy": [gate("busy"), say("done")],
      },
      runtime: { limits: { running: 1 } },
    });
    await turn(h, spawn("idle", "look"));
    await h.tree.idle();
    await turn(h, spawn("busy", "look"));
    const made = await turn(
      h,
      together(
        followUp("nobody", " "),
        followUp("/root", " "),
        followUp("nobody", "look"),
        followUp("/root", "look"),
        followUp("idle", "look"),
      ),
    );
    expect(made.map(codeOf)).toEqual([
      "INVALID_ARGUMENT",
      "INVALID_ARGUMENT",
      "AGENT_NOT_FOUND",
      "INVALID_ARGUMENT",
      "AGENT_LIMIT_REACHED",
    ]);
    expect(refusal(made[0])).toBe(refusal(made[1]));
    expect(detailsOf(made[3])).toMatchObject({ argument: "target", value: "/root" });
    h.provider.gates.open("busy");
  });

  test("U-113 U-159 a prefix is resolved like a target, and one that names nobody lists nobody", async () => {
    await using h = await codex(store, { scripts: ANY });
    await turn(h, spawn("worker", "look"));
    await h.tree.idle();
    const [empty, slash, unknown, relative] = await turn(
      h,
      together(
        list({ path_prefix: "" }),
        list({ path_prefix: "/root/worker/" }),
        list({ path_prefix: "nobody" }),
        list({ path_prefix: "worker" }),
      ),
    );
    expect([empty, slash].map(codeOf)).toEqual(["INVALID_ARGUMENT", "INVALID_ARGUMENT"]);
    expect(detailsOf(empty)).toMatchObject({ argument: "path_prefix" });
    expect(unknown!.output).toEqual({ agents: [] });
    expect(relative!.output).toEqual({
      agents: [{ agent_name: "/root/worker", agent_status: { completed: "done" } }],
    });
    const [interrupted] = await turn(h, interrupt("/root/worker/"));
    expect(codeOf(interrupted)).toBe("INVALID_ARGUMENT");
  });
});
