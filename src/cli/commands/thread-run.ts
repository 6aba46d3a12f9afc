/**
 * `coppice thread continue`: one message, and the answer to it. Without an owner the thread's tree is run here until nothing is
 * left to do; with one, the message goes through its inbox and the answer is awaited.
 */
import { type Command, Option } from "commander";
import { CoppiceError, RejectedError } from "../../protocol/errors.ts";
import { ROOT_PATH } from "../../protocol/agent-path.ts";
import type { RuntimeEvent } from "../../protocol/events.ts";
import { isWorkId, type WorkId } from "../../protocol/ids.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { ContinueOptions } from "../../runtime/thread-options.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { TreeReader } from "../../runtime/tree-reader.ts";
import type { ThreadDocument } from "../../threads/thread-view.ts";
import { badUse, CommandError, EXIT, exitOf } from "../failure.ts";
import { hostOf, type ProviderChoice } from "../run-tree.ts";
import { commandLine } from "../screen/command-line.ts";
import { requestLines } from "../screen/request-lines.ts";
import { openForWriting, storePlace } from "../store-place.ts";
import { cleanLines, type Terminal } from "../terminal.ts";
import { messageOf, paceOption } from "./commanding.ts";
import { notBlank, wholeNumber } from "./options.ts";
import { runHandle } from "./run-until-idle.ts";
import { PROVIDER_HELP } from "./thread-life.ts";
import {
  actOn,
  type At,
  changeCommand,
  type ChangeOptions,
  ownerOf,
  THREAD_ARGUMENT,
  withRuntime,
} from "./threading.ts";
import { waitForWorks } from "./wait-for-works.ts";

interface Options extends ChangeOptions {
  readonly onBusy?: NonNullable<ContinueOptions["onBusy"]>;
  readonly provider?: string;
  readonly model?: string;
  readonly expect?: number;
  readonly timeout: number;
  readonly pace: number;
}

const SECOND = 1_000;

export function addThreadRun(thread: Command, terminal: Terminal): void {
  changeCommand(thread, "continue", {
    json: "one object: the work with its outcome",
    example: 'thread continue thread_… -- "and the tests?"',
  })
    .description("say something to a thread, run it here, and print its answer")
    .argument("<thread>", THREAD_ARGUMENT)
    .argument("[message]", "the text, after `--`; `-` or nothing reads standard input")
    .option("--provider <name>", `go on with another provider: ${PROVIDER_HELP}`, notBlank)
    .option("--model <vendor/name>", "a model of the AI SDK, such as openai/gpt-5", notBlank)
    .option(
      "--expect <revision>",
      "only if the thread is at this revision, as `thread show` tells it",
      wholeNumber(1, Infinity),
    )
    .addOption(
      new Option(
        "--on-busy <how>",
        "while it is at work: refuse (default), queue behind it, or let it read this at its next step",
      ).choices(["reject", "queue", "steer"]),
    )
    .option("--timeout <seconds>", "how long another process is waited for", wholeNumber(0, 86_400), 600)
    .addOption(paceOption().hideHelp())
    .action(async (id: string, given: string | undefined, options: Options) => {
      if (given === undefined && !id.startsWith("thread_")) {
        throw badUse("which thread? Give its id first, thread_…, then `--` and the message.", "thread list");
      }
      const message = await messageOf(given);
      await withRuntime(
        await hostOf(options),
        { pace: options.pace, thread: id },
        () => openForWriting(storePlace(options.store)),
        (at) => proceed(terminal, at, id, message, options),
      );
    });
}

async function proceed(
  terminal: Terminal,
  at: At & { readonly runtime: Runtime },
  id: string,
  message: string,
  options: Options,
): Promise<void> {
  const thread = await at.threads.get(id);
  const tree = new TreeReader(at.store, thread.treeId);
  const owned = (await ownerOf(at, thread)) !== null;
  const choice = owned ? asGiven(options) : await at.host.choice(options);
  if (!owned) {
    // What was done under its id before is answered whatever the thread is by now.
    if (options.commandId === undefined) requireExpected(thread, options.expect);
    await at.host.requireRunnable(at.store, tree, choice);
  }
  const ended = await answered(terminal, at, thread, owned, message, choice, options);
  const [requests, draft] = await Promise.all([tree.requests(thread.id), at.threads.draft(id)]);
  if (options.json === true) terminal.json(ended);
  else if (ended.outcome?.ending === "completed")
    for (const line of cleanLines(ended.outcome.text)) terminal.line(line);
  if (ended.outcome === null && requests.length > 0) {
    for (const line of requestLines(terminal, requests, options)) terminal.note(line);
  }
  requireAnswered(thread, ended, draft !== null, options);
}

async function answered(
  terminal: Terminal,
  at: At & { readonly runtime: Runtime },
  thread: ThreadDocument,
  owned: boolean,
  message: string,
  choice: ProviderChoice | null,
  options: Options,
): Promise<WorkRecord> {
  try {
    const work = owned ? null : await runHere(terminal, at, thread, message, choice, options);
    return work ?? (await leaveToOwner(terminal, at, thread, message, choice, options));
  } catch (error) {
    if (!CoppiceError.is(error) || error.code !== "THREAD_BUSY") throw error;
    const { config, store } = options;
    const wait = commandLine(`agent wait ${thread.path}`, {
      tree: thread.treeId,
      config,
      store,
      run: !owned,
    });
    throw new CommandError(
      EXIT.incomplete,
      error.code,
      `agent ${thread.path} is busy with an earlier message. To go on with it: ${wait}. What it waits for: ${showCommand(thread.id, options)}`,
    );
  }
}

/** The owner knows its own providers. */
function asGiven({ provider, model }: Options): ProviderChoice | null {
  return provider === undefined ? null : { provider, model: model ?? null };
}

/** As the runtime would, but before the tree is taken over. */
function requireExpected({ id, revision }: ThreadDocument, expected: number | undefined): void {
  if (expected === undefined || expected === revision) return;
  throw new RejectedError(
    "THREAD_REVISION_CONFLICT",
    `${id} is at revision ${revision} and this was planned on ${expected}; look at it again, then ask again.`,
    { threadId: id, revision, expected },
  );
}

function inputOf(choice: ProviderChoice | null, { expect, onBusy }: Options) {
  return {
    ...(onBusy === undefined ? {} : { onBusy }),
    ...(choice === null ? {} : { provider: choice.provider }),
    ...(choice === null || choice.model === null ? {} : { model: choice.model }),
    ...(expect === undefined ? {} : { expectedRevision: expect }),
  };
}

/** Null when another process has taken the tree over meanwhile. */
async function runHere(
  terminal: Terminal,
  { threads, runtime, store }: At & { readonly runtime: Runtime },
  { id, treeId }: ThreadDocument,
  message: string,
  choice: ProviderChoice | null,
  options: Options,
): Promise<WorkRecord | null> {
  const after = await store.read((view) => view.lastEvent(treeId));
  try {
    const work = await threads.continue(id, message, {
      ...inputOf(choice, options),
      commandId: options.commandId,
    });
    const handle = await runtime.openTree({ id: treeId });
    await runHandle(terminal, handle, { after, json: options.json === true, untold });
    return (await store.read((view) => view.work(work.id)))!;
  } catch (error) {
    if (CoppiceError.is(error) && error.code === "NOT_OWNER") return null;
    throw error;
  }
}

/** What every answer of one agent comes with. What it calls, starts and waits for is told. */
const COMMON = [
  "tree.claimed",
  "agent.loaded",
  "agent.unloaded",
  "mail.accepted",
  "run.accepted",
  "run.settled",
];

function untold({ type, path }: RuntimeEvent): boolean {
  return (path === null || path === ROOT_PATH) && COMMON.includes(type);
}

async function leaveToOwner(
  terminal: Terminal,
  at: At,
  thread: ThreadDocument,
  message: string,
  choice: ProviderChoice | null,
  options: Options,
): Promise<WorkRecord> {
  const args: JsonObject = { thread: thread.id, message, ...inputOf(choice, options) };
  const { answer } = await actOn(terminal, at, thread, "continue", args, options);
  const id = answer["work_id"] as WorkId;
  terminal.note(
    `A process runs the thread's tree already, and does ${id} there; its answer is awaited here.`,
  );
  await waitForWorks(terminal, at.store, new TreeReader(at.store, thread.treeId), [id], {
    timeoutMs: options.timeout * SECOND,
    config: options.config,
  });
  return (await at.store.read((view) => (isWorkId(id) ? view.work(id) : undefined)))!;
}

/** @throws CommandError with the code of what went wrong. */
function requireAnswered(
  { id }: ThreadDocument,
  { outcome, id: work }: WorkRecord,
  drafted: boolean,
  options: Options,
): void {
  if (outcome?.ending === "completed") return;
  if (outcome === null) {
    throw new CommandError(
      EXIT.incomplete,
      "WORK_INCOMPLETE",
      `${work} has no answer yet. What it waits for: ${showCommand(id, options)}`,
    );
  }
  const kept = drafted ? " Your message is kept as a draft." : "";
  const { error, ending } = outcome;
  const why = error === null ? `the run ended ${ending}` : error.message;
  throw new CommandError(
    error === null ? EXIT.incomplete : exitOf(error.code),
    error?.code ?? "WORK_INCOMPLETE",
    `${why.replace(/[.!?]$/, "")}.${kept} See: ${showCommand(id, options)}`,
  );
}

function showCommand(id: string, { config, store }: Options): string {
  return commandLine(`thread show ${id}`, { config, store });
}
