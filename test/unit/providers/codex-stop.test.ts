/** A turn of Codex that is to end: told to stop, or closed with its session, at whatever moment (INT-3, INT-7). */
import { describe, expect, test } from "vitest";
import { EFFECTS } from "../../../src/protocol/agent.ts";
import type { NativeSession } from "../../../src/providers/port.ts";
import { refOf } from "../../../src/providers/codex/translate.ts";
import { codexAppServer } from "../../support/codex-app-server.ts";

const THREAD = refOf("thread");
const POLICY = { model: null, effort: null, effects: EFFECTS, workspace: null, maxOutputTokens: null };
const TURN = { threadId: "thread", turn: { id: "turn" } };

/** Its failure is for those who wait for it. */
function start(session: NativeSession, note?: string): Promise<unknown> {
  const preambles = note === undefined ? [] : [{ kind: "note", channel: "developer", text: note } as const];
  const input = { thread: THREAD, key: "k", userMessage: "go", preambles, policy: POLICY };
  const started = session.startTurn({ ...input, signal: new AbortController().signal });
  started.catch(() => undefined);
  return started;
}

async function open() {
  const server = codexAppServer();
  const session = await server.session();
  const before = server.methods().length;
  /** All of it that ends a turn. */
  const asked = () => server.methods().slice(before);
  const begun = async (): Promise<void> => {
    void start(session);
    (await server.next("turn/start")).answer({ turn: { id: "turn" } });
    server.tell("turn/started", TURN);
    await server.clock.settle();
  };
  return { server, session, asked, begun };
}

describe("a turn of Codex", () => {
  test("INT-3 that is stopped before it has a name is as soon as it has begun", async () => {
    const { server, session, asked } = await open();
    void start(session);
    const starting = await server.next("turn/start");
    const stopped = session.interruptTurn(THREAD, "k");
    starting.answer({ turn: { id: "turn" } });
    await server.clock.settle();
    // Named, it cannot be stopped yet.
    expect(asked()).toEqual(["turn/start"]);
    server.tell("turn/started", TURN);
    const stopping = await server.next("turn/interrupt");
    expect(stopping.params).toEqual({ threadId: "thread", turnId: "turn" });
    stopping.answer({});
    await stopped;
  });

  test("INT-3 that is refused needs no stop", async () => {
    const { server, session, asked } = await open();
    const started = start(session);
    const starting = await server.next("turn/start");
    const stopped = session.interruptTurn(THREAD, "k");
    starting.answer({});
    await expect(started).rejects.toMatchObject({ code: "PROVIDER_PROTOCOL" });
    await stopped;
    expect(asked()).toEqual(["turn/start"]);
  });

  test("INT-7 that is under way is stopped before its session leaves it", async () => {
    const { server, session, asked, begun } = await open();
    await begun();
    const closed = session.close();
    const stopping = await server.next("turn/interrupt");
    await server.clock.settle();
    expect(asked()).toEqual(["turn/start", "turn/interrupt"]);
    stopping.answer({});
    await closed;
    expect(asked()).toEqual(["turn/start", "turn/interrupt", "thread/unsubscribe"]);
  });

  test("INT-7 that does not hear of it is waited for no longer than the grace time", async () => {
    const { server, session, asked, begun } = await open();
    await begun();
    const closed = session.close();
    await server.next("turn/interrupt");
    await server.clock.advance(1_999);
    expect(asked()).not.toContain("thread/unsubscribe");
    await server.clock.advance(1);
    await closed;
    expect(asked()).toContain("thread/unsubscribe");
  });

  test("INT-7 whose session is closed before it has begun is stopped as soon as it has", async () => {
    const { server, session, asked } = await open();
    void start(session);
    const starting = await server.next("turn/start");
    const closed = session.close();
    await server.clock.settle();
    expect(asked()).toEqual(["turn/start"]);
    starting.answer({ turn: { id: "turn" } });
    server.tell("turn/started", TURN);
    (await server.next("turn/interrupt")).answer({});
    await closed;
    expect(asked()).toEqual(["turn/start", "turn/interrupt", "thread/unsubscribe"]);
  });

  test("INT-7 whose session is closed before it was sent is not sent", async () => {
    const { server, session, asked } = await open();
    const started = start(session, "a note");
    const injecting = await server.next("thread/inject_items");
    const closed = session.close();
    injecting.answer({});
    await expect(started).rejects.toMatchObject({ code: "PROVIDER_REFUSED" });
    await closed;
    expect(asked()).toEqual(["thread/inject_items", "thread/unsubscribe"]);
  });
});
