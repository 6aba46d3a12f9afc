import { describe, expect, test } from "vitest";
import { RejectedError } from "../../../src/protocol/errors.ts";
import { createGates } from "../../../src/providers/scripted/gates.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import * as script from "../../../src/providers/scripted/script.ts";
import { createMemoryStore } from "../../../src/store/memory.ts";
import { assertAllConsumed } from "../../../src/testing/consumed.ts";
import { createFaultyStore, faultsAt } from "../../../src/testing/faulty-store.ts";
import { seededScheduler } from "../../../src/testing/scheduler.ts";
import { virtualClock } from "../../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../../src/testing/wait-until.ts";

/** What no typed program gives, as a program without types may. */
const wrong = (value: unknown): never => value as never;
const { say } = script;

const SCRIPTS: readonly (readonly [string, () => unknown, RegExp])[] = [
  ["say", () => say(wrong(undefined)), /script\.say .*text: is no text; give a string/],
  ["think", () => script.think(wrong(3)), /script\.think .*text/],
  ["call", () => script.call("tool", wrong([])), /script\.call .*input: is no input of a tool/],
  ["call without a name", () => script.call(wrong(undefined)), /script\.call .*name/],
  ["spawn", () => script.spawn("worker", wrong(undefined)), /script\.spawn .*message: is no text/],
  ["send", () => script.send(wrong(undefined), "hello"), /script\.send .*target/],
  ["follow up", () => script.followUp("worker", wrong(null)), /script\.followUp .*message/],
  ["wait", () => script.wait(wrong(3)), /script\.wait .*options/],
  ["ask", () => script.ask(wrong(undefined)), /script\.ask .*text/],
  ["approve", () => script.approve("may I?", wrong({ tool: "rm" })), /script\.approve .*about\.input/],
  ["gate", () => script.gate("", {}), /script\.gate .*name/],
  ["gate, unknown option", () => script.gate("slow", wrong({ before: true })), /unknown field `before`/],
  ["pause", () => script.pause(wrong("a")), /script\.pause .*ms.*number/],
  ["pause backwards", () => script.pause(-1), /script\.pause .*ms/],
  ["fail", () => script.fail({ code: wrong("NOPE") }), /script\.fail .*options\.code.*PROVIDER_REFUSED/],
  ["usage", () => script.usage(wrong({ input: 3 })), /script\.usage .*unknown field `input`/],
  ["finish", () => script.finish(wrong("done")), /script\.finish .*reason/],
  ["together", () => script.together(wrong("text")), /script\.together .*steps\.0: is no step/],
  ["repeat", () => script.repeat(say("x"), -1), /script\.repeat .*times: is no number of times/],
  ["repeat nothing", () => script.repeat(wrong(undefined)), /script\.repeat .*step: is no step/],
  ["key", () => scripted({ "/rot": [say("x")] }), /The script's key `\/rot` .*must start with `\/root`/],
  ["appended", () => scripted({}).append("/root", wrong("x")), /append .*steps: is no script/],
  ["name of a gate", () => createGates().open(""), /A gate needs a name/],
  ["arrivals", () => createGates().arrived("slow", Number.NaN), /arrived .*count/],
];

const TOOLS: readonly (readonly [string, () => unknown, RegExp])[] = [
  ["clock, unknown field", () => virtualClock(wrong({ begin: 3 })), /unknown field `begin`.*: start, defer/],
  ["time that is no number", () => virtualClock().advance(Number.NaN), /advance .*ms/],
  ["time that goes back", () => virtualClock().advance(-5), /advance .*ms/],
  ["seed", () => seededScheduler(wrong("x")), /seededScheduler .*seed/],
  ["bounds of a run", () => seededScheduler(1).run(wrong({ ms: 3 })), /run .*unknown field `ms`/],
  ["store", () => createFaultyStore(wrong({}), {}), /createFaultyStore .*inner: is no store/],
  ["plan", () => createFaultyStore(createMemoryStore(), wrong({ hints: "late" })), /plan\.hints/],
  ["fault", () => faultsAt(wrong({ 2: "STORE_IO" })), /faultsAt .*2/],
  ["number of a write", () => faultsAt(wrong({ first: { kind: "hang" } })), /faultsAt .*first/],
  ["condition", () => waitUntil("it", wrong(true)), /waitUntil .*condition: is no function/],
];

const CONSUMED: readonly (readonly [string, () => unknown, RegExp])[] = [
  ["unknown field", () => assertAllConsumed(wrong({ provider: scripted({}) })), /unknown field `provider`/],
  ["nothing", () => assertAllConsumed({}), /nothing to look at; give `providers`, `store`, or both/],
  ["no providers", () => assertAllConsumed({ providers: [] }), /nothing to look at/],
  ["no provider", () => assertAllConsumed({ providers: [wrong({})] }), /is no scripted provider/],
  [
    "trees without a store",
    () => assertAllConsumed({ providers: [scripted({})], trees: ["thread_zzz"] }),
    /trees: are looked up in a store/,
  ],
  [
    "unknown tree",
    () => assertAllConsumed({ store: createMemoryStore(), trees: ["thread_zzz"] }),
    /trees: thread_zzz is not in this store/,
  ],
];

describe("what tests are given to test with", () => {
  test.each([...SCRIPTS, ...TOOLS, ...CONSUMED])("refuses a wrong argument: %s", async (_, use, words) => {
    const refused = await Promise.resolve()
      .then(use)
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RejectedError);
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", message: expect.stringMatching(words) });
  });

  test("what is left over names the gates at which somebody waits", async () => {
    const gates = createGates();
    const provider = scripted({ "/root": [say("never")] }, { gates });
    gates.open("slwo");
    void gates.pass("slow");
    await expect(assertAllConsumed({ providers: [provider] })).rejects.toThrow(
      /step 1 of the script of \/root[^]*\nsomebody waits at the gate slow$/,
    );
  });
});
