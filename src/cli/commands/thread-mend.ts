/** `coppice thread rollback`, `reconcile` and `sync`: taking runs back, and settling or reading again what was left. */
import type { Command } from "commander";
import type { OrdinalRange } from "../../protocol/ordinals.ts";
import type { RolledBack, RollbackTo } from "../../threads/rollback.ts";
import type { ThreadDocument } from "../../threads/thread-view.ts";
import { badUse } from "../failure.ts";
import { commandLine, type GivenOptions } from "../screen/command-line.ts";
import { coverageLines, runsNamed } from "../screen/coverage-lines.ts";
import { stateOf } from "../screen/thread-lines.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import { type StoreOptions, wholeNumber } from "./options.ts";
import { quoted, runAt } from "./thread-fork.ts";
import {
  actOn,
  type At,
  byOwnerOrHere,
  changeCommand,
  type ChangeOptions,
  changeThreads,
  tellChange,
  THREAD_ARGUMENT,
  threadCommand,
} from "./threading.ts";

interface RollbackOptions extends ChangeOptions {
  readonly to?: number;
  readonly beforeMessage?: number;
  readonly undo?: boolean;
  readonly native?: boolean;
}

export function addThreadMend(thread: Command, terminal: Terminal): void {
  changeCommand(thread, "rollback", { json: "one object", example: "thread rollback thread_… --to 2" })
    .description("take runs back: they stay in the transcript, and no provider is told of them any more")
    .argument("<thread>", THREAD_ARGUMENT)
    .option("--to <n>", "the last run that stays; 0 takes back all", wholeNumber(0, Infinity))
    .option(
      "--before-message <n>",
      "from this message of yours on, which becomes a draft",
      wholeNumber(1, Infinity),
    )
    .option("--undo", "undo the newest rollback, as long as no run has started since")
    .option("--native", "only if the provider rolls its own conversation back, where it has one")
    .action((id: string, options: RollbackOptions) => rollback(terminal, id, options));

  threadCommand(thread, "reconcile", { json: "one object", example: "thread reconcile thread_…" })
    .description(
      "settle what nobody will settle any more: the run of a killed process, a fork that it asked a provider for",
    )
    .argument("<thread>", THREAD_ARGUMENT)
    .action((id: string, options: StoreOptions) =>
      changeThreads(options, id, async ({ threads }) => {
        const before = await threads.get(id);
        const after = await threads.reconcile(id);
        const changed = after.revision !== before.revision;
        tellChange(terminal, options, null, after, [
          `${after.id} is ${stateOf(after)}, revision ${after.revision}.${changed ? "" : " There was nothing to settle."}`,
        ]);
      }),
    );

  changeCommand(thread, "sync", { json: "one object", example: "thread sync thread_…" })
    .description("read the history of its runs again, from their providers")
    .argument("<thread>", THREAD_ARGUMENT)
    .option("--run <run>", "of this run alone: N or run:N as `thread show` numbers them; default: of all")
    .action((id: string, options: ChangeOptions & { readonly run?: string }) =>
      changeThreads(options, id, async (at) => {
        const { threads } = at;
        const before = await threads.get(id);
        const only = options.run === undefined ? {} : { run: await runNamed(at, before, options.run) };
        const args = { thread: before.id, ...only };
        const here = () => threads.sync(before.id, { ...only, commandId: options.commandId });
        const { appliedBy } = await byOwnerOrHere(terminal, at, before, "sync", args, options, here);
        const after = await threads.get(id);
        tellChange(terminal, options, appliedBy, after, [
          `${after.id} has ${after.messages} history entries, ${after.messages - before.messages} of them new. ` +
            `Read them: ${commandLine(`thread history ${after.id}`, again(options))}`,
        ]);
      }),
    );
}

/** By its number, or by its id. */
export async function runNamed(at: At, thread: ThreadDocument, written: string): Promise<string> {
  const number = /^(?:run:)?(\d{1,15})$/.exec(written)?.[1];
  if (number !== undefined) return runAt(at, thread, Number(number));
  if (written.startsWith("run_")) return written;
  throw badUse(`${quoted(written)} names no run; give N, run:N or its id.`, `thread show ${thread.id}`);
}

async function rollback(terminal: Terminal, id: string, options: RollbackOptions): Promise<void> {
  const to = placeOf(options);
  await changeThreads(options, to === null ? null : id, async (at) => {
    const { threads } = at;
    if (to === null) {
      const found = await threads.get(id);
      const { appliedBy } = await actOn(terminal, at, found, "undo_rollback", { thread: found.id }, options);
      const restored = await threads.get(id);
      tellChange(terminal, options, appliedBy, restored, [
        "The rollback is undone. Its works stay ended, and what a provider does not know it is told.",
        ...coverageLines(terminal, restored.coverage),
      ]);
      return;
    }
    const found = await threads.get(id);
    const how = { to, native: options.native === true ? "demanded" : "allowed" } as const;
    const args = { thread: found.id, ...how };
    const here = () => threads.rollBack(found.id, { ...how, commandId: options.commandId });
    const { appliedBy, answer } = await byOwnerOrHere(terminal, at, found, "rollback", args, options, here);
    const done = answer as unknown as RolledBack;
    const thread = await threads.get(id);
    const lines = rolledBackLines(terminal, done, thread, options);
    tellChange(terminal, options, appliedBy, { ...done, thread }, lines);
  });
}

function again({ config, store }: StoreOptions): GivenOptions {
  return { config, store };
}

/** Null for the undo. */
function placeOf({ to, beforeMessage, undo }: RollbackOptions): RollbackTo | null {
  const given = [to !== undefined, beforeMessage !== undefined, undo === true].filter(Boolean).length;
  if (given !== 1) {
    throw badUse(
      `${given === 0 ? "back to where?" : "these are several places;"} give one of --to, --before-message and --undo.`,
    );
  }
  if (to !== undefined) return { kind: "ordinal", ordinal: to };
  return beforeMessage === undefined ? null : { kind: "before_message", seq: beforeMessage };
}

const NATIVE: Readonly<Record<RolledBack["native"], string | null>> = {
  not_needed: null,
  rolled_back: "The provider has rolled its own conversation back.",
  given_up: "The next run begins a new conversation there, and is told of what is left.",
};

function rolledBackLines(
  terminal: Terminal,
  done: RolledBack,
  thread: ThreadDocument,
  options: StoreOptions,
): string[] {
  const { target, runs, draft, native, refusal } = done;
  if (runs.length === 0) return [`Nothing lies after run ${target}: nothing was taken back.`];
  const left = target === 0 ? "no run is left" : `run ${target} is the last one`;
  return [
    `${capital(taken(runs))} taken back; ${left}.`,
    ...(NATIVE[native] === null ? [] : [NATIVE[native]]),
    ...(refusal === null ? [] : [`The provider said: ${clean(refusal)}`]),
    ...(draft === null ? [] : ["Draft:", ...cleanLines(draft.text).map((line) => `  ${line}`)]),
    ...(thread.coverage.length === 0 ? [] : coverageLines(terminal, thread.coverage)),
    `To undo it, before the next run: ${commandLine(`thread rollback ${thread.id}`, { undo: true, ...again(options) })}`,
  ];
}

function taken(runs: readonly OrdinalRange[]): string {
  const named = runsNamed(runs);
  return `${named} ${named.startsWith("runs") ? "are" : "is"}`;
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
