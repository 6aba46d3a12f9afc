import { describe, expect, test } from "vitest";
import { type CoppiceError, RejectedError } from "../../src/protocol/errors.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, STORES } from "../support/harness.ts";
import { loggerTo } from "../support/logger.ts";

test("WAI-6 a wait ends in time although the wall clock is set back meanwhile", async () => {
  const clock = virtualClock();
  let back = 0;
  const shifted = { ...clock, now: () => clock.now() - back };
  const provider = scripted(
    {
      "/root": [
        spawn("worker", "go", { fork_turns: "none" }),
        wait({ targets: ["worker"], timeout_ms: 20_000 }),
        say("on"),
      ],
      "/root/worker": [gate("never"), say("late")],
    },
    { clock: shifted },
  );
  await using runtime = await createRuntime({
    store: createMemoryStore({ clock: shifted }),
    clock: shifted,
    providers: { scripted: provider },
  });
  const tree = await runtime.openTree();
  await tree.root.send("go");
  await waitUntil("the root waits", async () => (await tree.root.status()).kind === "waiting");
  back = 3_600_000;
  await clock.advance(20_000);
  await waitUntil("its wait is over", async () => (await tree.root.status()).kind === "awaiting_children");
  const outputs = (await tree.root.transcript()).filter((item) => item.kind === "tool_result");
  expect(outputs.at(-1)).toMatchObject({ output: { timed_out: true } });
  provider.gates.open("never");
});

test("WAI-6 RUN-3 nor does a wait or a run take longer when it is set back between two owners", async () => {
  const clock = virtualClock();
  let back = 0;
  const shifted = { ...clock, now: () => clock.now() - back };
  const store = createMemoryStore({ clock: shifted });
  const provider = scripted(
    { "/root": [wait({ timeout_ms: 20_000 }), gate("never"), say("on")] },
    { clock: shifted },
  );
  const owner = (pid: number) =>
    createRuntime({
      store,
      clock: shifted,
      identity: { host: "test", bootId: "boot", pid, startedAt: "1" },
      provenDead: () => true,
      limits: { runWallClockMs: 60_000, wrapUpMs: 1_000 },
      providers: { scripted: provider },
    });
  const first = await owner(1);
  const { id, root } = await first.openTree();
  await root.send("go");
  await waitUntil("the root waits", async () => (await root.status()).kind === "waiting");
  await first.close();
  back = 86_400_000;
  await using second = await owner(2);
  const tree = await second.openTree({ id });
  await clock.advance(20_000);
  await provider.gates.arrived("never");
  const outputs = (await tree.root.transcript()).filter((item) => item.kind === "tool_result");
  expect(outputs.at(-1)).toMatchObject({ output: { timed_out: true } });
  const [waited] = await store.read((view) => view.waitsOfRun(view.runAt(id, 1)!.id));
  expect(waited!.endedAt! - waited!.startedAt).toBe(20_000);
  await clock.advance(61_000);
  await waitUntil("its run is over", async () => (await tree.root.status()).kind === "idle");
  expect((await store.read((view) => view.runAt(id, 1)))?.reason).toBe("time_limit");
  provider.gates.openAll();
});

describe.each(STORES)("a deadline that the store cannot take on %s", (store) => {
  async function atDeadline(error: CoppiceError) {
    const said: string[] = [];
    const h = await harness({
      store,
      scripts: { "/root": [wait({ timeout_ms: 20_000 }), say("on")] },
      runtime: { logger: loggerTo(said) },
    });
    const work = await h.tree.root.send("go");
    await waitUntil("the root waits", async () => (await h.tree.root.status()).kind === "waiting");
    h.onWrite = (_, kind) => (kind === "commit" ? { kind: "error", error } : null);
    await h.clock.advance(20_000);
    return { h, work, said };
  }

  test("WAI-6 REC-3 for a row that cannot be read is armed again, and the wait ends when the row was mended", async () => {
    const { h, work, said } = await atDeadline(new RejectedError("STORE_CORRUPT", "a row cannot be read"));
    await using _ = h;
    await h.clock.advance(100_000);
    expect((await h.tree.root.status()).kind).toBe("waiting");
    h.onWrite = () => null;
    await h.clock.advance(30_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "on" });
    // Told with each try, and not more often than somebody can mend it.
    expect(said).toEqual(Array(4).fill("the store failed; trying again"));
  });

  test("WAI-6 REC-3 for a refusal is not tried again, and the log does not say so", async () => {
    const { h, said } = await atDeadline(new RejectedError("THREAD_INVARIANT_VIOLATION", "not this step"));
    await using _ = h;
    await h.clock.advance(100_000);
    expect(said).toEqual(["the store refused; not trying again"]);
  });
});
