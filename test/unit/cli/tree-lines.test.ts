/** Agents of providers' own in the lines of a tree. */
import { expect, test } from "vitest";
import { treeLines } from "../../../src/cli/screen/tree-lines.ts";
import type { AgentSummary, NativeAgent } from "../../../src/runtime/tree-reader.ts";
import type { Terminal } from "../../../src/cli/terminal.ts";

test("C8.1 agents of a provider's own stand under their agent, with their state and without control characters", () => {
  const terminal = { paint: (_style: string, text: string) => text, room: 80 } as unknown as Terminal;
  const agent = (path: string) =>
    ({ path, status: { kind: "idle" }, unread: 0, tokens: 0, lastActiveAt: 0 }) as unknown as AgentSummary;
  const native = (prompt: string, outcome: NativeAgent["outcome"]): NativeAgent => ({
    under: "/root/a" as NativeAgent["under"],
    prompt,
    outcome,
    text: "",
  });
  const lines = treeLines(terminal, {
    agents: ["/root", "/root/a", "/root/b"].map(agent),
    now: 0,
    live: false,
    natives: [native("look\u001b[2J at\nit", "completed"), native("long ".repeat(40), null)],
  });
  expect(lines.map((line) => line.slice(0, 24).trimEnd())).toMatchObject([
    expect.stringContaining("agent"),
    expect.stringContaining("/root"),
    expect.stringContaining("a"),
    expect.stringMatching(/^ +~ look at it \(comp/u),
    expect.stringMatching(/^ +~ long long/u),
    expect.stringContaining("b"),
  ]);
  expect(lines[4]!.length).toBeLessThanOrEqual(80);
  expect(lines[4]).toMatch(/… \(running\)$/u);
});
