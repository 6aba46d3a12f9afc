/** Agents that speak ACP: that each talks to our model from a home of its own, can be stopped, and leaves nothing running. */
import { describe, expect } from "vitest";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { claudeHome } from "./support/claude.ts";
import { codexHome } from "./support/codex.ts";
import type { Home } from "./support/home.ts";
import { openCodeHome } from "./support/opencode.ts";
import type { ProgramName } from "./support/programs.ts";
import { speak } from "./support/rpc.ts";
import { testReal } from "./support/test-real.ts";

interface Agent {
  readonly name: ProgramName;
  readonly home: (server: ModelServer) => Home;
  readonly args?: readonly string[];
  /** A mode in which it asks for nothing. */
  readonly mode?: string;
  /** It never hangs up on the model, and goes on when its input has ended, until it is killed. */
  readonly stays?: boolean;
}

const agents: readonly Agent[] = [
  { name: "claude-acp", home: claudeHome },
  { name: "codex-acp", home: codexHome, mode: "agent-full-access" },
  { name: "zed-codex-acp", home: (server) => codexHome(server, { tables: [] }), stays: true },
  { name: "opencode", home: openCodeHome, args: ["acp"] },
];

describe.for(agents)("$name", ({ name, home: makeHome, args = [], mode, stays = false }) => {
  testReal(name, "answers over ACP, is stopped, and is gone", async (agent) => {
    await using server = await startModelServer();
    const home = makeHome(server);
    const { request, told, peer, program } = await speak(agent, home, { args, versioned: true });
    const { protocolVersion } = await request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    expect(protocolVersion).toBe(1);
    const { sessionId } = await request("session/new", { cwd: home.workspace, mcpServers: [] });
    if (mode !== undefined) await request("session/set_mode", { sessionId, modeId: mode });
    const prompt = (text: string) =>
      request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    const said = (): string =>
      told.all
        .filter(({ params }) => params.update?.sessionUpdate === "agent_message_chunk")
        .map(({ params }) => params.update.content.text)
        .join("");

    expect(await prompt(ask.text("seen it"))).toMatchObject({ stopReason: "end_turn" });
    // Some put warnings of their own around the answer.
    expect(said()).toContain("seen it");
    expect(server.requests.map((one) => one.prompt)).toEqual([ask.text("seen it")]);

    const turn = prompt(ask.hold());
    const held = await server.next((one) => one.prompt === ask.hold());
    await held.sent;
    await peer.notify("session/cancel", { sessionId });
    if (!stays) expect(await held.closed).toBe("gone");
    expect(await turn).toMatchObject({ stopReason: "cancelled" });

    await peer.end({ graceMs: stays ? 100 : 30_000 });
    expect(await program.ended).toEqual(
      stays ? { code: null, signal: "SIGKILL" } : { code: 0, signal: null },
    );
    expect(home.processes()).toEqual([]);
  });
});
