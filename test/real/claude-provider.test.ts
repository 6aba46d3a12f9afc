/** Claude Code as it is, against a model on loopback: the adapter's conformance, its forks, and what it fails with. */
import { chmodSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { delay, systemClock } from "../../src/platform/clock.ts";
import type { NativeEvent } from "../../src/protocol/native-events.ts";
import { nativeCall } from "../../src/providers/native-call.ts";
import { Driver, terminalOf } from "../../src/testing/native-driver.ts";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../src/testing/provider-conformance-native.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { claudeAdapter, claudeHome } from "./support/claude.ts";
import type { Home } from "./support/home.ts";
import { findReal } from "./support/programs.ts";
import { testReal } from "./support/test-real.ts";

const QUESTIONS = {
  questions: [
    {
      question: "Which?",
      header: "Which",
      options: [
        { label: "red", description: "as blood" },
        { label: "blue", description: "as the sky" },
      ],
      multiSelect: false,
    },
  ],
};

const SCRIPTS: Readonly<Record<NativeBehaviour, string>> = {
  text: ask.text("one"),
  // It asks once more by itself.
  empty: `${ask.empty()} ${ask.empty()}`,
  calls: `${ask.call("look", { at: "a" })} ${ask.text("seen")}`,
  question: `${ask.call("AskUserQuestion", QUESTIONS)} ${ask.text("thanks")}`,
  silence: `${ask.text("one")} ${ask.hold()}`,
  refusal: ask.error(400),
  failure: ask.error(500),
};

/** What Claude has no way to do. */
const LEFT_OUT: readonly string[] = [
  // It takes every turn, and tells a refusal as its end.
  "P4 refuses before acceptance, with an error of its kinds and no event",
];

const claude = findReal("claude");

const gone = (home: Home): Promise<unknown> =>
  waitUntil("its processes are gone", () => home.processes().length === 0, {
    step: () => delay(systemClock, 20),
  });

describe.skipIf("missing" in claude)("the provider of Claude", () => {
  const checks = nativeProviderConformance(async (behaviour) => {
    if ("missing" in claude) throw new Error(claude.missing);
    const server = await startModelServer({ unscripted: SCRIPTS[behaviour] });
    const home = claudeHome(server);
    const adapter = await claudeAdapter(claude, home);
    const later = await claudeAdapter(claude, home);
    return {
      adapter,
      reopen: () => later,
      kill: () => home.kill(),
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]();
        await gone(home);
      },
    };
  });
  test.for(
    checks.filter(({ title }) => !LEFT_OUT.includes(title)).map(({ title, run }) => [title, run] as const),
  )("%s", async ([, run]) => run());
});

const failing = (driver: Driver, script: string) =>
  driver.turn(script).then((events) => terminalOf(events).error);

testReal(
  "claude",
  "forks at a message, before its start not, and is rolled back for good",
  async (program) => {
    await using server = await startModelServer();
    const home = claudeHome(server);
    const adapter = await claudeAdapter(program, home);
    const driver = await Driver.open(adapter);
    const texts = (events: readonly NativeEvent[]) =>
      events.flatMap((event) => (event.type === "item" && event.item.kind === "text" ? [event.item] : []));
    const first = await driver.turn(ask.text("first"));
    await driver.turn(ask.text("second"));
    const turns = [{ ordinal: 1, ref: terminalOf(first).turn }];
    const { session, thread } = driver;
    const fork = (boundary: Parameters<NonNullable<typeof session.forkThread>>[0]["boundary"]) =>
      nativeCall(session, "forkThread")({ source: thread.ref, boundary, turns, intentId: "intent" });
    await expect(fork({ kind: "start" })).rejects.toMatchObject({ code: "PROVIDER_CAPABILITY_MISSING" });
    await expect(fork({ kind: "after_item", item: thread.ref })).rejects.toMatchObject({
      code: "PROVIDER_REFUSED",
    });
    const item = texts(first)[0]!.ref!;
    const before = await fork({ kind: "before_item", item });
    const after = await fork({ kind: "after_item", item });
    expect([before.turns?.length, after.turns?.length]).toEqual([1, 1]);
    const found = await nativeCall(session, "findForks")(thread.ref);
    expect(new Set(found.map(({ ref }) => ref.nativeId))).toEqual(
      new Set([before.ref.nativeId, after.ref.nativeId]),
    );

    await session.resumeThread(thread.ref);
    await nativeCall(
      session,
      "rollbackThread",
    )({
      thread: thread.ref,
      boundary: { kind: "after_turn", turn: turns[0]!.ref!, laterTerminalTurns: 1 },
      turns,
    });
    await session.close();
    await gone(home);
    const later = await Driver.open(await claudeAdapter(program, home), thread.ref);
    expect(later.thread.turns).toHaveLength(1);
    expect(terminalOf(await later.turn(ask.text("third"))).outcome).toBe("completed");
    const told = JSON.stringify(server.requests.at(-1)!.said);
    expect(told).toContain("first");
    expect(told).not.toContain("second");
    await later.session.close();
  },
);

testReal("claude", "has what is put into a turn for a part of it, in its forks too", async (program) => {
  await using server = await startModelServer();
  const home = claudeHome(server);
  const driver = await Driver.open(await claudeAdapter(program, home));
  const { session, thread } = driver;
  const words = { thread: thread.ref, key: "turn-1", preambles: [] };
  const steered = `${ask.call("look", { at: "b" })} ${ask.text("seen both")}`;
  const events = await driver.turn(`${ask.call("look", { at: "a" })} ${ask.text("seen")}`, async (event) => {
    if (event.type !== "request") return;
    const { request } = event;
    if (request.kind === "tool" && request.input.includes('"a"'))
      await nativeCall(session, "steerTurn")({ ...words, userMessage: steered });
    await session.respond(request.ref, { kind: "tool", output: "seen", isError: false });
  });
  expect(events.filter(({ type }) => type === "request").length).toBeGreaterThan(0);
  expect(terminalOf(events).outcome).toBe("completed");
  await driver.turn(ask.text("two"));
  const { turns } = await nativeCall(session, "readThread")(thread.ref);
  expect(turns.map(({ items }) => items[0]!.text.includes("look"))).toEqual([true, false]);
  const fork = await nativeCall(
    session,
    "forkThread",
  )({ source: thread.ref, boundary: { kind: "head" }, turns: [], intentId: "intent" });
  expect(fork.turns).toHaveLength(2);
  await session.close();
  await gone(home);
});

testReal("claude", "takes another model and folder for the next turn of a conversation", async (program) => {
  await using server = await startModelServer();
  const home = claudeHome(server);
  const driver = await Driver.open(await claudeAdapter(program, home));
  await driver.turn(ask.text("first"));
  const before = server.requests.at(-1)!.body;
  const { session, thread } = driver;
  const policy = { model: "claude-opus-4-8", effort: "low", effects: [], maxOutputTokens: null };
  await session.startTurn({
    thread: thread.ref,
    key: "another",
    userMessage: ask.text("second"),
    preambles: [{ kind: "note", channel: "synthetic_user", text: "the note" }],
    policy: { ...policy, workspace: home.workspace },
    signal: new AbortController().signal,
  });
  for await (const event of session.events()) if (event.type === "turn.terminal") break;
  const { body, said } = server.requests.at(-1)!;
  expect(body.model).toBe("claude-opus-4-8");
  expect(body.output_config).not.toEqual(before.output_config);
  const told = JSON.stringify(said);
  for (const words of ["first", "the note", home.workspace]) expect(told).toContain(words);
  await session.close();
  await gone(home);
});

testReal("claude", "fails with what the model has refused with, and goes on", async (program) => {
  await using server = await startModelServer();
  const home = claudeHome(server);
  const driver = await Driver.open(await claudeAdapter(program, home));
  expect(await failing(driver, ask.error(400))).toMatchObject({ code: "PROVIDER_REFUSED" });
  expect(await failing(driver, ask.error(401))).toMatchObject({
    code: "PROVIDER_UNAVAILABLE",
    message: expect.stringContaining("claude /login"),
  });
  expect(await failing(driver, ask.error(429))).toMatchObject({ code: "PROVIDER_OVERLOADED" });
  expect(await failing(driver, ask.error(500))).toMatchObject({ code: "PROVIDER_UNREACHABLE" });
  const long = await driver.turn(ask.long(300_000));
  const said = long.flatMap((event) =>
    event.type === "item" && event.item.kind === "text" ? [event.item.text] : [],
  );
  expect(said.join("")).toHaveLength(300_000);
  await driver.session.close();
  await gone(home);
});

testReal("claude", "says so when nobody is signed in", async (program) => {
  await using server = await startModelServer();
  const { env } = claudeHome(server);
  const { ANTHROPIC_API_KEY: _, ...without } = env;
  const driver = await Driver.open(await claudeAdapter(program, { env: without }));
  expect(await failing(driver, ask.text("hello"))).toMatchObject({
    code: "PROVIDER_UNAVAILABLE",
    details: { kind: "authentication_failed" },
  });
  await driver.session.close();
});

testReal("claude", "says so when there is no program", async (program) => {
  await using server = await startModelServer();
  const home = claudeHome(server);
  const adapter = await claudeAdapter(program, home, { pathToExecutable: "/nowhere/claude" });
  const driver = await Driver.open(adapter);
  await expect(driver.start("hello")).rejects.toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
  await driver.session.close();
});

describe.skipIf("missing" in claude)("a program that is not Claude", () => {
  const WAYS = {
    "says what is no message": "echo 'this is no message'; exec cat >/dev/null",
    "leaves without a word": "echo 'no account' >&2; exit 3",
    "says nothing, and neither ends with its input nor when it is asked to":
      "trap '' TERM; cat >/dev/null; while :; do sleep 1; done",
  };
  test.for(Object.entries(WAYS))("%s", async ([, script]) => {
    if ("missing" in claude) throw new Error(claude.missing);
    await using server = await startModelServer();
    const home = claudeHome(server);
    const path = home.write("claude", `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    const adapter = await claudeAdapter(claude, home, { pathToExecutable: path, deadlineMs: 2000 });
    const driver = await Driver.open(adapter);
    await expect(driver.start("hello")).rejects.toMatchObject({
      code: expect.stringMatching(/^PROVIDER_(PROTOCOL|STALLED|UNAVAILABLE|UNREACHABLE)$/),
    });
    await driver.session.close();
    await gone(home);
  });
});
