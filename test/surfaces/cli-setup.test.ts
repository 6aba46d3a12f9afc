/** `coppice setup` on files as clients have them: with comments, other servers, and forms that nobody else may touch. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parse } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { makeFolder } from "../support/stores.ts";
import { ended } from "../support/cli-here.ts";

let home = "";

beforeEach(() => {
  const folder = makeFolder();
  home = folder.path;
  vi.stubEnv("HOME", home);
  for (const name of ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"]) vi.stubEnv(name, "");
  // No agent of this machine's is to be found.
  vi.stubEnv("PATH", "/nowhere");
  onTestFinished(() => {
    vi.unstubAllEnvs();
    folder[Symbol.dispose]();
  });
});

function write(name: string, text: string): string {
  const path = join(home, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const setUp = (...args: readonly string[]) => ended(["setup", ...args]);

/** The file of each, and what of it is the entry's. */
const CLIENTS = [
  ["claude-code", ".claude.json", ["mcpServers"]],
  ["opencode", ".config/opencode/opencode.json", ["mcp"]],
  ["vscode", ".config/Code/User/mcp.json", ["servers"]],
  ["cursor", ".cursor/mcp.json", ["mcpServers"]],
  ["gemini", ".gemini/settings.json", ["mcpServers"]],
  ["zed", ".config/zed/settings.json", ["context_servers"]],
  ["windsurf", ".codeium/windsurf/mcp_config.json", ["mcpServers"]],
] as const;

test.for(CLIENTS)(
  "%s gets the server beside what it has, once, and loses nothing with it",
  async ([client, name, within]) => {
    const text = `{\n\t// mine\n\t"${within[0]}": {\n\t\t"other": { "command": "x" }, // stays\n\t},\n\t"theme": "dark"\n}\n`;
    const path = write(name, text);
    chmodSync(path, 0o640);
    const dry = await setUp(client, "--dry-run");
    expect(dry).toMatchObject({ exit: 0, out: expect.stringContaining("would get the server") });
    expect(readFileSync(path, "utf8")).toBe(text);

    expect(await setUp(client)).toMatchObject({ exit: 0, aside: "" });
    const written = readFileSync(path, "utf8");
    expect(written).toContain("// mine");
    expect(written).toContain("// stays");
    const servers = parse(written, [], { allowTrailingComma: true })[within[0]];
    expect(Object.keys(servers)).toEqual(["other", "coppice"]);
    const words = [servers.coppice.command, servers.coppice.args ?? []].flat();
    expect(words.slice(-2)).toEqual([expect.stringMatching(/bin\.ts$/), "mcp"]);
    expect(statSync(path).mode & 0o777).toBe(0o640);

    expect((await setUp(client)).out).toContain("has it already");
    const changed = await setUp(client, "--provider", "echo", "--json");
    expect(JSON.parse(changed.out)).toMatchObject({ client, file: path, scope: "user", action: "changed" });
    expect(await setUp(client, "--undo")).toMatchObject({ exit: 0 });
    expect(parse(readFileSync(path, "utf8"), [], { allowTrailingComma: true })).toEqual({
      [within[0]]: { other: { command: "x" } },
      theme: "dark",
    });
    expect((await setUp(client, "--undo")).out).toContain("has not got it");
  },
);

test.for([...CLIENTS, ["codex", ".codex/config.toml", []] as const])(
  "%s that has no file gets one, and has none again afterwards",
  async ([client, name]) => {
    expect((await setUp(client)).exit).toBe(0);
    expect(readFileSync(join(home, name), "utf8")).toContain("coppice");
    expect((await setUp(client, "--undo")).exit).toBe(0);
    expect(existsSync(join(home, name))).toBe(false);
  },
);

const TOML = `# mine
model = "gpt-5" # stays

[mcp_servers.other]
command = "x"
args = ["[mcp_servers.coppice]"]

[projects."/home/me"]
trust_level = "trusted"
`;

test("codex gets a table beside what it has, and loses nothing with it", async () => {
  const path = write(".codex/config.toml", TOML);
  await setUp("codex", "--provider", "echo", "--model", "a b");
  const written = readFileSync(path, "utf8");
  expect(written.startsWith(TOML.trimEnd())).toBe(true);
  const { mcp_servers: servers } = parseToml(written) as { mcp_servers: Record<string, { args: string[] }> };
  expect(servers["coppice"]!.args.slice(-5)).toEqual(["mcp", "--provider", "echo", "--model", "a b"]);
  write(".codex/config.toml", `${written}\n[mcp_servers.coppice.env]\nA = "b"\n\n[last]\nx = 1\n`);
  await setUp("codex");
  const again = parseToml(readFileSync(path, "utf8")) as {
    mcp_servers: Record<string, object>;
    last: object;
  };
  expect(again.mcp_servers["coppice"]).not.toHaveProperty("env");
  expect(again.last).toEqual({ x: 1 });
  await setUp("codex", "--undo");
  expect(parseToml(readFileSync(path, "utf8"))).toEqual({ ...parseToml(TOML), last: { x: 1 } });
  expect(readFileSync(path, "utf8")).toContain("# mine");
});

test.for([
  ["codex", ".codex/config.toml", 'mcp_servers = { coppice = { command = "x" } }\n', "by hand"],
  ["codex", ".codex/config.toml", 'mcp_servers.coppice.command = "x"\n', "by hand"],
  ["codex", ".codex/config.toml", "[[[\n", "Mend it"],
  ["cursor", ".cursor/mcp.json", '{ "mcpServers": {', "line 1"],
  ["cursor", ".cursor/mcp.json", "[]", "no object"],
  ["cursor", ".cursor/mcp.json", '{ "mcpServers": 7 }', "by hand"],
] as const)(
  "%s: a file in a form that is not understood is left as it is (%s %s)",
  async ([client, name, text, why]) => {
    const path = write(name, text);
    for (const more of [[], ["--dry-run"]]) {
      const { exit, aside, out } = await setUp(client, ...more);
      expect({ exit, out }).toEqual({ exit: 2, out: "" });
      expect(aside).toContain(path);
      expect(aside).toContain("left as it is");
      expect(aside).toContain(why);
    }
    expect(readFileSync(path, "utf8")).toBe(text);
    expect(readdirSync(dirname(path))).toHaveLength(1);
  },
);

test.for([
  ["claude-code", ".claude.json", '{ "theme": "dark" }'],
  ["claude-code", ".claude.json", "{}"],
  ["claude-code", ".claude.json", '{ "mcpServers": {} }'],
  ["codex", ".codex/config.toml", "# nothing\n"],
] as const)(
  "%s: what is not there is not taken out, and nothing with it (%s %s)",
  async ([client, name, text]) => {
    const path = write(name, text);
    expect(await setUp(client, "--undo")).toMatchObject({
      exit: 0,
      out: expect.stringContaining("has not got it"),
    });
    expect(readFileSync(path, "utf8")).toBe(text);
  },
);

test("comments below the table of codex stay where they are", async () => {
  const path = write(".codex/config.toml", TOML);
  await setUp("codex");
  const below = "\n# of the next one\n# [commented.out]\n# x = 1\n\n[last]\nx = 1\n# the end\n";
  writeFileSync(path, `${readFileSync(path, "utf8")}${below}`);
  await setUp("codex", "--provider", "echo");
  for (const line of below.split("\n")) expect(readFileSync(path, "utf8")).toContain(line);
  await setUp("codex", "--undo");
  for (const line of below.split("\n")) expect(readFileSync(path, "utf8")).toContain(line);
  expect(parseToml(readFileSync(path, "utf8"))).toEqual({ ...parseToml(TOML), last: { x: 1 } });
});

test("what is not UTF-8 is left as it is", async () => {
  const path = write(".cursor/mcp.json", "");
  const bytes = Buffer.from('{ "name": "J\xfcrgen" }', "latin1");
  writeFileSync(path, bytes);
  expect(await setUp("cursor")).toMatchObject({ exit: 2, aside: expect.stringContaining("left as it is") });
  expect(readFileSync(path)).toEqual(bytes);
});

test("paths are written whole: the client is started elsewhere", async () => {
  await setUp("cursor", "--config", "mine.ts", "--store", "mine.db");
  const { args } = JSON.parse(readFileSync(join(home, ".cursor/mcp.json"), "utf8")).mcpServers.coppice;
  expect(args.slice(-4)).toEqual(["--config", resolve("mine.ts"), "--store", resolve("mine.db")]);
});

test("a file that is a link stays one", async () => {
  const path = write("kept/settings.json", "{}\n");
  mkdirSync(join(home, ".gemini"));
  symlinkSync(path, join(home, ".gemini/settings.json"));
  await setUp("gemini");
  expect(readFileSync(path, "utf8")).toContain("coppice");
});

test("what cannot be meant is refused with what can", async () => {
  expect(await setUp("emacs")).toMatchObject({
    exit: 2,
    aside: expect.stringContaining("choose claude-code"),
  });
  expect(await setUp("windsurf", "--scope", "project")).toMatchObject({ exit: 2 });
  expect(await setUp("codex", "--provider", " ")).toMatchObject({ exit: 2 });
});

test("doctor starts what the clients would start, and says what comes of it", async () => {
  await setUp("cursor", "--store", join(home, "store.db"));
  write(".gemini/settings.json", '{ "mcpServers": { "coppice": { "command": "/nowhere/coppice" } } }');
  write(".codex/config.toml", "[[[");
  const folder = process.cwd();
  const project = join(home, "project");
  write("project/.mcp.json", '{ "mcpServers": { "coppice": { "command": "touch", "args": ["ran"] } } }');
  process.chdir(project);
  onTestFinished(() => process.chdir(folder));
  await setUp("vscode", "--scope", "project");
  const { out } = await ended(["doctor", "--json"]);
  expect(JSON.parse(out).clients).toMatchObject([
    {
      client: "claude-code",
      scope: "project",
      tried: { fault: expect.stringContaining("not started from here") },
    },
    { client: "codex", tried: { fault: expect.stringContaining("left as it is") } },
    { client: "vscode", scope: "project", tried: { tools: 13 } },
    { client: "cursor", scope: "user", tried: { tools: 13 } },
    { client: "gemini", tried: { fault: expect.stringContaining("no program") } },
  ]);
  expect(existsSync(join(home, "store.db"))).toBe(false);
  expect(existsSync(join(project, "ran"))).toBe(false);
});
