/** OpenCode's server: that it talks to our model from a home of its own, can be stopped, and leaves nothing running. */
import { expect } from "vitest";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { openCodeHome, serveOpenCode } from "./support/opencode.ts";
import { testReal } from "./support/test-real.ts";

testReal("opencode", "answers over HTTP, is stopped, and is gone", async (openCode) => {
  await using server = await startModelServer();
  const home = openCodeHome(server);
  const { request, program } = await serveOpenCode(openCode, home);
  const { id } = await request("POST", "/session", {});
  const prompt = (text: string) =>
    request("POST", `/session/${id}/message`, { parts: [{ type: "text", text }] });

  const answer = await prompt(ask.text("seen it"));
  expect(answer.parts).toContainEqual(expect.objectContaining({ type: "text", text: "seen it" }));
  expect(server.requests.map((one) => [one.prompt, one.key])).toEqual([
    [ask.text("seen it"), "dummy-opencode"],
  ]);

  const turn = prompt(ask.hold());
  const held = await server.next((one) => one.prompt === ask.hold());
  await held.sent;
  await request("POST", `/session/${id}/abort`);
  expect(await held.closed).toBe("gone");
  expect((await turn).info.error).toMatchObject({ name: "MessageAbortedError" });

  // It does not mind the end of its input.
  expect(await program.end({ graceMs: 100 })).toEqual({ code: null, signal: "SIGKILL" });
  expect(home.processes()).toEqual([]);
});
