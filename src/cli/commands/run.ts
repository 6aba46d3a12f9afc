/**
 * `coppice run`: a new tree whose root is an agent of any provider, one task, and its answer. While it runs the tree can be
 * watched and steered from another shell; what its agents ask is told with the command that answers it. It can be killed at any
 * time: its runs begin anew after a crash (REC-1), and `--resume` goes on with what is stored.
 */
import { type Command, Option } from "commander";
import { PROFILES, type ProfileName } from "../../protocol/profile.ts";
import { openSqliteStore } from "../../store/sqlite.ts";
import { badUse } from "../failure.ts";
import { PRACTICE } from "../practice.ts";
import { hostOf } from "../run-tree.ts";
import { newStorePlace } from "../store-place.ts";
import { clean, clip, type Terminal } from "../terminal.ts";
import { messageOf, paceOption } from "./commanding.ts";
import { folderOf } from "./folder-of.ts";
import { notBlank, withConfig, withStore } from "./options.ts";
import { answerOf, type AnswerOptions } from "./run-answer.ts";
import { resumeRun } from "./run-resume.ts";
import { PROVIDER_HELP } from "./thread-life.ts";

const TITLE_COLUMNS = 80;

interface Options extends AnswerOptions {
  readonly resume?: boolean;
  readonly tree?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  readonly profile?: ProfileName;
  readonly dir?: string;
}

export function addRun(program: Command, terminal: Terminal): void {
  withConfig(
    withStore(program.command("run"), {
      json: "one object: the work with its outcome",
      example: 'run --provider codex "find out why the tests fail"',
    }),
  )
    .description("grow a new tree for one task, and print its answer")
    .argument("[task]", "what the root is to do; `-` or nothing reads standard input")
    .option("--provider <name>", `what the root is: ${PROVIDER_HELP}; default: ${PRACTICE[0]}`, notBlank)
    .option(
      "--model <name>",
      "its model: <vendor>/<name> of the AI SDK, or one that the agent knows",
      notBlank,
    )
    .option("--effort <level>", "how much it thinks, where its provider has levels", notBlank)
    .option("--dir <folder>", "the folder that it works in, else this one")
    .option("--resume", "go on with the newest one, after an interrupt or a crash, and print its answer")
    .option("--tree <id>", "with --resume: the one to go on with, by the id of its tree")
    .addOption(new Option("--profile <name>", "the rules of the tree").choices(Object.keys(PROFILES)))
    .addOption(paceOption().hideHelp())
    .action(async (given: string | undefined, options: Options) => {
      checkOptions(given, options);
      if (options.resume === true) await resumeRun(terminal, options);
      else await run(terminal, await messageOf(given), options);
    });
}

function checkOptions(task: string | undefined, options: Options): void {
  if (options.resume !== true) {
    if (options.tree !== undefined) throw badUse("--tree names what to go on with; give --resume, too.");
    return;
  }
  const begun = ["provider", "model", "effort", "dir", "profile"] as const;
  const given = begun.filter((name) => options[name] !== undefined).map((name) => `--${name}`);
  if (task !== undefined) given.unshift("the task");
  if (given.length === 0) return;
  throw badUse(`--resume goes on as it was begun; leave out ${given.join(", ")}, or leave out --resume.`);
}

async function run(terminal: Terminal, task: string, options: Options): Promise<void> {
  const workspace = folderOf("--dir", options.dir ?? ".");
  const host = await hostOf(options);
  const { provider, model } = (await host.choice(options)) ?? { provider: PRACTICE[0], model: null };
  const store = await openSqliteStore({ path: newStorePlace(options.store).path });
  await using _closed = { [Symbol.asyncDispose]: () => store.close() };
  await using runtime = await host.runtime(store, { pace: options.pace, demo: false });
  const tree = await runtime.openTree({
    title: clip(clean(task).trim(), TITLE_COLUMNS),
    provider,
    workspace,
    onLostRun: "retry",
    ...(model === null ? {} : { model }),
    ...(options.effort === undefined ? {} : { effort: options.effort }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
  });
  await answerOf(terminal, store, tree, 0, options, () => tree.root.send(task, { signal: terminal.signal }));
}
