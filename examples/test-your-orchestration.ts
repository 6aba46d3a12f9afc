/** A test of an orchestration: gates decide who goes first, time stands still until `clock.advance`, nothing may be left over. */
import { createRuntime } from "coppice";
import { assertAllConsumed, createMemoryStore, scripted, script, virtualClock } from "coppice/testing";

const clock = virtualClock();
const store = createMemoryStore({ clock });
const provider = scripted(
  {
    "/root": [
      script.together(
        script.spawn("slow", "take your time", { fork_turns: "none" }),
        script.spawn("fast", "hurry", { fork_turns: "none" }),
      ),
      script.wait({ targets: ["slow", "fast"], mode: "any", timeout_ms: 60_000 }),
      script.wait({ targets: ["slow"], timeout_ms: 3_600_000 }),
      script.say("both are done"),
    ],
    "/root/slow": [script.gate("slow"), script.say("slow is done")],
    "/root/fast": [script.say("fast is done")],
  },
  { clock },
);

await using runtime = await createRuntime({ store, clock, providers: { scripted: provider } });
const tree = await runtime.openTree();
const work = await tree.root.send("start");
await provider.gates.arrived("slow");
provider.gates.open("slow");
const outcome = await work.outcome();
await tree.idle();
await assertAllConsumed({ providers: [provider], store, trees: [tree.id] });
console.log(outcome.ending, outcome.text);
if (outcome.text !== "both are done") process.exitCode = 1;
