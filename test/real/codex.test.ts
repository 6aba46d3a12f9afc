/** Codex's app server: that it talks to our model from a home of its own, can be stopped, and leaves nothing running. */
import { expect } from "vitest";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { codexHome, speakCodex } from "./support/codex.ts";
import { testReal } from "./support/test-real.ts";

testReal("codex", "answers, calls a tool of ours, is stopped, and is gone", async (codex) => {
  await using server = await startModelServer();
  const home = codexHome(server);
  const { request, told, peer, program } = await speakCodex(codex, home, {
    onRequest: async (method, params) => {
      expect(method).toBe("item/tool/call");
      expect(params).toMatchObject({ namespace: "ours", tool: "look", arguments: { at: "a" } });
      return { contentItems: [{ type: "inputText", text: "saw a" }], success: true };
    },
  });
  const inputSchema = { type: "object", properties: { at: { type: "string" } }, required: ["at"] };
  const look = { type: "function", name: "look", description: "Looks at one thing.", inputSchema };
  const { thread } = await request("thread/start", {
    cwd: home.workspace,
    dynamicTools: [{ type: "namespace", name: "ours", description: "Tools of ours.", tools: [look] }],
  });
  const turn = async (text: string): Promise<string> => {
    const input = [{ type: "text", text }];
    return (await request("turn/start", { threadId: thread.id, input })).turn.id;
  };
  const ended = (id: string) =>
    told.next(({ method, params }) => method === "turn/completed" && params.turn.id === id);
  const said = (): string[] =>
    told.all.flatMap(({ method, params }) =>
      method === "item/completed" && params.item.type === "agentMessage" ? [params.item.text] : [],
    );

  const first = await turn(`${ask.call("look", { at: "a" })} ${ask.text("seen it")}`);
  expect((await ended(first)).params.turn.status).toBe("completed");
  expect(said()).toEqual(["seen it"]);
  expect(server.requests.map(({ step, key }) => [step, key])).toEqual([
    [0, "dummy-codex"],
    [1, "dummy-codex"],
  ]);

  const second = await turn(ask.hold());
  const held = await server.next(({ prompt }) => prompt === ask.hold());
  await held.sent;
  await request("turn/interrupt", { threadId: thread.id, turnId: second });
  expect(await held.closed).toBe("gone");
  expect((await ended(second)).params.turn.status).toBe("interrupted");

  await peer.end({ graceMs: 30_000 });
  expect(await program.ended).toEqual({ code: 0, signal: null });
  expect(home.processes()).toEqual([]);
});
