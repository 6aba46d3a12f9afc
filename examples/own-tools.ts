/** Own tools with declared effects: a child that may only read is not given the tool that writes. */
import { createRuntime, defineTool, scripted } from "coppice";
import { script } from "coppice/testing";
import { z } from "zod";

const notes = new Map<string, string>([["plan", "1. look 2. think 3. write"]]);

const readNote = defineTool({
  name: "read_note",
  description: "Reads a note by its name.",
  input: z.strictObject({ name: z.string() }),
  effects: ["read"],
  run: ({ name }) => notes.get(name) ?? null,
});

const writeNote = defineTool({
  name: "write_note",
  description: "Writes a note.",
  input: z.strictObject({ name: z.string(), text: z.string() }),
  effects: ["write"],
  // Effects outside of the store are at least once; the key tells a repeated call from a new one.
  run: ({ name, text }, { idempotencyKey }) => {
    notes.set(name, text);
    return { written: name, by: idempotencyKey };
  },
});

const model = scripted({
  "/root": [
    script.spawn("reader", "What does the note `plan` say?", { fork_turns: "none", effects: ["read"] }),
    script.wait({ targets: ["reader"] }),
    script.call("write_note", { name: "summary", text: "looked, thought, wrote" }),
    script.say("done"),
  ],
  "/root/reader": [
    script.call("read_note", { name: "plan" }),
    script.call("write_note", { name: "plan", text: "overwritten" }),
    script.say(
      (context) => `it says ${JSON.stringify(context.toolResults[0])}; writing it: ${context.lastToolText}`,
    ),
  ],
});

await using runtime = await createRuntime({ providers: { scripted: model }, tools: [readNote, writeNote] });
const tree = await runtime.openTree();
const outcome = await (
  await tree.root.send("Read the plan, then write a summary.")
).outcome({ signal: AbortSignal.timeout(10_000) });
console.log(outcome.ending, Object.fromEntries(notes));
if (notes.get("plan") !== "1. look 2. think 3. write" || notes.get("summary") === undefined)
  process.exitCode = 1;
