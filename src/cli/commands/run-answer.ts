/** The answer to the task of a tree that `run` has made: the tree is run here until nothing is left to do, and its outcome printed. */
import type { TreeHandle } from "../../runtime/tree-handle.ts";
import type { Work } from "../../runtime/work.ts";
import type { Store } from "../../store/port.ts";
import { isAgentProgram } from "../agent-programs.ts";
import { commandLine } from "../screen/command-line.ts";
import { requestLines } from "../screen/request-lines.ts";
import { cleanLines, type Terminal } from "../terminal.ts";
import { shortPath } from "./demo-report.ts";
import type { StoreOptions } from "./options.ts";
import { follow } from "./run-until-idle.ts";
import { reportWorks } from "./wait-for-works.ts";

export interface AnswerOptions extends StoreOptions {
  readonly pace: number;
}

/**
 * @param after the event after which the tree's are told.
 * @throws CommandError when the task did not complete.
 */
export async function answerOf(
  terminal: Terminal,
  store: Store,
  tree: TreeHandle,
  after: number,
  options: AnswerOptions,
  ask: () => Promise<Work>,
): Promise<void> {
  const told = new Set<string>();
  const onAsked = async (): Promise<void> => {
    for (const request of await tree.requests()) {
      if (told.has(request.id)) continue;
      told.add(request.id);
      for (const line of requestLines(terminal, [request], options)) terminal.note(line);
    }
  };
  try {
    await using _following = follow(terminal, tree, after, { json: options.json === true, onAsked });
    await onAsked();
    const work = await ask();
    await work.outcome({ signal: terminal.signal });
    await tree.idle({ signal: terminal.signal });
    await printAnswer(terminal, store, work.id, options);
  } finally {
    if (options.json !== true) {
      terminal.note(`Store: ${shortPath(store.name)}`);
      terminal.note(`Look: ${commandLine("tree", { tree: tree.id, store: options.store })}`);
    }
    if (terminal.signal.aborted) await tellGivenBack(terminal, tree, options);
  }
}

export async function printAnswer(
  terminal: Terminal,
  store: Store,
  id: Work["id"],
  options: AnswerOptions,
): Promise<void> {
  const outcome = await store.read((view) => view.work(id)?.outcome);
  if (options.json === true || outcome?.ending !== "completed")
    return reportWorks(terminal, store, [id], options);
  for (const line of cleanLines(outcome.text)) terminal.line(line);
}

/** What is asked stays asked where its run only waits, as no program's does; what was under way begins anew. */
async function tellGivenBack(
  terminal: Terminal,
  tree: TreeHandle,
  { config, store }: AnswerOptions,
): Promise<void> {
  const resume = commandLine("run", { resume: true, tree: tree.id, config, store });
  const [{ agents }, asked] = await Promise.all([tree.list({ limit: 1_000 }), tree.requests()]);
  const programs = agents.filter(({ provider }) => isAgentProgram(provider)).map(({ path }) => path);
  const waits = asked.some(({ path }) => !programs.includes(path));
  const left = waits
    ? "What is asked above waits for its answer in the store, and can be answered meanwhile."
    : "What was under way begins anew.";
  terminal.note(`The tree is given back. ${left} Go on with: ${resume}`);
}
