/** Claude's SDK: that it talks to our model from a home of its own, can be stopped, and leaves nothing running. */
import { expect } from "vitest";
import { delay, systemClock } from "../../src/platform/clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { claudeHome, type ClaudeMessage, type ClaudeModule, claudeOptions } from "./support/claude.ts";
import { testReal } from "./support/test-real.ts";

testReal("claude", "answers, is stopped, and is gone", async (claude) => {
  await using server = await startModelServer();
  const home = claudeHome(server);
  const { query } = (await import(claude.module!)) as ClaudeModule;
  const prompts = new TransformStream<object, object>(undefined, undefined, { highWaterMark: 10 });
  const writer = prompts.writable.getWriter();
  const say = (content: string) =>
    writer.write({ type: "user", message: { role: "user", content }, parent_tool_use_id: null });
  const session = query({ prompt: prompts.readable, options: claudeOptions(claude, home) });
  const messages = session[Symbol.asyncIterator]();
  const result = async (): Promise<ClaudeMessage> => {
    for (;;) {
      const { value, done } = await messages.next();
      if (done === true) throw new Error("it has ended");
      if (value.type === "result") return value;
    }
  };

  await say(ask.text("seen it"));
  expect(await result()).toMatchObject({ subtype: "success", result: "seen it" });
  expect(server.requests.map(({ prompt, key }) => [prompt, key])).toEqual([
    [ask.text("seen it"), "dummy-claude"],
  ]);

  await say(ask.hold());
  const held = await server.next(({ prompt }) => prompt === ask.hold());
  const stopped = result();
  await held.sent;
  await session.interrupt();
  expect(await held.closed).toBe("gone");
  expect(await stopped).toMatchObject({ subtype: "error_during_execution" });

  await writer.close();
  // At its end it throws what a result has told before.
  await expect(messages.next()).rejects.toThrow(/error result/);
  await waitUntil("it is gone", () => home.processes().length === 0, {
    step: () => delay(systemClock, 50),
  });
});
