/**
 * `coppice run`: a new tree whose root is an agent of any provider, one task, and its answer. While it runs the tree can be
 * watched and steered from another shell; what its agents ask is told with the command that answers it.
 */
import { type Command, Option } from "commander";
import { PROFILES, type ProfileName } from "../../protocol/profile.ts";
import { openSqliteStore } from "../../store/sqlite.ts";
import { PRACTICE } from "../practice.ts";
import { hostOf } from "../run-tree.ts";
import { commandLine } from "../screen/command-line.ts";
import { requestLines } from "../screen/request-lines.ts";
import { newStorePlace } from "../store-place.ts";
import { clean, cleanLines, clip, type Terminal } from "../terminal.ts";
import { messageOf, paceOption } from "./commanding.ts";
import { shortPath } from "./demo-report.ts";
import { folderOf } from "./folder-of.ts";
import { notBlank, type StoreOptions, withConfig, withStore } from "./options.ts";
import { follow } from "./run-until-idle.ts";
import { PROVIDER_HELP } from "./thread-life.ts";
import { reportWorks } from "./wait-for-works.ts";

const TITLE_COLUMNS = 80;

interface Options extends StoreOptions {
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  readonly profile?: ProfileName;
  readonly dir: string;
  readonly pace: number;
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
    .option("--dir <folder>", "the folder that it works in", ".")
    .addOption(new Option("--profile <name>", "the rules of the tree").choices(Object.keys(PROFILES)))
    .addOption(paceOption().hideHelp())
    .action(async (given: string | undefined, options: Options) => {
      await run(terminal, await messageOf(given), options);
    });
}

async function run(terminal: Terminal, task: string, options: Options): Promise<void> {
  const workspace = folderOf("--dir", options.dir);
  const host = await hostOf(options);
  const { provider, model } = host.choice(options) ?? { provider: PRACTICE[0], model: null };
  const { path } = newStorePlace(options.store);
  const store = await openSqliteStore({ path });
  await using _closed = { [Symbol.asyncDispose]: () => store.close() };
  await using runtime = await host.runtime(store, { pace: options.pace, demo: false });
  const tree = await runtime.openTree({
    title: clip(clean(task).trim(), TITLE_COLUMNS),
    provider,
    workspace,
    ...(model === null ? {} : { model }),
    ...(options.effort === undefined ? {} : { effort: options.effort }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
  });
  const at = { tree: tree.id, store: options.store };
  const told = new Set<string>();
  const onAsked = async (): Promise<void> => {
    for (const request of await tree.requests()) {
      if (told.has(request.id)) continue;
      told.add(request.id);
      for (const line of requestLines(terminal, [request], options)) terminal.note(line);
    }
  };
  try {
    await using _following = follow(terminal, tree, 0, { json: options.json === true, onAsked });
    const work = await tree.root.send(task, { signal: terminal.signal });
    await work.outcome({ signal: terminal.signal });
    await tree.idle({ signal: terminal.signal });
    const { outcome } = await work.record();
    if (options.json === true || outcome?.ending !== "completed")
      return await reportWorks(terminal, store, [work.id], options);
    for (const line of cleanLines(outcome.text)) terminal.line(line);
  } finally {
    if (options.json !== true) {
      terminal.note(`Store: ${shortPath(path)}`);
      terminal.note(`Look: ${commandLine("tree", at)}`);
    }
    if (terminal.signal.aborted)
      terminal.note(
        `The tree is given back; what was under way is cut off. Go on with: ${commandLine("agent followup /root", { ...at, config: options.config, run: true }, '"go on"')}`,
      );
  }
}
