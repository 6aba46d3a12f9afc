import { describe, expect, test } from "vitest";
import { createGates } from "../../../src/providers/scripted/gates.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { say } from "../../../src/providers/scripted/script.ts";
import { assertAllConsumed } from "../../../src/testing/consumed.ts";
import { turn, virtualClock } from "../../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../../src/testing/wait-until.ts";

describe("waitUntil", () => {
  test("ends as soon as the condition holds", async () => {
    let looks = 0;
    await waitUntil("three looks", () => (looks += 1) === 3);
    expect(looks).toBe(3);
  });

  test("takes a last look after its last step, then fails with its words and its dump", async () => {
    const clock = virtualClock();
    const step = (): Promise<void> => clock.advance(10);
    await waitUntil("30 ms", async () => clock.monotonic() === 30, { steps: 3, step });
    await expect(
      waitUntil("the moon", () => false, { steps: 2, dump: () => ({ phase: "new" }) }),
    ).rejects.toThrow(/2 steps: the moon\n[^]*"phase": "new"/);
  });
});

describe("gates", () => {
  test("hold in order of arrival and let through as many as they are told", async () => {
    const gates = createGates();
    const passed: string[] = [];
    for (const name of ["a", "b", "c"]) void gates.pass("g").then(() => passed.push(name));
    await gates.arrived("g", 3);
    gates.letThrough("g", 2);
    await turn();
    expect([passed, gates.waiting("g"), gates.occupied()]).toEqual([["a", "b"], 1, ["g"]]);
    gates.open("g");
    await gates.pass("g");
    expect([passed, gates.occupied()]).toEqual([["a", "b", "c"], []]);
  });

  test("can be closed again, or opened all at once", async () => {
    const gates = createGates();
    gates.open("g");
    gates.close("g");
    const passed = gates.pass("g");
    expect(gates.waiting("g")).toBe(1);
    gates.openAll();
    await passed;
    await gates.pass("never named before");
  });

  test("let go of who is aborted", async () => {
    const gates = createGates();
    const controller = new AbortController();
    const passed = gates.pass("g", controller.signal);
    controller.abort(new Error("stop"));
    await expect(passed).rejects.toThrow("stop");
    await expect(gates.pass("g", controller.signal)).rejects.toThrow("stop");
    expect(gates.waiting("g")).toBe(0);
  });

  test("tell of an arrival that is still to come", async () => {
    const gates = createGates();
    let told = false;
    const arrived = gates.arrived("g", 2).then(() => {
      told = true;
    });
    void gates.pass("g");
    await turn();
    expect(told).toBe(false);
    void gates.pass("g");
    await arrived;
    expect(() => gates.open("")).toThrow("needs a name");
  });
});

describe("assertAllConsumed", () => {
  test("names the steps that were not played", async () => {
    await assertAllConsumed({ providers: [scripted({ "*": [say("any")] })] });
    await expect(assertAllConsumed({ providers: [scripted({ "/root": [say("hi")] })] })).rejects.toThrow(
      'step 1 of the script of /root (never played): say "hi"',
    );
  });
});
