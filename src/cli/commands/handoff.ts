/** `coppice handoff`: the text that a provider is told or was told, and another one in its place before it is. */
import type { Command } from "commander";
import type { HandoffId } from "../../protocol/ids.ts";
import type { HandoffRecord } from "../../protocol/transfer.ts";
import type { Store } from "../../store/port.ts";
import { CommandError, EXIT } from "../failure.ts";
import { runsNamed } from "../screen/coverage-lines.ts";
import { figure } from "../screen/words.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import type { StoreOptions } from "./options.ts";
import { lookAtThreads, threadCommand } from "./threading.ts";

const HANDOFF_ARGUMENT = "id of the handoff, hnd_…; `transfers` has them";

export function addHandoff(program: Command, terminal: Terminal): void {
  const handoff = program
    .command("handoff")
    .description("read, edit or write anew what a provider is told of a thread")
    .addHelpText("after", "\nExample: npx coppice handoff show hnd_…");

  threadCommand(handoff, "show", { json: "one object", example: "handoff show hnd_…" })
    .description("show the text, the runs it tells of, and what was left out")
    .argument("<handoff>", HANDOFF_ARGUMENT)
    .action((id: string, options: StoreOptions) =>
      lookAtThreads(options, async ({ store }) => {
        const found = await requireHandoff(store, id);
        if (options.json === true) terminal.json(found);
        else for (const line of handoffLines(terminal, found)) terminal.line(line);
      }),
    );
}

export async function requireHandoff(store: Store, id: string): Promise<HandoffRecord> {
  const found = await store.read((view) => view.handoff(id as HandoffId));
  if (found !== undefined) return found;
  throw new CommandError(
    EXIT.notFound,
    "THREAD_NOT_FOUND",
    `no handoff \`${id.slice(0, 80)}\` is in ${store.name}; a handoff's id looks like hnd_…. List them with: npx coppice transfers <thread>`,
  );
}

export function handoffLines(terminal: Terminal, handoff: HandoffRecord): string[] {
  const { kind, status, deliveredAt, coveredRuns, budget, bytes, payload, supersededBy } = handoff;
  const told = coveredRuns.length === 0 ? "no runs" : runsNamed(coveredRuns);
  const delivered =
    deliveredAt === null ? "not delivered" : `delivered ${new Date(deliveredAt).toISOString()}`;
  const left = payload.omittedItemIds.length;
  return [
    terminal.paint("bold", `${handoff.id}  ${kind.replaceAll("_", " ")}`),
    `${status}${supersededBy === null ? "" : ` by ${supersededBy}`}, ${delivered}`,
    `for ${handoff.threadId}, of ${handoff.sourceThreadId}: ${told}`,
    `${figure(budget.used)} of ${figure(budget.limit)} ${budget.unit} (${figure(bytes)} bytes), ${left === 0 ? "nothing left out" : `${figure(left)} items left out`}` +
      (handoff.createdByProvider === null ? "" : `, summarised by ${clean(handoff.createdByProvider)}`),
    "",
    ...cleanLines(handoff.summaryText),
  ];
}
