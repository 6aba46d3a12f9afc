/** The tool host inside real runs: refusals, own tools, and what an agent may call. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Json, JsonObject } from "../../../src/protocol/json.ts";
import { call, callWithText, say, spawn, type Script } from "../../../src/providers/scripted/script.ts";
import { defineTool, type ToolRun } from "../../../src/tools/define-tool.ts";
import { silentLogger } from "../../../src/platform/logger.ts";
import { errorOutput } from "../../../src/tools/refusal.ts";
import { harness, type Harness, type HarnessOptions } from "../../support/harness.ts";

interface Result {
  readonly name: string;
  readonly output: Json;
  readonly isError: boolean;
}

async function results(h: Harness, path = "/root"): Promise<Result[]> {
  const { threadId } = await h.tree.agent(path);
  const items = await h.tree.control.read((view) => view.items(threadId, 0, 200));
  return items.flatMap((item) => (item.kind === "tool_result" ? [item] : []));
}

/** Runs the root with one script and gives back what its calls answered. */
async function run(script: Script, options: HarnessOptions = {}): Promise<Result[]> {
  await using h = await harness({ ...options, scripts: { ...options.scripts, "/root": script } });
  const outcome = await h.ask("go");
  expect(outcome.ending).toBe("completed");
  return results(h);
}

async function only(entry: Parameters<typeof run>[0], options: HarnessOptions = {}): Promise<Result> {
  const [first] = await run(entry, options);
  return first!;
}

const codex = { runtime: { profile: "codex" } } as const;

describe("refusals are results", () => {
  test.each([
    ["broken JSON", callWithText("spawn_agent", '{"task_name": "a"'), /not JSON/],
    ["a list", callWithText("list_agents", "[]"), /one JSON object/],
    ["an unknown tool", call("fly", {}), /no tool `fly`; yours are spawn_agent, /],
    [
      "an older field",
      call("spawn_agent", { task_name: "a", message: "m", items: [] }),
      /unknown field `items`/,
    ],
    [
      "an older name",
      call("spawn_agent", { task_name: "a", message: "m", fork_context: true }),
      /use `fork_turns`/,
    ],
    [
      "a number for text",
      call("spawn_agent", { task_name: "a", message: "m", fork_turns: 3 }),
      /fork_turns: /,
    ],
    [
      "a cursor of nobody",
      call("wait_agent", { cursor: "zzz" }),
      /cursor is none that wait_agent has returned/,
    ],
    [
      "a mode of nobody",
      call("wait_agent", { mode: "most" }),
      /mode: must be `any`, `all` or a whole number/,
    ],
    ["a number for a result", call("report_result", { result: 7 }), /result: must be text, a JSON object or/],
    [
      "lists in lists without end",
      callWithText("report_result", `{"result": ${"[".repeat(5000)}${"]".repeat(5000)}}`),
      /result is nested more than 200 levels deep/,
    ],
    [
      "a reply address of nobody",
      call("spawn_agent", { task_name: "a", message: "m", reply_to: "No" }),
      /reply_to may only hold lowercase letters/,
    ],
    ["blank text", call("send_message", { target: "/root", message: " \n" }), /message is blank/],
    [
      "text that is not well formed",
      call("send_message", { target: "/root", message: "a\uD800" }),
      /message is not well-formed Unicode/,
    ],
    ["text for a number", call("wait_agent", { timeout_ms: "long" }), /timeout_ms: /],
    [
      "a parameter that names a caller",
      call("send_message", { target: "/root", message: "m", author: "/root/x" }),
      /unknown field `author`/,
    ],
    [
      "a schema that checks nothing",
      call("spawn_agent", { task_name: "a", message: "m", output_schema: { type: "spoon" } }),
      /output_schema/,
    ],
    ["a foreign artifact", call("read_artifact", { id: "art_000000000000000000000" }), /no artifact/],
    ["a run that is no id", call("interrupt_agent", { target: "/root", run_id: "latest" }), /run_id/],
  ])("%s", async (_name, step, text) => {
    const { output, isError } = await only([step, say("done")]);
    expect(isError).toBe(true);
    expect(output).toMatchObject({ code: "INVALID_ARGUMENT", error: expect.stringMatching(text) as string });
  });

  test("a huge name comes back cut, and the run goes on", async () => {
    const { output } = await only([spawn("x/".repeat(1_000_000), "m"), say("done")]);
    expect(JSON.stringify(output).length).toBeLessThan(4096);
  });

  test("argument faults come before all others, then fork, message, and name", async () => {
    const bad: JsonObject = { task_name: "Bad", message: " ", fork_turns: "banana" };
    const answers = await run([
      call("spawn_agent", { ...bad, extra: 1 }),
      call("spawn_agent", bad),
      call("spawn_agent", { ...bad, fork_turns: "none" }),
      call("spawn_agent", { ...bad, fork_turns: "none", message: "m" }),
      say("done"),
    ]);
    const texts = answers.map(({ output }) => (output as { error: string }).error);
    expect(texts[0]).toContain("unknown field `extra`");
    expect(texts[1]).toContain("fork_turns");
    expect(texts[2]).toContain("message is blank");
    expect(texts[3]).toContain("task_name");
  });
});

describe("outputs", () => {
  const script: Script = [
    spawn("worker", "count"),
    call("send_message", { target: "worker", message: "by the way" }),
    call("followup_task", { target: "worker", message: "again" }),
    call("interrupt_agent", { target: "worker" }),
    call("list_agents", {}),
    say("done"),
  ];
  const scripts = { "/root/worker": () => ({ acts: [{ kind: "stall" }] }) as const };

  test("carry ids in the default profile", async () => {
    await using h = await harness({ scripts: { ...scripts, "/root": script } });
    await h.tree.root.send("go");
    await h.tree.control.tree.watchers.until(async () =>
      (await results(h)).length === 5 ? true : undefined,
    );
    const [spawned, sent, followed, interrupted, listed] = (await results(h)).map(({ output }) => output);
    expect(spawned).toMatchObject({
      task_name: "/root/worker",
      work_id: expect.stringMatching(/^wrk_/) as string,
    });
    expect(sent).toMatchObject({
      message_id: expect.stringMatching(/^msg_/) as string,
      state: "accepted",
      seq: 2,
    });
    expect(followed).toMatchObject({
      agent: "/root/worker",
      work_id: expect.stringMatching(/^wrk_/) as string,
    });
    expect(interrupted).toMatchObject({
      touched: [{ agent: "/root/worker", previous_status: { kind: "running" } }],
    });
    expect(listed).toMatchObject({
      agents: [{ agent: "/root" }, { agent: "/root/worker", unread: expect.any(Number) as number }],
    });
  });

  test("are the reference's in its profile", async () => {
    await using h = await harness({ scripts: { ...scripts, "/root": script }, ...codex });
    await h.ask("go");
    const outputs = (await results(h)).map(({ output }) => output);
    expect(outputs).toEqual([
      { task_name: "/root/worker" },
      "",
      "",
      { previous_status: "running" },
      {
        agents: [
          { agent_name: "/root", agent_status: "running" },
          { agent_name: "/root/worker", agent_status: expect.anything() as Json },
        ],
      },
    ]);
  });

  test("a message to an idle agent warns that it rests", async () => {
    const answers = await run(
      [
        spawn("worker", "count"),
        call("wait_agent", { targets: ["worker"] }),
        call("send_message", { target: "worker", message: "m" }),
        say("done"),
      ],
      { scripts: { "/root/worker": [say("seven")] } },
    );
    expect(answers[2]?.output).toMatchObject({ warning: expect.stringContaining("Follow up") as string });
  });

  test("a list pages, and a prefix is meant as its caller means it", async () => {
    const answers = await run(
      [
        spawn("a", "m"),
        spawn("b", "m"),
        call("list_agents", { limit: 2 }),
        call("list_agents", { path_prefix: "b" }),
        say("done"),
      ],
      { scripts: { "/root/a": [say("1")], "/root/b": [say("2")] } },
    );
    expect(answers[2]?.output).toMatchObject({
      agents: [{ agent: "/root" }, { agent: "/root/a" }],
      next: expect.anything() as Json,
    });
    expect(answers[3]?.output).toMatchObject({ agents: [{ agent: "/root/b" }] });
  });

  test("a result can be reported without naming the only work", async () => {
    await using h = await harness({
      scripts: { "/root": [call("report_result", { result: { files: 7 } }), say("bye")] },
    });
    const outcome = await h.ask("go");
    expect(outcome).toMatchObject({ ending: "completed", text: '{"files":7}' });
    await h.tree.idle();
    expect((await results(h))[0]?.output).toMatchObject({ state: "completed" });
  });
});

describe("own tools", () => {
  const seen: ToolRun[] = [];
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: z.strictObject({ at: z.string() }),
    effects: ["read"],
    run: ({ at }, tool) => {
      seen.push(tool);
      if (at === "secret") throw new Error("password=hunter22 is wrong");
      return at === "much" ? "é".repeat(100_000) : { found: at };
    },
  });
  const write = defineTool({
    name: "write",
    input: z.strictObject({}),
    effects: ["write"],
    run: () => "written",
  });
  const tools = { runtime: { tools: [look, write] } };

  test("get a key of agent, run, step and call, and their output goes back", async () => {
    seen.length = 0;
    const { output, isError } = await only([call("look", { at: "x" }), say("done")], tools);
    expect({ output, isError }).toEqual({ output: { found: "x" }, isError: false });
    expect(seen[0]?.idempotencyKey).toMatch(/^thread_\w+:run_\w+:1:\S+$/);
  });

  test("that throw give an error result without secrets", async () => {
    const { output, isError } = await only([call("look", { at: "secret" }), say("done")], tools);
    expect(isError).toBe(true);
    expect((output as { error: string }).error).toMatch(/^look failed: password=\*\*\*/);
  });

  test("get their arguments checked", async () => {
    const { output } = await only([call("look", { from: "x" }), say("done")], tools);
    expect(output).toMatchObject({ code: "INVALID_ARGUMENT", details: { accepted: ["at"] } });
  });

  test("cannot flood a transcript: the whole is an artifact", async () => {
    await using h = await harness({
      ...tools,
      scripts: {
        "/root": [
          call("look", { at: "much" }),
          call("read_artifact", (context) => ({
            id: (context.lastToolResult as { artifact: string }).artifact,
            offset: 199_990,
          })),
          say("done"),
        ],
      },
    });
    await h.ask("go");
    const [long, read] = (await results(h)).map(({ output }) => output);
    expect(long).toMatchObject({ shortened: true, bytes: 200_000 });
    expect(JSON.stringify(long).length).toBeLessThan(8192);
    expect(read).toMatchObject({ text: "ééééé", bytes: 200_000, next_offset: null });
  });

  test("POL-1 outside of an agent's effects are neither offered nor carried out", async () => {
    await using h = await harness({
      ...tools,
      scripts: {
        "/root": [
          spawn("reader", "look", { effects: ["read"] }),
          call("wait_agent", { targets: ["reader"] }),
          say("done"),
        ],
        "/root/reader": [
          call("write", {}),
          say((context) => context.request.tools.map(({ name }) => name).join(" ")),
        ],
      },
    });
    await h.ask("go");
    expect((await results(h, "/root/reader"))[0]).toMatchObject({
      isError: true,
      output: { code: "AUTHORITY_ESCALATION_DENIED", details: { denied: ["write"], allowed: ["read"] } },
    });
    const reader = await h.tree.agent("/root/reader");
    const { text } = (await h.tree.control.read((view) => view.agent(reader.threadId)))!.lastOutcome!;
    expect(text).toBe(
      "spawn_agent send_message followup_task wait_agent interrupt_agent list_agents pin_context report_result read_artifact look",
    );
  });
});

test("what is no refusal is one line to the model and goes to the log whole", () => {
  const logged: object[] = [];
  const logger = { ...silentLogger, error: (entry: object) => void logged.push(entry) };
  const fault = new TypeError("cannot read the password=hunter22 of undefined");
  const output = errorOutput("spawn_agent", fault, logger);
  expect(output).toEqual({
    error: expect.stringMatching(/^INVARIANT_BROKEN: /) as string,
    code: "INVARIANT_BROKEN",
  });
  expect(JSON.stringify(output)).not.toContain("hunter22");
  expect(logged).toEqual([{ tool: "spawn_agent", err: fault }]);
});
