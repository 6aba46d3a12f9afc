/**
 * `coppice approvals`: what agents at any depth of any tree wait to be allowed or told, in one list, and the decisions (WAI-2).
 * A question is listed too; its answer is a text, which `agent answer` gives.
 */
import type { Command } from "commander";
import { systemClock } from "../../platform/clock.ts";
import { decisionText } from "../../protocol/decision.ts";
import { isRequestId, type ThreadId } from "../../protocol/ids.ts";
import { type AskedRequest, TreeReader } from "../../runtime/tree-reader.ts";
import type { RuntimeRequestRecord } from "../../protocol/wait.ts";
import { isCorrupt } from "../../store/corrupt-row.ts";
import type { Store } from "../../store/port.ts";
import { allPages } from "../all-pages.ts";
import { badUse } from "../failure.ts";
import { findTree } from "../find-tree.ts";
import { answerCommand, requestLines } from "../screen/request-lines.ts";
import { ago, opening } from "../screen/words.ts";
import { openForReading, storePlace } from "../store-place.ts";
import { clean, clip, type Terminal } from "../terminal.ts";
import { goOn, notAsked } from "./answer.ts";
import { act, commanding, RUN_JSON, type RunOptions, withRun } from "./commanding.ts";
import { notBlank, type TreeOptions, withStore, withTree } from "./options.ts";

const PAGE = 100;
const LIST = "approvals";
/** Of what a call was given; `--json` has it whole. */
const ABOUT_COLUMNS = 400;

export function addApprovals(program: Command, terminal: Terminal): void {
  const approvals = program
    .command("approvals")
    .description("what agents wait to be allowed or told, oldest first, and the decisions");

  withTree(approvals.command("list", { isDefault: true }), {
    json: "NDJSON, a question or approval a line",
    example: "approvals",
  })
    .description("list approvals and questions of all trees, or of one")
    .action((options: TreeOptions) => list(terminal, options));

  for (const [verb, verdict] of [
    ["approve", "approved"],
    ["deny", "denied"],
  ] as const) {
    withRun(
      withStore(approvals.command(verb), {
        json: RUN_JSON,
        example: `approvals ${verb} req_…`,
      }),
    )
      .description(`${verb} what an agent asks for`)
      .argument("<request>", "id of the approval, req_…")
      .argument("[note]", "for whoever asked", notBlank)
      .action((id: string, note: string | undefined, options: RunOptions) =>
        decide(terminal, id, { verdict, note: note ?? null }, options),
      );
  }
}

async function list(terminal: Terminal, options: TreeOptions): Promise<void> {
  const store = await openForReading(storePlace(options.store));
  try {
    const asked = (await requestsIn(store, options.tree)).toSorted((a, b) => a.createdAt - b.createdAt);
    if (options.json === true) for (const request of asked) terminal.json(request);
    else if (asked.length === 0) terminal.line("No agent waits for an approval or an answer.");
    else for (const request of asked) print(terminal, request, options);
  } finally {
    await store.close();
  }
}

async function requestsIn(store: Store, tree: string | undefined): Promise<readonly AskedRequest[]> {
  if (tree !== undefined) return (await findTree(store, tree)).requests();
  const asked: AskedRequest[] = [];
  const pages = allPages((after) => store.read((view) => view.treeIds({ limit: PAGE, after })));
  for await (const { rows } of pages) {
    for (const id of rows) asked.push(...(await readable(new TreeReader(store, id))));
  }
  return asked;
}

/** Of a tree that cannot be read nothing is known, and rows that are in the way are passed over; `doctor` names both. */
async function readable(tree: TreeReader): Promise<readonly AskedRequest[]> {
  try {
    return (await tree.asked()).requests;
  } catch (error) {
    if (isCorrupt(error)) return [];
    throw error;
  }
}

function print(terminal: Terminal, request: AskedRequest, options: TreeOptions): void {
  const { about, createdAt, treeId } = request;
  for (const line of requestLines(terminal, [request], options)) terminal.line(line);
  if (about !== undefined)
    terminal.line(
      clip(`  ${clean(about.tool)} ${opening(about.input)}`, Math.min(terminal.room, ABOUT_COLUMNS)),
    );
  terminal.line(`  for ${ago(systemClock.now() - createdAt)}, in ${treeId}`);
}

function decide(
  terminal: Terminal,
  id: string,
  decision: Parameters<typeof decisionText>[0],
  options: RunOptions,
): Promise<void> {
  return commanding(
    options,
    (store) => askerOf(store, id, options),
    async (at) => {
      const receipt = await act(terminal, at, "answer", { request: id, answer: decisionText(decision) });
      await goOn(
        terminal,
        at,
        options,
        receipt,
        `${at.agent.path} is told that ${id} is ${decision.verdict}`,
      );
    },
  );
}

/** The agent that waits for the approval. @throws CommandError when it is none, or is answered already. */
async function askerOf(store: Store, id: string, options: TreeOptions): Promise<ThreadId> {
  if (!isRequestId(id)) throw badUse(`\`${id}\` is not the id of an approval; it looks like req_….`, LIST);
  const request = await store.read((view) => view.request(id));
  if (request === undefined)
    throw notAsked(`no request ${id} is in ${store.name}; list what is asked.`, LIST);
  if (request.status !== "pending")
    throw notAsked(`${id} is ${request.status} already; nothing was answered.`, LIST);
  if (request.kind === "approval") return request.threadId;
  throw badUse(
    `${id} is a question (${opening(request.text)}); answer it with: ${await answerTo(store, request, options)}`,
  );
}

async function answerTo(
  store: Store,
  { id, kind, threadId, treeId }: RuntimeRequestRecord,
  options: TreeOptions,
): Promise<string> {
  const path = await store.read((view) => view.agent(threadId)?.path ?? threadId);
  return answerCommand({ id, kind, path, treeId }, options);
}
