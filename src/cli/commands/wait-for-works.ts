/** Works that a command waits for and reports on, read from the store: whoever runs the tree ends them. */
import { delay, systemClock } from "../../platform/clock.ts";
import type { AgentRecord } from "../../protocol/agent.ts";
import { isWorkId, type WorkId } from "../../protocol/ids.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { TreeReader } from "../../runtime/tree-reader.ts";
import type { Store } from "../../store/port.ts";
import { DEMO_TITLE } from "../demo/job.ts";
import { CommandError, EXIT } from "../failure.ts";
import { goOnCommand } from "../go-on.ts";
import { commandLine } from "../screen/command-line.ts";
import { workState } from "../screen/words.ts";
import { cleanLines, type Terminal } from "../terminal.ts";
import type { StoreOptions } from "./options.ts";

const LOOK_MS = 100;

/** The open works of an agent; with none, its newest. */
export async function worksToWaitFor(store: Store, agent: AgentRecord): Promise<readonly WorkId[]> {
  const works = await store.read((view) => {
    const open = view.openWorksOf(agent.threadId);
    return open.length > 0 ? open : [view.latestWork(agent.threadId)].filter((work) => work !== undefined);
  });
  if (works.length > 0) return works.map((work) => work.id);
  throw new CommandError(
    EXIT.notFound,
    "AGENT_NOT_FOUND",
    `${agent.path} has no work to wait for; give it a task.`,
    `agent followup ${agent.path} "…"`,
  );
}

export async function waitForWorks(
  terminal: Terminal,
  store: Store,
  tree: TreeReader,
  ids: readonly WorkId[],
  { timeoutMs, config }: { readonly timeoutMs: number; readonly config?: string | undefined },
): Promise<void> {
  const until = systemClock.monotonic() + timeoutMs;
  for (;;) {
    const open = (await recordsOf(store, ids)).filter((work) => work.state !== "ended");
    if (open.length === 0) return;
    if ((await tree.owner()) === null) {
      const { executor, executorPath, id } = open[0]!;
      const agent = { threadId: executor, path: executorPath };
      const goOn = await goOnCommand(store, agent, { tree: tree.id, store: store.name, config });
      const demo =
        (await tree.record()).title === DEMO_TITLE
          ? `, or: ${commandLine("demo", { resume: true, store: store.name })}`
          : "";
      throw new CommandError(
        EXIT.notFound,
        "NOT_OWNER",
        `no process runs the tree, so ${id} cannot end; run it here: ${goOn}${demo}`,
      );
    }
    if (systemClock.monotonic() >= until) {
      const still = open.map((work) => `${work.id} is ${workState(work)}`).join(", ");
      throw new CommandError(
        EXIT.timeOut,
        "LIMIT_REACHED",
        `the time is over: ${still}. It goes on; wait again.`,
      );
    }
    await delay(systemClock, LOOK_MS, terminal.signal);
  }
}

/** Shows how works ended. @throws CommandError when one of them did not complete. */
export async function reportWorks(
  terminal: Terminal,
  store: Store,
  ids: readonly string[],
  options: StoreOptions,
): Promise<void> {
  const works = await recordsOf(store, ids);
  for (const work of works) {
    if (options.json === true) terminal.json(work);
    else printOutcome(terminal, work);
  }
  const failed = works.find((work) => work.outcome?.ending !== "completed");
  if (failed === undefined) return;
  throw new CommandError(
    EXIT.incomplete,
    "WORK_INCOMPLETE",
    `${failed.id} of ${failed.executorPath} is ${workState(failed)}. See: ${commandLine(`why ${failed.executorPath}`, { tree: failed.treeId, store: options.store })}`,
  );
}

function recordsOf(store: Store, ids: readonly string[]): Promise<WorkRecord[]> {
  return store.read((view) =>
    ids.flatMap((id) => {
      const work = isWorkId(id) ? view.work(id) : undefined;
      return work === undefined ? [] : [work];
    }),
  );
}

function printOutcome(terminal: Terminal, work: WorkRecord): void {
  const text = work.outcome?.text ?? "";
  terminal.line(terminal.paint("bold", `${work.executorPath}: ${workState(work)}`));
  for (const line of cleanLines(text === "" ? (work.outcome?.error?.message ?? "") : text)) {
    if (line !== "") terminal.line(line);
  }
}
