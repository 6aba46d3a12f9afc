/** `coppice thread new`, `rename`, `close` and `archive`: the life of a thread, but for its runs. */
import { existsSync } from "node:fs";
import { type Command, Option } from "commander";
import { TITLE_CHARACTERS } from "../../protocol/lineage-limits.ts";
import { openSqliteStore } from "../../store/sqlite.ts";
import { AGENT_PROGRAMS } from "../agent-programs.ts";
import { badUse } from "../failure.ts";
import { PRACTICE } from "../practice.ts";
import { hostOf } from "../run-tree.ts";
import { providerName } from "../screen/coverage-lines.ts";
import { commandLine } from "../screen/command-line.ts";
import { titleOf } from "../screen/thread-lines.ts";
import { newStorePlace } from "../store-place.ts";
import { clean, type Terminal } from "../terminal.ts";
import { folderOf } from "./folder-of.ts";
import { notBlank } from "./options.ts";
import {
  actOn,
  byOwnerOrHere,
  changeCommand,
  type ChangeOptions,
  changeThreads,
  continueCommand,
  tellChange,
  THREAD_ARGUMENT,
  withRuntime,
} from "./threading.ts";

interface NewOptions extends ChangeOptions {
  readonly title?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly workspace: string;
  readonly continuity?: "resume-native" | "projected-only";
}

export const PROVIDER_HELP = `${PRACTICE.join(" and ")} need no key; ${AGENT_PROGRAMS.join(", ")} and acp:<command> are programs; \`model\` wants --model`;

export function addThreadLife(thread: Command, terminal: Terminal): void {
  changeCommand(thread, "new", {
    json: "one object",
    example: 'thread new --title "port the parser" --provider echo',
  })
    .description("make a thread, always a new one; nothing runs before its first message")
    .option("--title <title>", "1 to 200 characters; its objective, too")
    .option("--provider <name>", `where it begins: ${PROVIDER_HELP}; default: ${PRACTICE[0]}`, notBlank)
    .option("--model <vendor/name>", "a model of the AI SDK, such as openai/gpt-5", notBlank)
    .option("--workspace <folder>", "the folder that it is about", ".")
    .addOption(
      new Option("--continuity <how>", "projected-only: each run gets the pinned context alone").choices([
        "resume-native",
        "projected-only",
      ]),
    )
    .action(async (options: NewOptions) => {
      const { title, continuity = "resume-native" } = options;
      if (title !== undefined) requireTitle(title);
      const host = await hostOf(options);
      const { provider, model } = (await host.choice(options)) ?? { provider: PRACTICE[0], model: null };
      const workspace = folderOf("--workspace", options.workspace);
      const { path } = newStorePlace(options.store);
      const made = existsSync(path) ? [] : [`Its store is new: ${clean(path)}`];
      const open = () => openSqliteStore({ path });
      await withRuntime(host, { thread: null }, open, async ({ threads }) => {
        const thread = await threads.create({
          ...(title === undefined ? {} : { title }),
          ...(model === null ? {} : { model }),
          provider,
          workspace,
          continuity,
          commandId: options.commandId,
        });
        tellChange(terminal, options, null, thread, [
          thread.id,
          `${titleOf(thread)} begins on ${providerName(provider, model)}, in ${clean(workspace)}. Nothing has run yet.`,
          ...made,
          `Next: ${continueCommand(thread.id, options)}`,
        ]);
      });
    });

  changeCommand(thread, "rename", {
    json: "one object",
    example: 'thread rename thread_… "port the parser"',
  })
    .description("give a thread another title, in any state")
    .argument("<thread>", THREAD_ARGUMENT)
    .argument("[title]", "the title; left out with --untitled")
    .option("--untitled", "take its title away")
    .action(
      async (
        id: string,
        title: string | undefined,
        options: ChangeOptions & { readonly untitled?: boolean },
      ) => {
        if ((title === undefined) === (options.untitled !== true)) {
          throw badUse("give either the title or --untitled.");
        }
        if (title !== undefined) requireTitle(title, "the title");
        await changeThreads(options, null, async (at) => {
          const found = await at.threads.get(id);
          const args = { thread: id, title: title ?? null };
          const { appliedBy } = await actOn(terminal, at, found, "rename", args, options);
          const renamed = await at.threads.get(id);
          const said = `${renamed.id} is ${title === undefined ? "untitled" : `called ${titleOf(renamed)}`}.`;
          tellChange(terminal, options, appliedBy, renamed, [said]);
        });
      },
    );

  changeCommand(thread, "close", { json: "one object", example: "thread close thread_…" })
    .description("close a thread for good, once nothing runs in it; it can still be forked")
    .argument("<thread>", THREAD_ARGUMENT)
    .action((id: string, options: ChangeOptions) =>
      changeThreads(options, null, async (at) => {
        const { id: target, status, treeId } = await at.threads.get(id);
        const applied =
          status === "open"
            ? await actOn(terminal, at, { treeId }, "close", { target, politely: true }, options)
            : null;
        const closed = await at.threads.get(id);
        const said = `${closed.id} is ${closed.status}. To go on from it: ${commandLine(`thread fork ${closed.id}`, { config: options.config, store: options.store })}`;
        tellChange(terminal, options, applied?.appliedBy ?? null, closed, [said]);
      }),
    );

  changeCommand(thread, "archive", {
    json: "one object",
    example: "thread archive thread_…",
  })
    .description("archive a closed thread: `thread list` leaves it out, and its title alone can change")
    .argument("<thread>", THREAD_ARGUMENT)
    .action((id: string, options: ChangeOptions) =>
      changeThreads(options, id, async (at) => {
        const found = await at.threads.get(id);
        const here = () => at.threads.archive(id, { commandId: options.commandId });
        const args = { thread: id };
        const { appliedBy } = await byOwnerOrHere(terminal, at, found, "archive", args, options, here);
        const archived = await at.threads.get(id);
        tellChange(terminal, options, appliedBy, archived, [`${archived.id} is archived.`]);
      }),
    );
}

/** Before a store is opened or made. */
export function requireTitle(title: string, what = "--title"): void {
  const length = title.match(/./gsu)?.length ?? 0;
  if (title.trim() === "") throw badUse(`${what} is blank; give it words, or leave it out.`);
  if (length <= TITLE_CHARACTERS && title.isWellFormed()) return;
  throw badUse(`a title has at most ${TITLE_CHARACTERS} characters, and this one ${length}.`);
}
