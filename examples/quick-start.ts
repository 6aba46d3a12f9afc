/** A tree in twelve statements, without a key: swap `scripted` for `createModelProvider` to use a real model. */
import { createRuntime, scripted } from "coppice";
import { script } from "coppice/testing";

const model = scripted({
  "/root": [
    script.spawn("counter", "How many letters has the word coppice?", { fork_turns: "none" }),
    script.wait({ targets: ["counter"] }),
    script.say((context) => `My agent answered: ${JSON.stringify(context.lastToolResult)}`),
  ],
  "/root/counter": [script.say("Seven.")],
});

await using runtime = await createRuntime({ providers: { scripted: model } });
const tree = await runtime.openTree();
const work = await tree.root.send("How long is the name of this project?");
const outcome = await work.outcome({ signal: AbortSignal.timeout(10_000) });
console.log(outcome.ending, outcome.text);
console.log(
  "tokens",
  outcome.usage.subtree.inputTokens + outcome.usage.subtree.outputTokens,
  "cost",
  outcome.usage.subtree.cost,
);
if (outcome.ending !== "completed" || !outcome.text.includes("Seven.")) process.exitCode = 1;
