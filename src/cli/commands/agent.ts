/**
 * `coppice agent …`: speaking to one agent from another process. A tree that is run by a live process is spoken to through
 * its inbox; one that nobody runs takes what it is told and keeps it until somebody runs it, which `--run` does.
 */
import { type Command, Option } from "commander";
import { commandLine } from "../screen/command-line.ts";
import type { Terminal } from "../terminal.ts";
import { addAnswer } from "./answer.ts";
import { addBudget } from "./budget.ts";
import {
  act,
  commanding,
  messageOf,
  RUN_JSON,
  runHere,
  type RunOptions,
  tell,
  withRun,
} from "./commanding.ts";
import { given, wholeNumber, withTree } from "./options.ts";
import { addAgentTranscript } from "./thread-past.ts";
import { runUntilIdle } from "./run-until-idle.ts";
import { reportWorks, waitForWorks, worksToWaitFor } from "./wait-for-works.ts";

interface Options extends RunOptions {
  readonly cascade?: string;
  readonly pending?: string;
  readonly timeout: number;
}

const SECOND = 1_000;

export function addAgent(program: Command, terminal: Terminal): void {
  const agent = program
    .command("agent")
    .description("one agent: send, follow up, answer, budget, interrupt, close, wait, transcript")
    .addHelpText(
      "after",
      "\nThe rules (`--profile`) are those that the tree was opened with.\n\nExample: npx coppice agent wait /root/reader",
    );

  const rules =
    "\nThe rules, such as what wakes an idle root, are those of the profile\n(`--profile`) that the tree was opened with.";
  withRun(
    withTree(agent.command("send"), {
      json: RUN_JSON,
      example: 'agent send /root/reader "look at the tests, too"',
    }),
  )
    .description("leave a message; it starts nothing and is read with the agent's next step")
    .argument("<agent>", "path or id of the agent")
    .argument("[message]", "the text; `-` or nothing reads standard input")
    .addHelpText("after", rules)
    .action(async (target: string, message: string | undefined, options: Options) => {
      const text = await messageOf(message);
      await commanding(options, target, async (at) => {
        const receipt = await act(terminal, at, "send", { target, message: text });
        const number = `Message ${JSON.stringify(receipt.answer["seq"])}`;
        tell(terminal, options, receipt, {
          owner: `${number} is in the mailbox of ${target}. It starts nothing: it is read before the next step.`,
          here: `${number} is in the mailbox of ${target}. No process runs the tree: it is read when the agent next runs.`,
        });
        if (options.run !== true) return;
        await runHere(terminal, at, options, receipt);
        if (receipt.appliedBy === "owner") return;
        const { unread } = await at.store.read((view) => view.mailbox(at.agent.threadId));
        if (unread > 0)
          terminal.note(
            `A message starts no run, and it is not read yet. To give a task: ${commandLine(`agent followup ${target}`, { ...given(options), run: true }, '"…"')}`,
          );
      });
    });

  withRun(
    withTree(agent.command("followup"), {
      json: "one object, with --run NDJSON: it and the work",
      example: 'agent followup /root/reader "read NOTES.md, too" --run',
    }),
  )
    .description("give another task; an idle agent starts, a running one takes it in")
    .argument("<agent>", "path or id of the agent")
    .argument("[message]", "the task; `-` or nothing reads standard input")
    .addHelpText("after", rules)
    .action(async (target: string, message: string | undefined, options: Options) => {
      const text = await messageOf(message);
      await commanding(options, target, async (at) => {
        const receipt = await act(terminal, at, "followup", { target, message: text });
        const id = receipt.answer["work_id"] as string;
        tell(terminal, options, receipt, {
          owner: `${target} has the task ${id}. Wait for its result: ${commandLine(`agent wait ${target}`, given(options))}`,
          here:
            options.run === true
              ? `${target} has the task ${id}, and the tree is run here.`
              : `${target} has the task ${id}. No process runs the tree: it starts when one does, such as with --run.`,
        });
        if (options.run !== true) return;
        await runHere(terminal, at, options, receipt, id);
      });
    });

  addAnswer(agent, terminal);
  addBudget(agent, terminal);
  addAgentTranscript(agent, terminal);

  withTree(agent.command("interrupt"), {
    json: "one object",
    example: "agent interrupt /root/searcher --cascade subtree",
  })
    .description("cut off what an agent does; it stays and can be given another task")
    .argument("<agent>", "path or id of the agent")
    .addOption(new Option("--cascade <which>", "agents below it as well").choices(["none", "subtree"]))
    .addOption(new Option("--pending <what>", "tasks that it has not begun").choices(["keep", "cancel"]))
    .action(async (target: string, options: Options) => {
      await commanding(options, target, async (at) => {
        const { cascade = "none", pending = "keep" } = options;
        const receipt = await act(terminal, at, "interrupt", { target, cascade, pending });
        const touched = receipt.answer["touched"] as readonly { path: string; previous: string }[];
        const said =
          touched.length === 0
            ? "There was nothing to interrupt."
            : touched.map(({ path, previous }) => `${path} was ${previous} and is interrupted.`).join("\n");
        tell(terminal, options, receipt, { owner: said, here: said });
      });
    });

  withTree(agent.command("close"), { json: "one object", example: "agent close /root/searcher" })
    .description("close an agent and all below it, for good; its open work ends as cancelled")
    .argument("<agent>", "path or id of the agent")
    .action(async (target: string, options: Options) => {
      await commanding(options, target, async (at) => {
        const receipt = await act(terminal, at, "close", { target });
        const closed = receipt.answer["closed"] as readonly string[];
        const said = closed.length === 0 ? "There was nothing to close." : `Closed: ${closed.join(", ")}.`;
        tell(terminal, options, receipt, { owner: said, here: said });
      });
    });

  withRun(
    withTree(agent.command("wait"), {
      json: "NDJSON, a work a line",
      example: "agent wait /root/reader --timeout 60",
    }),
  )
    .description("wait until the open work of an agent has ended, and show the results")
    .argument("<agent>", "path or id of the agent")
    .option("--timeout <seconds>", "how long at most", wholeNumber(0, 86_400), 600)
    .action(async (target: string, options: Options) => {
      await commanding(options, target, async (at) => {
        const { store, tree, agent: waited } = at;
        const ids = await worksToWaitFor(store, waited);
        if (options.run === true && (await tree.owner()) === null) {
          await runUntilIdle(terminal, at, options);
        }
        await waitForWorks(terminal, store, tree, ids, {
          timeoutMs: options.timeout * SECOND,
          config: options.config,
        });
        await reportWorks(terminal, store, ids, options);
      });
    });
}
