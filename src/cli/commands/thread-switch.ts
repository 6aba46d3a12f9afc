/** `coppice thread switch`: where the next run goes, and what it would be told there. */
import type { Command } from "commander";
import type { StoreView } from "../../store/port.ts";
import type { StartPreview } from "../../threads/preview.ts";
import { badUse } from "../failure.ts";
import type { ProviderChoice } from "../run-tree.ts";
import { coverageLines, providerName } from "../screen/coverage-lines.ts";
import { previewLines } from "../screen/preview-lines.ts";
import type { Terminal } from "../terminal.ts";
import { notBlank } from "./options.ts";
import { PROVIDER_HELP } from "./thread-life.ts";
import {
  actOn,
  changeCommand,
  type ChangeOptions,
  changeThreads,
  continueCommand,
  ownerOf,
  tellChange,
  THREAD_ARGUMENT,
} from "./threading.ts";

interface Options extends ChangeOptions {
  readonly provider?: string;
  readonly model?: string;
  readonly clean?: boolean;
  readonly dryRun?: boolean;
}

export function addThreadSwitch(thread: Command, terminal: Terminal): void {
  changeCommand(thread, "switch", {
    json: "one object, with --dry-run what would be told",
    example: "thread switch thread_… --provider parrot --dry-run",
  })
    .description("choose the provider of the next run; what it does not know of the thread it is then told")
    .argument("<thread>", THREAD_ARGUMENT)
    .option("--provider <name>", PROVIDER_HELP, notBlank)
    .option("--model <vendor/name>", "a model of the AI SDK, such as openai/gpt-5", notBlank)
    .option("--clean", "begin a new conversation there, told of everything")
    .option("--dry-run", "change nothing; say what it knows, what it would be told, and why")
    .action((id: string, options: Options) => switchTo(terminal, id, options));
}

async function switchTo(terminal: Terminal, id: string, options: Options): Promise<void> {
  if (options.provider === undefined && options.model === undefined) {
    throw badUse(`to which provider? ${PROVIDER_HELP}: --provider parrot, or --model openai/gpt-5.`);
  }
  const cleanContext = options.clean === true;
  await changeThreads(options, options.dryRun === true ? id : null, async (at) => {
    const found = await at.threads.get(id);
    const owned = (await ownerOf(at, found)) !== null;
    const choice =
      owned && options.provider !== undefined ? asGiven(options) : (await at.host.choice(options))!;
    if (options.dryRun === true) {
      const preview = await at.threads.preview(id, { ...choice, effort: null, cleanContext });
      if (options.json === true) terminal.json(preview);
      else {
        const brought = await at.store.read((view) => broughtBy(view, preview));
        for (const line of previewLines(terminal, preview, brought)) terminal.line(line);
      }
      return;
    }
    const args = { thread: id, ...choice, cleanContext };
    const { appliedBy } = await actOn(terminal, at, found, "select", args, options);
    const chosen = await at.threads.get(id);
    tellChange(terminal, options, appliedBy, chosen, [
      `The next run of ${chosen.id} goes to ${providerName(choice.provider, choice.model)}. Nothing is sent before its message.`,
      ...(chosen.coverage.length === 0 ? [] : coverageLines(terminal, chosen.coverage)),
      `Next: ${continueCommand(chosen.id, options)}`,
    ]);
  });
}

/** Forks by the transfers that bring them back. */
function broughtBy(view: StoreView, { tells }: StartPreview): ReadonlyMap<string, string> {
  const brought = new Map<string, string>();
  for (const { transferId } of tells) {
    const transfer = transferId === null ? undefined : view.transfer(transferId);
    if (transfer?.type === "merge_back") brought.set(transfer.id, transfer.sourceThreadId);
  }
  return brought;
}

/** The owner of the tree knows its own providers. */
function asGiven({ provider, model }: Options): ProviderChoice {
  return { provider: provider!, model: model ?? null };
}
