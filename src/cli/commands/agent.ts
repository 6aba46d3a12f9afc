/**
 * `coppice agent …`: speaking to one agent from another process. A tree that is run by a live process is spoken to through
 * its inbox; one that nobody runs takes what it is told and keeps it until somebody runs it, which `--run` does.
 */
import { text as readAll } from "node:stream/consumers";
import { type Command, Option } from "commander";
import type { CommandVerb } from "../../protocol/command.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type CommandReceipt, commandTree } from "../../runtime/command-tree.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import type { Store } from "../../store/port.ts";
import { badUse } from "../failure.ts";
import { findTree } from "../find-tree.ts";
import { DEFAULT_PACE_MS } from "../run-tree.ts";
import { openForWriting, storePlace } from "../store-place.ts";
import type { Terminal } from "../terminal.ts";
import { type TreeOptions, wholeNumber, withTree } from "./options.ts";
import { runUntilIdle } from "./run-until-idle.ts";
import { reportWorks, waitForWorks, worksToWaitFor } from "./wait-for-works.ts";

interface Options extends TreeOptions {
  readonly run?: boolean;
  readonly pace: number;
  readonly cascade?: string;
  readonly pending?: string;
  readonly timeout: number;
}

const SECOND = 1_000;

export function addAgent(program: Command, terminal: Terminal): void {
  const agent = program
    .command("agent")
    .description("send, follow up, interrupt, close or wait for one agent");
  const run = (command: Command): Command =>
    command
      .option("--run", "when no process runs the tree: run it here until nothing is left to do")
      .addOption(paceOption().hideHelp());

  run(withTree(agent.command("send")))
    .description("leave a message; it starts nothing and is read with the agent's next step")
    .argument("<agent>", "path or id of the agent")
    .argument("[message]", "the text; `-` or nothing reads standard input")
    .action(async (target: string, message: string | undefined, options: Options) => {
      const text = await messageOf(message);
      await commanding(options, target, async (store, tree) => {
        const receipt = await act(terminal, store, tree, "send", { target, message: text });
        const number = `Message ${JSON.stringify(receipt.answer["seq"])}`;
        tell(terminal, options, receipt, {
          owner: `${number} is in the mailbox of ${target}. It starts nothing: it is read before the next step.`,
          here: `${number} is in the mailbox of ${target}. No process runs the tree: it is read when the agent next runs.`,
        });
        if (options.run === true) await runHere(terminal, store, tree, options, receipt);
      });
    });

  run(withTree(agent.command("followup")))
    .description("give another task; an idle agent starts, a running one takes it in")
    .argument("<agent>", "path or id of the agent")
    .argument("[message]", "the task; `-` or nothing reads standard input")
    .action(async (target: string, message: string | undefined, options: Options) => {
      const text = await messageOf(message);
      await commanding(options, target, async (store, tree) => {
        const receipt = await act(terminal, store, tree, "followup", { target, message: text });
        const id = receipt.answer["work_id"] as string;
        tell(terminal, options, receipt, {
          owner: `${target} has the task ${id}. Wait for its result: npx coppice agent wait ${target}`,
          here:
            options.run === true
              ? `${target} has the task ${id}, and the tree is run here.`
              : `${target} has the task ${id}. No process runs the tree: it starts when one does, such as with --run.`,
        });
        if (options.run !== true) return;
        if (!(await runHere(terminal, store, tree, options, receipt))) return;
        await reportWorks(terminal, store, [id], options.json === true);
      });
    });

  withTree(agent.command("interrupt"))
    .description("cut off what an agent does; it stays and can be given another task")
    .argument("<agent>", "path or id of the agent")
    .addOption(new Option("--cascade <which>", "agents below it as well").choices(["none", "subtree"]))
    .addOption(new Option("--pending <what>", "tasks that it has not begun").choices(["keep", "cancel"]))
    .action(async (target: string, options: Options) => {
      await commanding(options, target, async (store, tree) => {
        const { cascade = "none", pending = "keep" } = options;
        const receipt = await act(terminal, store, tree, "interrupt", { target, cascade, pending });
        const touched = receipt.answer["touched"] as readonly { path: string; previous: string }[];
        const said =
          touched.length === 0
            ? "There was nothing to interrupt."
            : touched.map(({ path, previous }) => `${path} was ${previous} and is interrupted.`).join("\n");
        tell(terminal, options, receipt, { owner: said, here: said });
      });
    });

  withTree(agent.command("close"))
    .description("close an agent and all below it, for good; its open work ends as cancelled")
    .argument("<agent>", "path or id of the agent")
    .action(async (target: string, options: Options) => {
      await commanding(options, target, async (store, tree) => {
        const receipt = await act(terminal, store, tree, "close", { target });
        const said = `Closed: ${(receipt.answer["closed"] as readonly string[]).join(", ")}.`;
        tell(terminal, options, receipt, { owner: said, here: said });
      });
    });

  run(withTree(agent.command("wait")))
    .description("wait until the open work of an agent has ended, and show the results")
    .argument("<agent>", "path or id of the agent")
    .option("--timeout <seconds>", "how long at most", wholeNumber(0, 86_400), 600)
    .action(async (target: string, options: Options) => {
      await commanding(options, target, async (store, tree) => {
        const ids = await worksToWaitFor(store, await tree.agent(target));
        if (options.run === true && (await tree.owner()) === null) {
          await runUntilIdle(terminal, store, tree, { pace: options.pace, json: options.json === true });
        }
        await waitForWorks(terminal, store, tree, ids, options.timeout * SECOND);
        await reportWorks(terminal, store, ids, options.json === true);
      });
    });
}

export function paceOption(): Option {
  return new Option("--pace <ms>", "how long a response of the scripted model takes")
    .argParser(wholeNumber(0, 60_000))
    .default(DEFAULT_PACE_MS);
}

async function commanding(
  options: TreeOptions,
  target: string,
  use: (store: Store, tree: TreeReader) => Promise<void>,
): Promise<void> {
  const store = await openForWriting(storePlace(options.store));
  try {
    const tree = await findTree(store, options.tree, target);
    // Said before anything is stored: a wrong name is a fault of the caller.
    await tree.agent(target);
    await use(store, tree);
  } finally {
    await store.close();
  }
}

function act(terminal: Terminal, store: Store, tree: TreeReader, verb: CommandVerb, args: JsonObject) {
  return commandTree(store, tree.id, verb, args, { signal: terminal.signal });
}

function tell(
  terminal: Terminal,
  options: Options,
  receipt: CommandReceipt,
  words: { readonly owner: string; readonly here: string },
): void {
  if (options.json === true) terminal.json({ applied_by: receipt.appliedBy, ...receipt.answer });
  else terminal.line(receipt.appliedBy === "owner" ? words.owner : words.here);
}

/** False when another process runs the tree: it does what there is to do. */
async function runHere(
  terminal: Terminal,
  store: Store,
  tree: TreeReader,
  options: Options,
  receipt: CommandReceipt,
): Promise<boolean> {
  if (receipt.appliedBy === "owner") {
    terminal.note(
      "A process runs the tree already, and does it there; to see the result: npx coppice agent wait",
    );
    return false;
  }
  await runUntilIdle(terminal, store, tree, { pace: options.pace, json: options.json === true });
  return true;
}

async function messageOf(argument: string | undefined): Promise<string> {
  if (argument === undefined && process.stdin.isTTY === true) {
    throw badUse("the message is missing; give it as the last argument, or on standard input.");
  }
  const message = argument === undefined || argument === "-" ? await readAll(process.stdin) : argument;
  if (message.trim() === "") throw badUse("the message is blank; say something.");
  return message;
}
