/** Roles from a folder of Markdown files: a child of the role `auditor` has its instructions, and only tools that read. */
import { fileURLToPath } from "node:url";
import { createRuntime, defineTool, loadRoles, readRoleFolder, scripted } from "coppice";
import { script } from "coppice/testing";
import { z } from "zod";

const input = z.strictObject({ name: z.string() });
const tools = [
  defineTool({
    name: "read_note",
    description: "Reads a note.",
    input,
    effects: ["read"],
    run: () => "2 + 2 = 5",
  }),
  defineTool({
    name: "burn_note",
    description: "Burns a note.",
    input,
    effects: ["write"],
    run: () => "burnt",
  }),
];

const roles = loadRoles(await readRoleFolder(fileURLToPath(new URL("roles", import.meta.url))), tools);
for (const problem of [...roles.faults.map(({ message }) => message), ...roles.warnings])
  console.warn(problem);

const model = scripted({
  "/root": [
    script.spawn("check", "Is the note right?", { agent_type: "auditor", fork_turns: "none" }),
    script.wait({ targets: ["check"] }),
    script.say("audited"),
  ],
  "/root/check": [script.call("read_note", { name: "sum" }), script.say("It is wrong: 2 + 2 is 4.")],
});

await using runtime = await createRuntime({ providers: { scripted: model }, tools, roles });
const tree = await runtime.openTree();
const work = await tree.root.send("Have the note audited.");
const { ending } = await work.outcome({ signal: AbortSignal.timeout(10_000) });
const { config } = await (await tree.agent("check")).record();
console.log(ending, config.role, config.tools, config.effects);
if (config.role !== "auditor" || config.tools.includes("burn_note") || ending !== "completed")
  process.exitCode = 1;
