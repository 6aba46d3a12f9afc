/** Role files as people have them for Claude and OpenCode, read as they are: what they name that is not here harms nobody. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { loadRoles } from "../../src/policy/roles.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

const look = defineTool({ name: "look", input: z.strictObject({}), effects: ["read"], run: () => "seen" });
const RESULTS = ["report_result", "read_artifact"];

const CLAUDE = `---
name: code-reviewer
description: Expert code review specialist. Proactively reviews code for quality: use it right after changing code.
tools: Read, Grep, Glob, Bash
disallowedTools: Task
model: sonnet
color: cyan
---

You are a senior code reviewer ensuring high standards of code quality and security.

When invoked:
1. Run git diff to see recent changes
2. Focus on modified files
`;

const OPENCODE = `---
description: Reviews code for best practices and potential issues
mode: subagent
model: anthropic/claude-sonnet-4-20250514
reasoningEffort: high
temperature: 0.1
tools:
  write: false
  edit: false
  bash: false
permission:
  task: deny
---

You are in code review mode. Provide constructive feedback without making direct changes.
`;

const roles = loadRoles(
  [
    { file: ".claude/agents/code-reviewer.md", bytes: new TextEncoder().encode(CLAUDE) },
    { file: ".opencode/agent/review.md", bytes: new TextEncoder().encode(OPENCODE) },
    {
      file: ".claude/agents/planner.md",
      bytes: new TextEncoder().encode("---\nname: planner\ndescription: Plans.\nmodel: opus\n---\nPlan."),
    },
  ],
  [look],
);

function opened(store: (typeof STORES)[number], models: object, tree: object = {}): Promise<Harness> {
  return harness({
    store,
    scripts: { "*": [repeat(say("done"))] },
    scripted: { models: models as Record<string, object> },
    runtime: { tools: [look], roles },
    tree,
  });
}

const offered = (h: Harness, path: string) =>
  h.provider
    .requests(path)
    .at(-1)!
    .tools.map(({ name }) => name);

describe.each(STORES)("role files of other programs on %s", (store) => {
  test("SPN-7 POL-2 a model that is not here is passed over and reported, and the agent is made on its parent's", async () => {
    await using h = await opened(store, { small: { efforts: ["low"], defaultEffort: "low" } });
    expect(roles.faults).toEqual([]);
    expect(roles.warnings).toEqual([
      ".opencode/agent/review.md: temperature: is not known and has no effect",
    ]);
    for (const [role, ignored] of [
      ["code-reviewer", [{ field: "model", asked: "sonnet", effect: "ignored" }]],
      [
        "review",
        [
          { field: "model", asked: "anthropic/claude-sonnet-4-20250514", effect: "ignored" },
          // It was chosen for that model, and the other one has no such effort.
          { field: "effort", asked: "high", effect: "ignored" },
        ],
      ],
    ] as const) {
      const name = role.replace("-", "_");
      const { agent, work } = await h.tree.root.spawn(name, "review", { role });
      expect((await work.outcome()).ending).toBe("completed");
      const { config } = await agent.record();
      expect(config).toMatchObject({ role, model: "small", effort: "low", adjustments: ignored });
      const told = (await h.tree.log(0)).find(
        ({ type, path }) => type === "agent.spawned" && path === agent.path,
      );
      expect(told!.data["adjustments"]).toEqual(ignored);
    }
    // What a spawn itself asks for stays strict.
    await expect(
      h.tree.root.spawn("strict", "review", { role: "code-reviewer", model: "sonnet" }),
    ).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  test("SPN-7 a model that is here under the name that the file gives is taken", async () => {
    await using h = await opened(store, { small: {}, opus: {} });
    const { agent, work } = await h.tree.root.spawn("planner", "plan", { role: "planner" });
    await work.outcome();
    expect((await agent.record()).config).toMatchObject({ model: "opus", adjustments: [], leaf: false });
    expect(h.provider.requests("/root/planner")[0]!.model).toBe("opus");
  });

  test("POL-2 a role that may not start agents there is a leaf here, after a crash and on another model too", async () => {
    await using h = await opened(store, { small: {}, large: {} }, { role: "code-reviewer" });
    for (const role of ["code-reviewer", "review"]) {
      const name = role.replace("-", "_");
      const { agent, work } = await h.tree.root.spawn(name, "review", { role });
      await work.outcome();
      expect((await agent.record()).config.leaf).toBe(true);
      expect(offered(h, agent.path)).toEqual([...RESULTS, "look"]);
    }
    await h.crash();
    await h.ask("go");
    expect(offered(h, "/root")).toEqual([...RESULTS, "look"]);
    const root = await h.tree.root.record();
    await h.runtime.threads.select(root.threadId, { provider: "scripted", model: "large" });
    await h.ask("go on");
    expect(h.provider.requests("/root").at(-1)!.model).toBe("large");
    expect(offered(h, "/root")).toEqual([...RESULTS, "look"]);
    expect((await h.tree.root.record()).config).toMatchObject({ model: "large", leaf: true });
  });
});
