/** How a turn of OpenCode's begins, is attributed its answers, and has its own questions answered, when the server is in the way. */
import { describe, expect, test } from "vitest";
import type { Clock } from "../../../src/platform/clock.ts";
import { nativeCall } from "../../../src/providers/native-call.ts";
import { refOf } from "../../../src/providers/opencode/translate.ts";
import { virtualClock } from "../../../src/testing/virtual-clock.ts";
import type { FakeOpenCode } from "../../support/opencode.ts";
import { decide, failure, open, until } from "../../support/opencode-session.ts";

describe("answers of a turn", { timeout: 60_000 }, () => {
  test("are known by what they answer, however far its clock is behind; so are those of a conversation", async () => {
    // Names of messages sort by their time: those of the server's come before the prompt's.
    const clock = virtualClock({ start: Date.now() + 86_400_000 });
    const { session, thread, turn } = await open({}, { clock });
    for (const say of ["one", "two"]) {
      const events = await turn([{ say }]);
      expect(events.filter(({ type }) => type === "item")).toMatchObject([{ item: { text: say } }]);
      expect(events.at(-1)).toMatchObject({ outcome: "completed" });
    }
    const { turns } = await nativeCall(session, "readThread")(thread.ref);
    expect(turns.map(({ items }) => items.at(-1)!.text)).toEqual(["one", "two"]);
  });

  test("are at least one: a turn that ends without any has failed", async () => {
    const { turn } = await open();
    expect((await turn([{ nothing: true }])).at(-1)).toMatchObject({
      outcome: "failed",
      error: { code: "PROVIDER_PROTOCOL" },
    });
    expect((await turn([])).at(-1)).toMatchObject({ outcome: "completed" });
  });
});

describe("a turn that is not taken", { timeout: 60_000 }, () => {
  test("P4 is refused with what was said of it before its request was answered", async () => {
    const { session, events, start } = await open({ refuses: "early" });
    const starting = failure(start([]));
    expect((await events.next()).value).toMatchObject({ type: "request" });
    await session.respond(refOf("early"), { kind: "answer", text: "yes" });
    expect(await starting).toMatchObject({ code: "PROVIDER_UNREACHABLE", message: "OpenCode: no" });
  });

  test("is given up at the deadline", async () => {
    const virtual = virtualClock();
    let timers = 0;
    const clock: Clock = {
      ...virtual,
      setTimer(ms, callback, options) {
        timers += 1;
        return virtual.setTimer(ms, callback, options);
      },
    };
    const { start, server } = await open({ ignores: true }, { clock, deadlineMs: 5_000 });
    const before = timers;
    const starting = failure(start([]));
    // Whether it is busy, its message, and that it is taken.
    await until("it is waited for", () => timers === before + 3);
    await virtual.advance(5_000);
    expect(await starting).toMatchObject({
      code: "PROVIDER_STALLED",
      message: expect.stringContaining("taken"),
    });
    // It may begin with it later.
    expect(server.asked("POST /session/:id/abort")).toHaveLength(1);
  });

  test("is given up with its session", async () => {
    const clock = virtualClock();
    const { session, server, start } = await open({ ignores: true }, { clock });
    const starting = failure(start([]));
    await until("it is asked", () => server.asked("POST /session/:id/prompt_async").length === 1);
    const closed = session.close();
    await clock.advance(2_000);
    await closed;
    expect(await starting).toMatchObject({ code: "PROVIDER_UNREACHABLE" });
  });
});

describe("a turn whose session is closed", { timeout: 60_000 }, () => {
  const ofTurns = (server: FakeOpenCode): string[] =>
    server
      .asked()
      .map(({ request }) => request)
      .filter((request) => /prompt_async|abort|turn/.test(request));

  test("INT-7 is stopped as soon as it has begun, when it was sent", async () => {
    const { session, server, thread, start } = await open({ waits: true });
    await start([{ hold: true }]);
    const closed = session.close();
    // Whatever was asked too early is there before this.
    await nativeCall(session, "readThread")(thread.ref);
    server.begin();
    await closed;
    expect(ofTurns(server)).toEqual([
      "POST /session/:id/prompt_async",
      "beginning of a turn",
      "POST /session/:id/abort",
    ]);
  });

  test("INT-7 is not sent, when it was not", async () => {
    const { session, server, start } = await open();
    const starting = failure(start([]));
    await session.close();
    expect(await starting).toMatchObject({ code: "PROVIDER_UNREACHABLE" });
    expect(ofTurns(server)).toEqual([]);
  });
});

describe("an answer to OpenCode", { timeout: 60_000 }, () => {
  test("that does not get there can be given again; to what is gone it cannot", async () => {
    const { turn, session, server } = await open({ replies: [503, 200] });
    const events = await turn([{ ask: "permission.asked" }], async (event) => {
      if (event.type !== "request") return;
      const { ref } = event.request;
      expect(await failure(session.respond(ref, decide("approved")))).toMatchObject({
        code: "PROVIDER_UNREACHABLE",
      });
      await session.respond(ref, decide("approved"));
    });
    expect(events.at(-1)).toMatchObject({ outcome: "completed" });
    expect(server.asked("POST /permission/:id/reply")).toHaveLength(2);
  });

  test.each([
    [[503, 503, 200], "completed", 3],
    [[503, 503, 503, 200], "failed", 3],
  ])(
    "that nobody is asked for is sent again where it does not get there: %j",
    async (replies, outcome, sent) => {
      const { turn, server } = await open({ replies }, { approvals: "never" });
      const events = await turn([{ ask: "permission.asked" }]);
      expect(events.at(-1)).toMatchObject({ outcome });
      expect(server.asked("POST /permission/:id/reply")).toHaveLength(sent);
    },
  );

  test("is given once where nothing waits for it any more", async () => {
    const { turn, session, server } = await open({ replies: [404, 200] });
    const events = turn([{ ask: "permission.asked" }, { say: "on" }], async (event) => {
      if (event.type !== "request") return;
      const { ref } = event.request;
      for (const _ of [1, 2])
        expect(await failure(session.respond(ref, decide("approved")))).toMatchObject({
          code: "REQUEST_NOT_RESUMABLE",
        });
      await session.interruptTurn(ref, event.key!);
    });
    expect((await events).at(-1)).toMatchObject({ type: "turn.terminal" });
    expect(server.asked("POST /permission/:id/reply")).toHaveLength(1);
  });
});
