/** `coppice why`: why an agent does what it does, or does not. */
import type { Command } from "commander";
import { goOnCommand } from "../go-on.ts";
import { answerCommand } from "../screen/request-lines.ts";
import { clean, type Terminal, wrap } from "../terminal.ts";
import { reading, type TreeOptions, withTree } from "./options.ts";

export function addWhy(program: Command, terminal: Terminal): void {
  withTree(program.command("why"), { json: "one object", example: "why /root/searcher" })
    .description(
      "explain an agent from log and records: why it runs or not, what it waits for, who owes what",
    )
    .argument("<agent>", "path or id of the agent")
    .action(async (agent: string, options: TreeOptions) => {
      await reading(options, agent, async (tree, store) => {
        const explanation = await tree.why(agent);
        const record = await tree.agent(agent);
        const requests = await tree.requests(record.threadId);
        if (options.json === true) {
          terminal.json({ ...explanation, requests });
          return;
        }
        terminal.line(
          terminal.paint("bold", `${explanation.path} is ${explanation.status.replaceAll("_", " ")}.`),
        );
        for (const reason of explanation.reasons) {
          for (const line of wrap(`- ${clean(reason)}`, terminal.columns, "  ")) terminal.line(line);
        }
        for (const request of requests) terminal.line(`Answer: ${answerCommand(request, options)}`);
        if ((await tree.owner()) !== null) return;
        const left = await store.read((view) => view.openWorksOf(record.threadId));
        if (left.length === 0) return;
        const goOn = await goOnCommand(store, record, { tree: tree.id, store: options.store });
        terminal.line(`To run it on: ${goOn}`);
      });
    });
}
