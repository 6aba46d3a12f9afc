/** `coppice thread fork` and `merge`: a thread that begins where another one stood, and what it came to, brought back. */
import { createInterface } from "node:readline";
import { type Command, Option } from "commander";
import type { RunId, TransferId } from "../../protocol/ids.ts";
import type { StoreView } from "../../store/port.ts";
import type { ForkOptions, PlannedFork } from "../../runtime/thread-options.ts";
import type { ThreadDocument } from "../../threads/thread-view.ts";
import { badUse, CommandError, EXIT } from "../failure.ts";
import { commandLine } from "../screen/command-line.ts";
import { pointName, titleOf } from "../screen/thread-lines.ts";
import { cleanLines, type Terminal } from "../terminal.ts";
import { wholeNumber } from "./options.ts";
import { requireTitle } from "./thread-life.ts";
import {
  actOn,
  type At,
  changeCommand,
  type ChangeOptions,
  changeThreads,
  continueCommand,
  tellChange,
  THREAD_ARGUMENT,
} from "./threading.ts";

const STRATEGIES = ["auto", "native", "replay", "new-session"] as const;
type Strategy = (typeof STRATEGIES)[number];

interface Options extends ChangeOptions {
  readonly at: string;
  readonly strategy?: Strategy;
  readonly title?: string;
  readonly requestId?: string;
}

const AT = /^(?:latest|(run|message):(-?\d{1,15})|checkpoint:(.+))$/;

export function addThreadFork(thread: Command, terminal: Terminal): void {
  changeCommand(thread, "fork", {
    json: "one object: the fork, its transfer and the draft",
    example: "thread fork thread_… --at message:5",
  })
    .description(
      "make a thread that begins where this one stood; its context is decided with its first message",
    )
    .argument("<thread>", THREAD_ARGUMENT)
    .option(
      "--at <point>",
      "latest, run:N, message:N as `thread transcript` numbers them, or checkpoint:ID",
      "latest",
    )
    .addOption(
      new Option(
        "--strategy <how>",
        "how it gets its context; on a terminal you are asked, elsewhere: auto",
      ).choices(STRATEGIES),
    )
    .option("--title <title>", "default: the title, numbered")
    .option("--request-id <id>", "the same id and fork again: the same thread, not another one")
    .action((id: string, options: Options) => fork(terminal, id, options));

  changeCommand(thread, "merge", { json: "one object", example: "thread merge thread_… --run 4" })
    .description(
      "bring a fork back: what it came to is told with the next message of the thread it was forked from",
    )
    .argument("<fork>", THREAD_ARGUMENT)
    .option("--into <thread>", "the thread it was forked from; the default, and nothing else is taken")
    .option(
      "--run <n>",
      "up to this run of the fork; default: its latest completed one",
      wholeNumber(1, Infinity),
    )
    .action((from: string, options: ChangeOptions & { readonly into?: string; readonly run?: number }) =>
      changeThreads(options, null, async (at) => {
        const found = await at.threads.get(from);
        const into = await at.threads.get(options.into ?? found.lineage.parentThreadId ?? from);
        const run = options.run === undefined ? {} : { run: await runAt(at, found, options.run) };
        const args = { fork: found.id, into: into.id, ...run };
        const { appliedBy, answer } = await actOn(terminal, at, into, "merge_back", args, options);
        const id = answer["transfer_id"] as TransferId;
        const { sourcePoint } = (await at.store.read((view) => view.transfer(id)))!;
        tellChange(terminal, options, appliedBy, { ...answer, into: into.id }, [
          answer["nothing_new"] === true
            ? `${titleOf(found)} brings nothing new into ${titleOf(into)}: what it did up to run ${sourcePoint.ordinal} was told there before.`
            : `${titleOf(found)} comes back into ${titleOf(into)}: what it did up to run ${sourcePoint.ordinal} is told with the next message there.`,
          `Next: ${continueCommand(into.id, options)}`,
        ]);
      }),
    );
}

async function fork(terminal: Terminal, id: string, options: Options): Promise<void> {
  const { title, requestId } = options;
  if (title !== undefined) requireTitle(title);
  if (requestId !== undefined && (requestId.trim() === "" || requestId.length > 128)) {
    throw badUse("--request-id is to have 1 to 128 characters that are not all blank.");
  }
  if (!AT.test(options.at)) {
    throw badUse(
      `--at ${quoted(options.at)} names no point; give latest, run:N, message:N or checkpoint:ID.`,
    );
  }
  await changeThreads(options, id, async (at) => {
    const source = await at.threads.get(id);
    const point = await pointOf(at, source, options.at);
    const plan = await at.threads.planFork(id, { at: point });
    const strategy = options.strategy ?? (await chosen(terminal, options, plan));
    if (strategy === "new-session") {
      tellNewSession(terminal, options, source, plan);
      return;
    }
    const policy = { strategy, ...(requestId === undefined ? {} : { requestId }) };
    const made = await at.threads.fork(id, {
      at: point,
      policy,
      commandId: options.commandId,
      ...(title === undefined ? {} : { title }),
    });
    if (options.json === true) {
      terminal.json(made);
      return;
    }
    const { thread, transfer, draft } = made;
    terminal.line(thread.id);
    terminal.line(
      `${titleOf(thread)} begins at ${titleOf(source)}, ${pointName(transfer.sourcePoint)}. Nothing has run in it yet.`,
    );
    if (draft !== null) {
      terminal.line("Draft, the message that it was cut before:");
      for (const line of cleanLines(draft.text)) terminal.line(`  ${line}`);
    }
    terminal.line(`Next: ${continueCommand(thread.id, options)}`);
  });
}

async function pointOf(
  at: At,
  source: ThreadDocument,
  written: string,
): Promise<NonNullable<ForkOptions["at"]>> {
  const [, kind, number, checkpoint] = AT.exec(written)!;
  if (kind === "message") return { kind, seq: Number(number) };
  if (kind === "run") return { kind, runId: await runAt(at, source, Number(number)) };
  if (checkpoint !== undefined) return { kind: "checkpoint", checkpointId: checkpoint as never };
  return { kind: "latest_stable" };
}

export async function runAt({ store }: At, thread: ThreadDocument, ordinal: number): Promise<RunId> {
  const run = await store.read((view: StoreView) =>
    ordinal > 0 ? view.runAt(thread.id, ordinal) : undefined,
  );
  if (run !== undefined) return run.id;
  const has = thread.executions === 0 ? "has no runs yet" : `has runs 1 to ${thread.executions}`;
  throw new CommandError(
    EXIT.notFound,
    "SOURCE_POINT_NOT_FOUND",
    `there is no run ${ordinal}: ${thread.id} ${has}.`,
    `thread show ${thread.id}`,
  );
}

/** Asked before any work starts, where there is somebody to ask (C5.12). */
async function chosen(
  terminal: Terminal,
  options: Options,
  { availability, point, carries }: PlannedFork,
): Promise<Strategy> {
  if (options.json === true || !terminal.interactive || process.stdin.isTTY !== true || !carries)
    return "auto";
  const ways: { readonly strategy: Strategy; readonly words: string }[] = [
    { strategy: "auto", words: "auto: natively if the provider can, else by replay" },
    ...(availability.native === true
      ? [
          {
            strategy: "native" as const,
            words: "native: the provider forks its own conversation, or it fails",
          },
        ]
      : []),
    ...(availability.replay === true
      ? [{ strategy: "replay" as const, words: "replay: what was said is told as text" }]
      : []),
    { strategy: "new-session", words: "new-session: no fork; a new thread that may refer to this one" },
  ];
  terminal.line(terminal.paint("bold", `Fork ${pointName(point)}: how does it get its context?`));
  for (const [index, { words }] of ways.entries()) terminal.line(`  ${index + 1}  ${words}`);
  if (availability.native !== true) {
    terminal.line(terminal.paint("dim", `  (not natively: ${availability.native.replaceAll("_", " ")})`));
  }
  const ask = `1 to ${ways.length} [1] `;
  const lines = createInterface({ input: process.stdin, signal: terminal.signal });
  terminal.raw(ask);
  for await (const line of lines) {
    const way = ways[line.trim() === "" ? 0 : Number(line) - 1];
    if (way !== undefined) return way.strategy;
    terminal.raw(`Give a number, ${ask}`);
  }
  throw badUse("no way was chosen, and no fork is made; choose one, or give --strategy.");
}

/** No thread is made: the source is named, for whoever starts one (C5.16). */
function tellNewSession(
  terminal: Terminal,
  options: Options,
  source: ThreadDocument,
  { point, draft }: PlannedFork,
): void {
  if (options.json === true) {
    terminal.json({ thread: null, source: point, draft });
    return;
  }
  terminal.line("No fork is made. A new thread begins with nothing, and may refer to this one:");
  terminal.line(`  ${source.id}, ${pointName(point)}`);
  terminal.line(`Next: ${commandLine("thread new", { config: options.config, store: options.store })}`);
}

export function quoted(text: string): string {
  return `\`${text.length > 80 ? `${text.slice(0, 80)}…` : text}\``;
}
