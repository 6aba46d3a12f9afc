/** The definitions as models see them: fields per profile, and texts that say what is needed. */
import { describe, expect, test } from "vitest";
import type { AgentConfig } from "../../../src/protocol/agent.ts";
import { DEFAULT_LIMITS } from "../../../src/protocol/limits.ts";
import { PROFILES } from "../../../src/protocol/profile.ts";
import {
  COLLABORATION_TOOLS,
  CONTEXT_TOOLS,
  RESULT_TOOLS,
  THREAD_TOOLS,
} from "../../../src/protocol/tools-words.ts";
import type { BuiltIn } from "../../../src/tools/built-in.ts";
import { agentBuiltIns, builtInsFor, hostBuiltIns } from "../../../src/tools/built-ins.ts";

function all(profile: keyof typeof PROFILES): readonly BuiltIn[] {
  const { collaboration, results } = agentBuiltIns(PROFILES[profile], DEFAULT_LIMITS);
  return [...collaboration, ...results];
}

/** `field` for a required one, `field?` for another. */
function fields(tools: readonly BuiltIn[]): Record<string, string[]> {
  return Object.fromEntries(
    tools.map(({ name, parameters }) => {
      const { properties, required = [] } = parameters as { properties: object; required?: string[] };
      return [name, Object.keys(properties).map((field) => (required.includes(field) ? field : `${field}?`))];
    }),
  );
}

describe("the reference's profile", () => {
  test("has the six tools with the reference's fields and no other", () => {
    expect(fields(all("codex"))).toEqual({
      spawn_agent: ["task_name", "message", "fork_turns?", "model?", "reasoning_effort?", "agent_type?"],
      send_message: ["target", "message"],
      followup_task: ["target", "message"],
      wait_agent: ["timeout_ms?"],
      interrupt_agent: ["target"],
      list_agents: ["path_prefix?"],
    });
  });

  test("gives a host's wait the cursor without which its mail could not be acknowledged", () => {
    expect(fields(hostBuiltIns(PROFILES.codex, DEFAULT_LIMITS))["wait_agent"]).toEqual([
      "timeout_ms?",
      "cursor?",
    ]);
  });
});

describe("the default profile", () => {
  test("adds optional fields only", () => {
    const narrow = fields(all("codex"));
    const wide = fields(all("default"));
    for (const [name, reference] of Object.entries(narrow)) {
      expect(wide[name]?.slice(0, reference.length)).toEqual(reference);
      expect(wide[name]?.slice(reference.length).filter((field) => !field.endsWith("?"))).toEqual([]);
    }
  });

  test("offers the tools in their stable order", () => {
    expect(all("default").map(({ name }) => name)).toEqual([...COLLABORATION_TOOLS, ...RESULT_TOOLS]);
    expect(hostBuiltIns(PROFILES.default, DEFAULT_LIMITS).map(({ name }) => name)).toEqual([
      ...COLLABORATION_TOOLS,
      "read_artifact",
    ]);
  });
});

describe("between trees", () => {
  const { context, threads } = agentBuiltIns(PROFILES.default, DEFAULT_LIMITS, "all");

  test("pins and thread tools stand between the six and those for results, in their stable order", () => {
    const config = { leaf: false } as AgentConfig;
    const all = builtInsFor(config, agentBuiltIns(PROFILES.default, DEFAULT_LIMITS, "all"));
    expect(all.map(({ name }) => name)).toEqual([
      ...COLLABORATION_TOOLS,
      ...CONTEXT_TOOLS,
      ...THREAD_TOOLS,
      ...RESULT_TOOLS,
    ]);
    const leaf = builtInsFor(
      { ...config, leaf: true },
      agentBuiltIns(PROFILES.default, DEFAULT_LIMITS, "all"),
    );
    expect(leaf.map(({ name }) => name)).toEqual([...RESULT_TOOLS]);
    expect(agentBuiltIns(PROFILES.codex, DEFAULT_LIMITS, "all")).toMatchObject({ context: [], threads: [] });
  });

  test("their fields", () => {
    expect(fields([...context, ...threads])).toEqual({
      pin_context: ["section", "text"],
      create_thread: ["threads", "idempotency_key?"],
      send_message_to_thread: ["thread_id", "message", "idempotency_key?"],
      read_thread: ["thread_id?", "before?", "limit?"],
      wait_threads: ["thread_ids", "timeout_ms?", "cursor?"],
      fork_thread: ["thread_id?", "run_id?", "title?", "strategy?", "message?", "idempotency_key?"],
      merge_back: ["fork_thread_id?", "idempotency_key?"],
    });
  });

  test.each([...context, ...threads].map((tool) => [tool.name, tool] as const))(
    "%s is a closed object, and says when to use it and when not",
    (_name, tool) => {
      expect(tool.parameters).toMatchObject({ type: "object", additionalProperties: false });
      expect(JSON.stringify(tool.parameters)).not.toContain(String(Number.MAX_SAFE_INTEGER));
      expect(tool.description).toMatch(/Use it .*Do not use it /);
      expect(tool.description.length).toBeLessThan(1600);
    },
  );
});

describe.each(["default", "codex"] as const)("every definition of %s", (profile) => {
  test.each(all(profile).map((tool) => [tool.name, tool] as const))(
    "%s is a closed object",
    (_name, tool) => {
      expect(tool.parameters).toMatchObject({ type: "object", additionalProperties: false });
      expect(tool.parameters).not.toHaveProperty("$schema");
      expect(JSON.stringify(tool.parameters)).not.toContain(String(Number.MAX_SAFE_INTEGER));
    },
  );

  test.each(all(profile).map((tool) => [tool.name, tool] as const))(
    "%s says when to use it",
    (_name, tool) => {
      expect(tool.description).toMatch(/Use it /);
      expect(tool.description.length).toBeLessThan(1600);
    },
  );
});

test("the wait's text names the bounds that are in force", () => {
  const limits = { ...DEFAULT_LIMITS, waitDefaultMs: 111, waitMinimumMs: 22, waitMaximumMs: 3333 };
  const wait = agentBuiltIns(PROFILES.default, limits).collaboration.find(
    ({ name }) => name === "wait_agent",
  );
  expect(JSON.stringify(wait?.parameters)).toMatch(/111.*22.*3333/);
});
