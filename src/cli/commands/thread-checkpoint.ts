/** `coppice thread checkpoint`: the files as runs have left them, compared, written back and removed. */
import type { Command } from "commander";
import type { Difference, Missing, Refused, Restored } from "../../platform/workspace/port.ts";
import type { RestoreAnswer, Unfinished, WorkspaceCheckpoint } from "../../threads/checkpoints.ts";
import { CommandError, EXIT } from "../failure.ts";
import { commandLine } from "../screen/command-line.ts";
import { clean, cleanLines, type Terminal, widthOf, wrap } from "../terminal.ts";
import { type StoreOptions, wholeNumber, withStore } from "./options.ts";
import { runNamed } from "./thread-mend.ts";
import {
  byOwnerOrHere,
  changeCommand,
  type ChangeOptions,
  changeThreads,
  lookAtThreads,
  tellChange,
  THREAD_ARGUMENT,
} from "./threading.ts";

const RUN_ARGUMENT = "the run that left them: N or run:N as `thread show` numbers them";
const SHOWN = 50;

interface RestoreOptions extends ChangeOptions {
  readonly path?: readonly string[];
  readonly overwrite?: boolean;
}

export function addThreadCheckpoint(thread: Command, terminal: Terminal): void {
  const checkpoint = thread
    .command("checkpoint")
    .description("list, compare, write back or remove the files that runs have left")
    .addHelpText("after", "\nExample: npx coppice thread checkpoint list thread_…");

  withStore(checkpoint.command("list"), {
    json: "NDJSON, a checkpoint a line",
    example: "thread checkpoint list thread_…",
  })
    .description("show the checkpoints of a thread, oldest first")
    .argument("<thread>", THREAD_ARGUMENT)
    .option("--after <cursor>", "the page after this one; a page tells its cursor")
    .option("--limit <n>", "runs a page", wholeNumber(1, 10_000), SHOWN)
    .action((id: string, options: StoreOptions & { readonly after?: string; readonly limit: number }) =>
      lookAtThreads(options, async ({ threads }) => {
        const { after = null, limit, store } = options;
        const { rows, next } = await threads.checkpoints(id, { after, limit });
        for (const one of rows) {
          if (options.json === true) terminal.json(one);
          else for (const line of checkpointLines(terminal, one)) terminal.line(line);
        }
        if (rows.length === 0 && options.json !== true)
          terminal.line("There are no checkpoints here; `workspaceCapture` in your --config takes them.");
        if (next !== null) {
          const again = { after: next, limit: limit === SHOWN ? undefined : limit, store };
          terminal.note(`more: ${commandLine(`thread checkpoint list ${id}`, again)}`);
        }
      }),
    );

  withStore(checkpoint.command("diff"), {
    json: "one object",
    example: "thread checkpoint diff thread_… 2",
  })
    .description(
      "compare the files that a run has left with those of another run, or with the folder as it is",
    )
    .argument("<thread>", THREAD_ARGUMENT)
    .argument("<run>", RUN_ARGUMENT)
    .argument("[to]", "another run; default: the folder as it is")
    .action((id: string, run: string, to: string | undefined, options: StoreOptions) =>
      lookAtThreads(options, async (at) => {
        const found = await at.threads.get(id);
        const until = to === undefined ? {} : { to: await runNamed(at, found, to) };
        const between = { run: await runNamed(at, found, run), ...until };
        const difference = requireDone(await at.threads.diffCheckpoints(found.id, between));
        if (options.json === true) {
          terminal.json(difference);
          return;
        }
        terminal.line(terminal.paint("bold", difference.summary));
        for (const line of cleanLines(difference.patch.trimEnd())) terminal.line(line);
      }),
    );

  changeCommand(checkpoint, "restore", {
    json: "one object",
    example: "thread checkpoint restore thread_… 2",
  })
    .description("write the files as a run has left them; index, branch and stash stay as they are")
    .argument("<thread>", THREAD_ARGUMENT)
    .argument("<run>", RUN_ARGUMENT)
    .option("--path <path...>", "only these files or folders, as named within the workspace")
    .option("--overwrite", "also over what no checkpoint can hold, which is lost then")
    .action((id: string, run: string, options: RestoreOptions) =>
      changeThreads(options, id, async (at) => {
        const found = await at.threads.get(id);
        const { path: paths, overwrite } = options;
        const asked = {
          run: await runNamed(at, found, run),
          ...(paths === undefined ? {} : { paths: [...paths] }),
          ...(overwrite === undefined ? {} : { overwrite }),
        };
        const args = { thread: found.id, ...asked };
        const here = () => at.threads.restoreCheckpoint(found.id, { ...asked, commandId: options.commandId });
        const verb = "restore_checkpoint";
        const { appliedBy, answer } = await byOwnerOrHere(terminal, at, found, verb, args, options, here);
        const restored = requireDone(answer as unknown as RestoreAnswer);
        tellChange(terminal, options, appliedBy, restored, [
          `${counted(restored.written.length)} written and ${counted(restored.removed.length)} removed. What stood there before: ${clean(restored.before)}`,
        ]);
      }),
    );

  changeCommand(checkpoint, "remove", {
    json: "one object",
    example: "thread checkpoint remove thread_… 2",
  })
    .description("remove a checkpoint; the files of the folder stay as they are")
    .argument("<thread>", THREAD_ARGUMENT)
    .argument("<run>", RUN_ARGUMENT)
    .action((id: string, run: string, options: ChangeOptions) =>
      changeThreads(options, id, async (at) => {
        const found = await at.threads.get(id);
        const runId = await runNamed(at, found, run);
        const args = { thread: found.id, run: runId };
        const here = () => at.threads.removeCheckpoint(found.id, runId, { commandId: options.commandId });
        const verb = "remove_checkpoint";
        const { appliedBy, answer } = await byOwnerOrHere(terminal, at, found, verb, args, options, here);
        requireDone(answer as unknown as { readonly status: "ready" } | Missing);
        tellChange(terminal, options, appliedBy, { runId, status: "removed" }, [
          "The checkpoint is removed.",
        ]);
      }),
    );
}

/** The ref is what one copies: it is whole, on a line of its own where there is no room. */
function checkpointLines(
  terminal: Terminal,
  { ordinal, status, summary, reason, ref }: WorkspaceCheckpoint,
): string[] {
  const said = status === "ready" ? (summary ?? "") : `${status}${reason === null ? "" : `: ${reason}`}`;
  const head = `run ${ordinal}  ${clean(said)}`;
  if (status !== "ready" || ref === null) return wrap(head, terminal.room, "  ");
  const one = `${head}  ${ref}`;
  return widthOf(one) <= terminal.room ? [one] : [...wrap(head, terminal.room, "  "), `  ${ref}`];
}

function counted(files: number): string {
  return files === 1 ? "1 file is" : `${files} files are`;
}

/** @throws CommandError for what could not be done, or was refused. */
function requireDone<T extends Difference | Restored | { readonly status: "ready" }>(
  answer: T | Refused | Missing | Unfinished,
): T {
  switch (answer.status) {
    case "missing":
      throw new CommandError(EXIT.incomplete, "CHECKPOINT_UNAVAILABLE", `${answer.reason}.`);
    case "unfinished":
      throw new CommandError(EXIT.incomplete, "CHECKPOINT_UNFINISHED", `${answer.reason}.`);
    case "refused": {
      const paths = answer.paths.slice(0, 5).join(", ");
      throw new CommandError(
        EXIT.incomplete,
        "CHECKPOINT_REFUSED",
        `nothing was written: ${answer.reason}, with --overwrite. In the way: ${paths}`,
      );
    }
    default:
      return answer as T;
  }
}
