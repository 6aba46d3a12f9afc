import { expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";

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
