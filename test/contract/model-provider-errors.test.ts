/** The provider `model` through the vendors' real clients, when the vendor refuses, breaks off, stalls or talks nonsense. */
import { describe, expect, test } from "vitest";
import { RejectedError, TransientError } from "../../src/protocol/errors.ts";
import type { StepEvent } from "../../src/protocol/provider-events.ts";
import { virtualClock, VIRTUAL_START } from "../../src/testing/virtual-clock.ts";
import { deltasOf, KEY, openSession, run, stepRequest, vendors } from "../support/model-provider.ts";
import { text } from "../support/model-wire/reply.ts";
import { startVendorServer } from "../support/vendor-server/vendor-server.ts";

const inTenSeconds = new Date(VIRTUAL_START + 10_000).toUTCString();

describe.for(vendors)("a failure of $vendor", ({ model }) => {
  test.for([400, 401, 403, 404, 413, 422])("with status %d is a refusal", async (status) => {
    await using server = await startVendorServer();
    server.reply({ status, message: `no, said with ${KEY}`, errorType: "some_error" });
    const error = await failureOf(run(await openSession(model(server.baseUrl))));
    expect(error).toBeInstanceOf(RejectedError);
    expect(error).toMatchObject({
      code: "PROVIDER_REFUSED",
      retryable: false,
      message: expect.stringContaining("no, said with"),
      details: { status, requestId: "req_1", provider: expect.any(String), model: expect.any(String) },
    });
    expect(server.requests).toHaveLength(1);
  });

  test.for([
    [429, "PROVIDER_OVERLOADED"],
    [409, "PROVIDER_OVERLOADED"],
    [500, "PROVIDER_OVERLOADED"],
    [503, "PROVIDER_OVERLOADED"],
    [529, "PROVIDER_OVERLOADED"],
    [408, "PROVIDER_UNREACHABLE"],
    [502, "PROVIDER_UNREACHABLE"],
    [504, "PROVIDER_UNREACHABLE"],
  ] as const)("with status %d is %s, may be repeated, and is not by the client", async ([status, code]) => {
    await using server = await startVendorServer();
    server.reply({ status }, { parts: [text("Never asked for.")] });
    const error = await failureOf(run(await openSession(model(server.baseUrl))));
    expect(error).toBeInstanceOf(TransientError);
    expect(error).toMatchObject({ code, retryable: true, retryAfterMs: null, details: { status } });
    expect(server.requests).toHaveLength(1);
  });

  test.for(["insufficient_quota", "billing_not_active"])(
    "RUN-4 with status 429 for %s is a refusal: no waiting brings it back",
    async (errorType) => {
      await using server = await startVendorServer();
      server.reply({ status: 429, errorType });
      const error = await failureOf(run(await openSession(model(server.baseUrl))));
      expect(error).toMatchObject({ code: "PROVIDER_REFUSED", retryable: false, details: { status: 429 } });
    },
  );

  test.for([
    ["seconds", { "retry-after": "7" }, 7_000],
    ["a part of a second", { "retry-after": "0.25" }, 250],
    ["a date", { "retry-after": inTenSeconds }, 10_000],
    ["a date that is over", { "retry-after": new Date(0).toUTCString() }, 0],
    ["milliseconds, which are finer", { "retry-after-ms": "1234", "retry-after": "9" }, 1_234],
    ["nonsense", { "retry-after": "soon" }, null],
  ] as const)("tells when to come back, given as %s", async ([, headers, retryAfterMs]) => {
    await using server = await startVendorServer();
    server.reply({ status: 429, headers });
    const session = await openSession(model(server.baseUrl), { clock: virtualClock() });
    expect(await failureOf(run(session))).toMatchObject({ code: "PROVIDER_OVERLOADED", retryAfterMs });
  });

  test("holds neither key nor headers nor what was sent", async () => {
    await using server = await startVendorServer();
    server.reply({ status: 401, message: `Incorrect API key provided: ${KEY}.` });
    const error = (await failureOf(run(await openSession(model(server.baseUrl))))) as RejectedError;
    const everything = [
      error.message,
      error.forModel(),
      JSON.stringify(error),
      JSON.stringify(error.cause ?? null),
    ];
    for (const said of everything) {
      expect(said).not.toContain(KEY);
      expect(said).not.toContain("You look at things.");
    }
  });

  test("that nobody listens is an unreachable provider", async () => {
    const server = await startVendorServer();
    const { baseUrl } = server;
    await server[Symbol.asyncDispose]();
    expect(await failureOf(run(await openSession(model(baseUrl))))).toMatchObject({
      code: "PROVIDER_UNREACHABLE",
    });
  });

  test.for(["cut", "short"] as const)(
    "by an answer that is broken off (%s) is an unreachable provider",
    async (ending) => {
      await using server = await startVendorServer();
      server.reply({ parts: [text("Half of ", "it")], ending });
      const { events, error } = await runUntilFailure(model(server.baseUrl));
      expect(events[0]).toEqual({ type: "accepted" });
      expect(deltasOf(events, "text").join("")).toMatch(/^Half of /);
      expect(events.map(({ type }) => type)).not.toContain("finish");
      expect(error).toMatchObject({ code: "PROVIDER_UNREACHABLE", retryable: true });
    },
  );

  test.for(["cut", "short"] as const)(
    "by an answer that never began (%s) is an unreachable provider",
    async (ending) => {
      await using server = await startVendorServer();
      server.reply({ parts: [], ending });
      const { error } = await runUntilFailure(model(server.baseUrl));
      expect(error).toMatchObject({ code: "PROVIDER_UNREACHABLE", retryable: true });
    },
  );

  test("told in the middle of an answer is typed like one told before", async () => {
    await using server = await startVendorServer();
    server.reply({ parts: [text("Half")], ending: "error" });
    const { events, error } = await runUntilFailure(model(server.baseUrl));
    expect(deltasOf(events, "text")).toEqual(["Half"]);
    expect(error).toMatchObject({
      code: "PROVIDER_OVERLOADED",
      message: expect.stringContaining("the model broke"),
    });
  });

  test("by an answer that cannot be read names what came", async () => {
    await using server = await startVendorServer();
    server.reply({ parts: [text("Half")], ending: "malformed" });
    const { error } = await runUntilFailure(model(server.baseUrl));
    expect(error).toMatchObject({
      code: "PROVIDER_PROTOCOL",
      retryable: false,
      details: { received: expect.stringContaining('{"type": "response.') },
    });
  });

  test.for([
    ["before the headers", true],
    ["in the middle", false],
  ] as const)("to say anything %s ends the request when the time is over", async ([, before]) => {
    await using server = await startVendorServer();
    const never = Promise.withResolvers<void>();
    server.reply({ parts: [text("Half")], ending: "stall", ...(before && { after: never.promise }) });
    const clock = virtualClock();
    const session = await openSession(model(server.baseUrl), { clock, stallMs: 5_000 });
    const failed = failureOf(run(session));
    const request = await server.next();
    if (!before) await request.sent;
    await clock.settle();
    await clock.advance(5_000);
    expect(await failed).toMatchObject({
      code: "PROVIDER_STALLED",
      retryable: true,
      details: { stallMs: 5_000 },
    });
    expect(await request.closed).toBe("gone");
    expect(clock.pending()).toEqual([]);
  });
});

async function failureOf(pending: Promise<unknown>): Promise<unknown> {
  return pending.then(
    () => expect.fail("the step ended without an error"),
    (error: unknown) => error,
  );
}

async function runUntilFailure(
  model: Parameters<typeof openSession>[0],
): Promise<{ readonly events: StepEvent[]; readonly error: unknown }> {
  const session = await openSession(model);
  const events: StepEvent[] = [];
  const error = await failureOf(
    (async () => {
      for await (const event of session.step(stepRequest(), new AbortController().signal)) events.push(event);
    })(),
  );
  return { events, error };
}
