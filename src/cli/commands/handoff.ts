/** `coppice handoff`: the text that a provider is told or was told, and another one in its place before it is. */
import type { Command } from "commander";
import type { HandoffRecord } from "../../protocol/transfer.ts";
import { estimateTokens } from "../../policy/estimate-tokens.ts";
import type { CommandReceipt } from "../../runtime/command-tree.ts";
import { describeOrdinals } from "../../protocol/ordinals.ts";
import { runsNamed } from "../screen/coverage-lines.ts";
import { commandLine } from "../screen/command-line.ts";
import { figure, sizeOf } from "../screen/words.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import { messageOf } from "./commanding.ts";
import { type StoreOptions, withStore } from "./options.ts";
import {
  actOn,
  byOwnerOrHere,
  changeCommand,
  type ChangeOptions,
  changeThreads,
  lookAtThreads,
  tellChange,
} from "./threading.ts";

const HANDOFF_ARGUMENT = "id of the handoff, hnd_…; `transfers` has them";

export function addHandoff(program: Command, terminal: Terminal): void {
  const handoff = program
    .command("handoff")
    .description("read, edit or write anew what a provider is told of a thread")
    .addHelpText("after", "\nExample: npx coppice handoff show hnd_…");

  withStore(handoff.command("show"), { json: "one object", example: "handoff show hnd_…" })
    .description("show the text, the runs it tells of, and what was left out")
    .argument("<handoff>", HANDOFF_ARGUMENT)
    .action((id: string, options: StoreOptions) =>
      lookAtThreads(options, async ({ threads }) => {
        const found = await threads.handoff(id);
        if (options.json === true) terminal.json(found);
        else for (const line of handoffLines(terminal, found)) terminal.line(line);
      }),
    );

  changeCommand(handoff, "edit", { json: "one object", example: 'handoff edit hnd_… -- "We use port 8080."' })
    .description("put your own text in its place; only as long as it is ready and was not delivered")
    .argument("<handoff>", HANDOFF_ARGUMENT)
    .argument("[text]", "the text, after `--`; `-` or nothing reads standard input")
    .action(async (id: string, given: string | undefined, options: ChangeOptions) => {
      const text = await messageOf(given);
      await changeThreads(options, null, async (at) => {
        const found = await at.threads.handoff(id);
        const { appliedBy, answer } = await actOn(
          terminal,
          at,
          found,
          "edit_handoff",
          { handoff: id, text },
          options,
        );
        const made = await at.threads.handoff(answer["handoff_id"] as string);
        tellReplaced(terminal, options, appliedBy, id, made);
      });
    });

  changeCommand(handoff, "regenerate", { json: "one object", example: "handoff regenerate hnd_…" })
    .description("write it anew from what the thread is now; only as long as it was not delivered")
    .argument("<handoff>", HANDOFF_ARGUMENT)
    .action((id: string, options: ChangeOptions) =>
      changeThreads(options, null, async (at) => {
        const { threads } = at;
        const found = await threads.handoff(id);
        const args = { handoff: id };
        const here = async () => ({
          handoff_id: (await threads.regenerateHandoff(id, { commandId: options.commandId })).id,
        });
        const { appliedBy, answer } = await byOwnerOrHere(
          terminal,
          at,
          found,
          "regenerate_handoff",
          args,
          options,
          here,
        );
        const made = await threads.handoff(answer["handoff_id"] as string);
        tellReplaced(terminal, options, appliedBy, id, made);
      }),
    );
}

function tellReplaced(
  terminal: Terminal,
  options: StoreOptions,
  applied: CommandReceipt["appliedBy"] | null,
  id: string,
  made: HandoffRecord,
): void {
  tellChange(terminal, options, applied, made, [
    `${made.id} takes the place of ${id}, which keeps its text for the record. It tells of ${told(made)}.`,
    `Read it: ${commandLine(`handoff show ${made.id}`, { store: options.store })}`,
  ]);
}

function told({ coveredRuns }: HandoffRecord): string {
  return coveredRuns.length === 0 ? "no runs" : runsNamed(coveredRuns);
}

/** Messages of the source that it holds. */
function itemsNamed({ coveredRanges, payload }: HandoffRecord): string {
  if (coveredRanges.length === 0) return "";
  const items = describeOrdinals(coveredRanges.map(([from, to]) => [from, to - 1] as const));
  return `, ${figure(payload.items)} ${payload.items === 1 ? "message" : "messages"} of items ${items}`;
}

function handoffLines(terminal: Terminal, handoff: HandoffRecord): string[] {
  const { kind, status, deliveredAt, bytes, payload, supersededBy } = handoff;
  const tokens = estimateTokens([{ role: "system", text: handoff.summaryText }], []);
  const delivered =
    deliveredAt === null ? "not delivered" : `delivered ${new Date(deliveredAt).toISOString()}`;
  const left = payload.omittedItemIds.length;
  return [
    terminal.paint("bold", `${handoff.id}  ${kind.replaceAll("_", " ")}`),
    `${status}${supersededBy === null ? "" : ` by ${supersededBy}`}, ${delivered}`,
    `for ${handoff.threadId}, of ${handoff.sourceThreadId}: ${told(handoff)}${itemsNamed(handoff)}`,
    `${sizeOf(tokens, bytes)}, ${left === 0 ? "nothing left out" : `${figure(left)} items left out`}` +
      (handoff.createdByProvider === null ? "" : `, summarised by ${clean(handoff.createdByProvider)}`),
    "",
    ...cleanLines(handoff.summaryText),
  ];
}
