/** Role files of ours, of Claude and of OpenCode, and what becomes of broken ones. */
import { mkdtemp, mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readRoleFolder } from "../../../src/policy/role-folder.ts";
import { parseRoleFile } from "../../../src/policy/role-file.ts";
import { BUILT_IN_ROLES, chooseRole, loadRoles } from "../../../src/policy/roles.ts";
import type { RejectedError } from "../../../src/protocol/errors.ts";

const tools = [
  { name: "look", effects: ["read"] as const },
  { name: "change", effects: ["read", "write"] as const },
  { name: "run", effects: ["execute"] as const },
  { name: "everything" },
];

const file = (name: string, text: string) => ({
  file: `roles/${name}.md`,
  bytes: new TextEncoder().encode(text),
});
const parse = (text: string, name = "reviewer") => parseRoleFile(file(name, text), tools);

function fault(text: string | Uint8Array): RejectedError {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  try {
    parseRoleFile({ file: "roles/reviewer.md", bytes }, tools);
  } catch (error) {
    return error as RejectedError;
  }
  throw new Error("was read");
}

describe("a role file", () => {
  test("of our own", () => {
    const { role, warnings } = parse(
      "---\nname: critic\ndescription: Reads closely.\nmodel: big\neffort: high\ntools: [look, spawn_agent]\neffects: [read]\n---\n\nBe strict.\n\nBe kind.\n",
    );
    expect(role).toEqual({
      name: "critic",
      description: "Reads closely.",
      instructions: "Be strict.\n\nBe kind.",
      model: "big",
      effort: "high",
      tools: ["look"],
      denied: [],
      effects: ["read"],
      leaf: false,
      authority: [{ field: "effects", asked: "read" }],
      ignored: [],
      source: "roles/reviewer.md",
    });
    expect(warnings).toEqual([]);
  });

  test("of Claude", () => {
    const { role, warnings } = parse(
      "---\nname: code-reviewer\ndescription: Use this after edits: it reviews.\ntools: Read, Grep\nmodel: inherit\ncolor: blue\npermissionMode: plan\n---\nReview.\r\n",
    );
    expect(role).toMatchObject({
      name: "code-reviewer",
      description: "Use this after edits: it reviews.",
      model: null,
      tools: ["look"],
      effects: ["read"],
      instructions: "Review.",
    });
    expect(warnings).toEqual([]);
  });

  test("of OpenCode", () => {
    const { role, warnings } = parse(
      "---\ndescription: Plans.\nmode: subagent\nmodel: near/big\ntools:\n  bash: false\n  look: true\npermission:\n  edit: deny\n---\nPlan.",
      "planner",
    );
    expect(role).toMatchObject({
      name: "planner",
      model: "near/big",
      tools: null,
      denied: ["change", "run", "everything"],
      effects: ["read", "network"],
    });
    expect(warnings).toEqual([]);
  });

  test.for([
    ["tools: Read, hammer", ["hammer"], ["look"]],
    ["tools: hammer, chisel", ["hammer", "chisel"], []],
    ["tools: [hammer]", ["hammer"], []],
    ["tools: [look, Bash]", [], ["look"]],
    ["tools: []", [], []],
    ["tools: {'*': false, run: true}", [], ["run"]],
    ["tools: {hammer: true}", ["hammer"], null],
    ["tools: '*'", [], null],
  ] as const)("grants nothing to what it does not know: %s", ([line, warned, granted]) => {
    const { role, warnings } = parse(`---\ndescription: d\n${line}\n---\n`);
    expect(role.tools).toEqual(granted);
    expect(warnings).toHaveLength(warned.length);
    for (const name of warned) expect(warnings.join("\n")).toContain(`\`${name}\``);
  });

  test.for([
    ["tools: Read, Grep, Glob, TodoWrite", ["read"]],
    ["tools: Read, mcp__github__get_issue", ["read"]],
    ["tools: [look, Bash]", ["read", "execute"]],
    ["tools: {'*': false, read: true}", ["read"]],
    ["tools: {'*': false, run: true}", ["execute"]],
    ["tools: {read: true, '*': false}", []],
    ["tools: {'*': true, read: true}", null],
    ["tools: [look]", null],
  ] as const)("POL-2 keeps the ceiling of what it does know: %s", ([line, effects]) => {
    expect(parse(`---\ndescription: d\n${line}\n---\n`).role.effects).toEqual(effects);
  });

  test.for([
    ["disallowedTools: Task", true, 0],
    ["disallowedTools: [Write, Agent]", true, 0],
    ["disallowedTools: spawn_agent", true, 0],
    ["disallowedTools: Task(Explore)", false, 1],
    ["disallowedTools: 'Ta*'", true, 0],
    ["tools: Task, Read", false, 0],
    ["tools: Read, Grep", true, 0],
    ["tools: [Read, Agent]", false, 0],
    ["tools: Read, spawn_agent", false, 0],
    ["tools: Read, Task(Explore)", true, 1],
    ["tools: 'Read, Ta*'", true, 1],
    ["tools: 'Read, *'", false, 0],
    ["tools: [look]", false, 0],
    ["tools: {'ta*': false}", true, 0],
    ["tools: {'ta*': false, task: true}", false, 0],
    ["tools: {task: false}", true, 0],
    ["tools: {task: true}", false, 0],
    ["tools: {'*': false, read: true}", true, 0],
    ["tools: {'*': false, task: true}", false, 0],
    ["permission: {task: deny}", true, 0],
    ["permission: {task: allow}", false, 0],
    ["permission: {task: ask}", true, 1],
    ["permission: {task: {'*': deny, 'review-*': allow}}", true, 1],
    ["permission: {'*': deny, task: allow}", false, 0],
    ["permission: {task: allow, '*': deny}", true, 0],
    ["permission: {'ta*': deny}", true, 0],
    ["permission: {'*': deny, 'ta*': allow}", false, 0],
    ["permission: deny", true, 0],
  ] as const)("is a leaf where it may not start agents: %s", ([line, leaf, warned]) => {
    const { role, warnings } = parse(`---\ndescription: d\n${line}\n---\n`);
    expect(role.leaf).toBe(leaf);
    expect(warnings).toHaveLength(warned);
  });

  test("has a tool of the host's own with such a name as that tool", () => {
    const input = file("a", "---\ndescription: d\ntools: {task: false}\n---\n");
    const { role } = parseRoleFile(input, [...tools, { name: "task", effects: ["read"] }]);
    expect(role).toMatchObject({ denied: ["task"], leaf: false });
  });

  test("takes away what it names", () => {
    expect(parse("---\ndescription: d\ndisallowedTools: change, Bash\n---\n").role).toMatchObject({
      denied: ["change", "run", "everything"],
      effects: ["read", "write", "network"],
    });
  });

  test.for([
    ["disallowedTools: 'Web*'", ["read", "write", "execute"]],
    ["disallowedTools: '*Edit'", ["read", "execute", "network"]],
    ["tools: {'web*': false}", ["read", "write", "execute"]],
    ["permission: {'*it*': deny}", ["read", "execute", "network"]],
    ["permission: {'mine_*': deny}", null],
  ] as const)("takes away all that a pattern stands for: %s", ([line, effects]) => {
    expect(parse(`---\ndescription: d\n${line}\n---\n`).role.effects).toEqual(effects);
  });

  test("denies what it would have to ask for", () => {
    const { role, warnings } = parse(
      "---\ndescription: d\npermission: {bash: {'git *': allow}, '*': ask, read: allow}\n---\n",
    );
    expect(role.effects).toEqual(["read"]);
    expect(warnings).toHaveLength(2);
  });

  test("that asks for servers or approvals is told that it gets none", () => {
    const { role } = parse("---\ndescription: d\nmcp_servers: {a: {url: x}}\napproval_policy: never\n---\n");
    expect(role.ignored.map(({ field }) => field)).toEqual(["mcp_servers", "approval_policy"]);
  });

  test("warns of keys it does not know", () => {
    const { warnings } = parse("---\ndescription: d\nmaxTurns: 3\n---\n");
    expect(warnings).toEqual(["roles/reviewer.md: maxTurns: is not known and has no effect"]);
  });

  test.for([
    ["no front matter", "Just text.", "front matter"],
    ["an open front matter", "---\ndescription: d\n", "front matter"],
    ["broken YAML", "---\ndescription: [a\n---\n", "front matter"],
    ["a list instead of keys", "---\n- a\n---\n", "front matter"],
    ["a doubled key", "---\ndescription: a\ndescription: b\n---\n", "front matter"],
    ["more than a page of keys", `---\ndescription: d\nprompt: ${"p".repeat(16_400)}\n---\n`, "front matter"],
    ["lists in lists without end", `---\ndescription: d\na: ${"[".repeat(16_000)}\n---\n`, "front matter"],
    ["anchors without end", `---\ndescription: d\na: [${"&b ".repeat(5000)}]\n---\n`, "front matter"],
    ["keys in keys", `---\ndescription: d\n${"? ".repeat(400)}\n---\n`, "front matter"],
    ["an alias bomb", `---\ndescription: d\na: &a [1]\nb: [${"*a,".repeat(200)}]\n---\n`, "front matter"],
    ["no description", "---\nname: a\n---\n", "description"],
    ["an empty description", "---\ndescription: ' '\n---\n", "description"],
    ["a description of another type", "---\ndescription: 3\n---\n", "description"],
    ["a name that is none", "---\nname: a b\ndescription: d\n---\n", "name"],
    ["tools of another type", "---\ndescription: d\ntools: 3\n---\n", "tools"],
    ["an effect that is none", "---\ndescription: d\neffects: [fly]\n---\n", "effects"],
    ["a model of another type", "---\ndescription: d\nmodel: [a]\n---\n", "model"],
    ["bytes that are not UTF-8", new Uint8Array([45, 45, 45, 10, 0xff, 0xfe]), "contents"],
    ["10 MB", new Uint8Array(10_000_000), "contents"],
  ] as const)("with %s is refused by file and field", ([, text, field]) => {
    const error = fault(text);
    expect(error.code).toBe("INVALID_ARGUMENT");
    expect(error.details).toMatchObject({ file: "roles/reviewer.md", field });
    expect(error.message).toMatch(/^roles\/reviewer\.md: \S/);
  });
});

describe("a set of roles", () => {
  test("has three built-in ones with words of their own", () => {
    expect(BUILT_IN_ROLES.map(({ name }) => name)).toEqual(["default", "explorer", "worker"]);
    expect(new Set(BUILT_IN_ROLES.map(({ description }) => description)).size).toBe(3);
  });

  test("lets a file shadow a built-in role", () => {
    const set = loadRoles([file("explorer", "---\ndescription: Mine.\n---\n")], tools);
    expect(chooseRole("explorer", set)?.description).toBe("Mine.");
  });

  test("loads the others when one is broken, which is then not available", () => {
    const set = loadRoles([file("worker", "broken"), file("good", "---\ndescription: d\n---\n")], tools);
    expect(set.faults).toHaveLength(1);
    expect(chooseRole("good", set)?.name).toBe("good");
    expect(() => chooseRole("worker", set)).toThrow(/`worker` is not available .*roles\/worker\.md/);
  });

  test("keeps the first of two roles with one name and reports the second", () => {
    const set = loadRoles(
      [
        file("a", "---\nname: x\ndescription: first\n---\n"),
        file("b", "---\nname: x\ndescription: second\n---\n"),
      ],
      tools,
    );
    expect(chooseRole("x", set)?.description).toBe("first");
    expect(set.faults.map(({ details }) => details)).toEqual([{ file: "roles/b.md", field: "name" }]);
    expect(set.faults[0]?.message).toContain("roles/a.md");
  });

  test("leaves out what is disabled", () => {
    const set = loadRoles([file("off", "---\ndescription: d\ndisable: true\n---\n")], tools);
    expect(() => chooseRole("off", set)).toThrow(/not available/);
  });

  test("names the roles there are when one is unknown", () => {
    const set = loadRoles([], tools);
    expect(() => chooseRole("nobody", set)).toThrow(
      /`nobody` is unknown; available roles: default, explorer, worker/,
    );
    expect(() => chooseRole("toString", set)).toThrow(/unknown/);
    expect(chooseRole(null, set)).toBeNull();
  });
});

describe("a folder of roles", () => {
  test("gives its Markdown files in order, and what cannot be read as a problem", async () => {
    const folder = await mkdtemp(join(tmpdir(), "roles-"));
    try {
      await writeFile(join(folder, "b.md"), "---\ndescription: b\n---\n");
      await writeFile(join(folder, "a.md"), "---\ndescription: a\n---\n");
      await writeFile(join(folder, "note.txt"), "no role");
      await mkdir(join(folder, "folder.md"));
      await writeFile(join(folder, "huge.md"), "");
      await truncate(join(folder, "huge.md"), 10_000_000);
      const set = loadRoles(await readRoleFolder(folder), tools);
      expect([...set.roles.keys()]).toEqual(["default", "explorer", "worker", "a", "b"]);
      expect(set.faults.map(({ details }) => details["field"])).toEqual(["contents"]);
      expect(() => chooseRole("huge", set)).toThrow(/not available/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("that does not exist holds none", async () => {
    expect(await readRoleFolder(join(tmpdir(), "no-such-folder-of-roles"))).toEqual({
      files: [],
      problems: [],
    });
  });
});
