/**
 * The command that runs a tree on that nobody runs, so that its work goes on. What waits in the store, and what begins anew after
 * a crash (REC-1), goes on by itself once the tree is run; a run that ends as lost needs a new task.
 */
import { isSettled } from "../protocol/run.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { Store, StoreView } from "../store/port.ts";
import { isAgentProgram } from "./agent-programs.ts";
import { isOfCommandLine } from "./run-tree.ts";
import { commandLine } from "./screen/command-line.ts";

/** @param at what the command before it was given. */
export function goOnCommand(
  store: Store,
  { threadId, path }: { readonly threadId: ThreadId; readonly path: string },
  at: { readonly tree: string; readonly store?: string | undefined; readonly config?: string | undefined },
): Promise<string> {
  return store.read((view) => {
    const config = at.config ?? (needsConfig(view, threadId) ? "FILE" : undefined);
    const options = { run: true, ...at, config };
    return endsLost(view, threadId)
      ? commandLine(`agent followup ${path}`, options, '"go on"')
      : commandLine(`agent wait ${path}`, options);
  });
}

/** Its run was accepted, cannot be taken up again, and is not begun anew. */
function endsLost(view: StoreView, threadId: ThreadId): boolean {
  const agent = view.agent(threadId);
  const run = agent === undefined || agent.currentRun === null ? undefined : view.run(agent.currentRun);
  if (run === undefined || isSettled(run) || run.acceptedAt === null) return false;
  if (agent!.config.onLostRun === "retry") return false;
  // The waits of a program's run end with the program.
  return run.status === "running" || isAgentProgram(run.provider);
}

function needsConfig(view: StoreView, threadId: ThreadId): boolean {
  const agent = view.agent(threadId);
  if (agent === undefined || (process.env["COPPICE_CONFIG"] ?? "") !== "") return false;
  return !isOfCommandLine((agent.thread?.selection ?? agent.config).provider);
}
