/** OpenCode as it is, against a model on loopback: the adapter's conformance, and what is OpenCode's own. */
import { describe, expect, test } from "vitest";
import { Driver, terminalOf } from "../../src/testing/native-driver.ts";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../src/testing/provider-conformance-native.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { openCodeAdapter, openCodeHome, serveOpenCode } from "./support/opencode.ts";
import { findReal } from "./support/programs.ts";
import { testReal } from "./support/test-real.ts";

const openCode = findReal("opencode");

const QUESTION = {
  questions: [{ question: "Which?", header: "W", options: [{ label: "red", description: "" }] }],
};

const SCRIPTS: Readonly<Record<NativeBehaviour, string>> = {
  text: ask.text("one"),
  empty: ask.empty(),
  calls: `${ask.call("look", { at: "a" })} ${ask.text("seen")}`,
  question: `${ask.call("question", QUESTION)} ${ask.text("thanks")}`,
  silence: `${ask.text("one")} ${ask.hold()}`,
  refusal: ask.error(400),
  failure: ask.error(400),
};

/** It takes every prompt, and tells a refusal as the end of its turn. */
const LEFT_OUT: readonly string[] = ["P4 refuses before acceptance, with an error of its kinds and no event"];

describe.skipIf("missing" in openCode)("the provider of OpenCode", () => {
  const checks = nativeProviderConformance(async (behaviour) => {
    if ("missing" in openCode) throw new Error(openCode.missing);
    const server = await startModelServer({ unscripted: SCRIPTS[behaviour] });
    const home = openCodeHome(server);
    return {
      adapter: openCodeAdapter(openCode, home),
      reopen: () => openCodeAdapter(openCode, home),
      kill: () => home.kill(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });
  test.for(
    checks.filter(({ title }) => !LEFT_OUT.includes(title)).map(({ title, run }) => [title, run] as const),
  )("%s", async ([, run]) => run());
});

testReal("opencode", "fails with what the model has refused with, and goes on", async (program) => {
  await using server = await startModelServer();
  const driver = await Driver.open(openCodeAdapter(program, openCodeHome(server)));
  const failing = async (script: string) => terminalOf(await driver.turn(script)).error;
  expect(await failing(ask.error(400))).toMatchObject({ code: "PROVIDER_REFUSED" });
  expect(await failing(ask.error(401))).toMatchObject({
    code: "PROVIDER_UNAVAILABLE",
    message: expect.stringContaining("opencode auth login"),
  });
  // It would go on to try these for ever.
  expect(await failing(ask.error(429))).toMatchObject({ code: "PROVIDER_OVERLOADED" });
  expect(await failing(ask.error(500))).toMatchObject({ code: "PROVIDER_UNREACHABLE" });
  const long = await driver.turn(ask.long(300_000));
  const said = long.flatMap((event) =>
    event.type === "item" && event.item.kind === "text" ? [event.item.text] : [],
  );
  expect(said.join("")).toHaveLength(300_000);
  await driver.session.close();
});

testReal(
  "opencode",
  "S2-44 S2-47 uses a server that runs, notices a turn of somebody else's, and leaves it",
  async (program) => {
    await using server = await startModelServer();
    const home = openCodeHome(server);
    const { url, request } = await serveOpenCode(program, home);
    const driver = await Driver.open(openCodeAdapter(program, home, { url }));
    const { nativeId, fingerprint } = driver.thread.ref;
    expect(fingerprint).toBe(url);
    expect(terminalOf(await driver.turn(ask.text("hello"))).outcome).toBe("completed");
    await request("POST", `/session/${nativeId}/prompt_async`, {
      parts: [{ type: "text", text: ask.hold() }],
    });
    await (
      await server.next(({ prompt }) => prompt === ask.hold())
    ).sent;
    await expect(driver.start("me, too")).rejects.toMatchObject({ code: "PROVIDER_WRITER_BUSY" });
    await request("POST", `/session/${nativeId}/abort`);
    await driver.session.close();
    expect(await request("GET", `/session/${nativeId}`)).toMatchObject({ id: nativeId });
    expect(home.processes()).not.toEqual([]);
  },
);
