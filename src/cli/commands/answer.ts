/**
 * `coppice agent answer`: answers a question or an approval that an agent waits for, by the owner of the tree or, without
 * one, in the store, where whoever runs the tree finds it (WAI-2, REC-2).
 */
import type { Command } from "commander";
import type { AgentRecord } from "../../protocol/agent.ts";
import { decisionText } from "../../protocol/decision.ts";
import { isRequestId } from "../../protocol/ids.ts";
import type { CommandReceipt } from "../../runtime/command-tree.ts";
import type { AskedRequest, TreeReader } from "../../runtime/tree-reader.ts";
import type { Store } from "../../store/port.ts";
import { badUse, CommandError, EXIT } from "../failure.ts";
import { opening } from "../screen/words.ts";
import type { Terminal } from "../terminal.ts";
import {
  act,
  type Commanded,
  commanding,
  messageOf,
  RUN_JSON,
  runHere,
  type RunOptions,
  tell,
  withRun,
} from "./commanding.ts";
import { withTree } from "./options.ts";

interface Options extends RunOptions {
  readonly text?: string;
  readonly approve?: boolean;
  readonly deny?: boolean;
}

export function addAnswer(agent: Command, terminal: Terminal): void {
  withRun(
    withTree(agent.command("answer"), {
      json: RUN_JSON,
      example: 'agent answer /root/reader --text "the second one"',
    }),
  )
    .description("answer a question or an approval that an agent waits for; `tree` and `why` list them")
    .argument("<agent>", "path or id of the agent")
    .argument("[request]", "id of the question; may be left out while the agent has one only")
    .option("--text <answer>", "the answer to a question; `-` reads standard input")
    .option("--approve", "answer an approval with yes")
    .option("--deny", "answer an approval with no")
    .action(async (target: string, named: string | undefined, options: Options) => {
      checkAnswer(options);
      const text = options.text === undefined ? null : await messageOf(options.text);
      await commanding(options, target, async (at) => {
        const { store, tree, agent: record } = at;
        const request = await requestOf(store, tree, record, named);
        if (text === null && request.kind === "question") {
          throw badUse(`${request.id} is a question (${opening(request.text)}); answer it with --text "…".`);
        }
        if (text !== null && request.kind === "approval") {
          throw badUse(
            `${request.id} is an approval (${opening(request.text)}); answer it with --approve or --deny.`,
          );
        }
        const answer =
          text ?? decisionText({ verdict: options.approve === true ? "approved" : "denied", note: null });
        const receipt = await act(terminal, at, "answer", { request: request.id, answer });
        const said = `${record.path} has the answer to its ${request.kind} ${request.id}`;
        await goOn(terminal, at, options, receipt, said);
      });
    });
}

function checkAnswer({ text, approve, deny }: Options): void {
  const given = [text !== undefined, approve === true, deny === true].filter(Boolean).length;
  if (given === 1) return;
  const fault = given === 0 ? "the answer is missing" : "these are several answers";
  throw badUse(`${fault}; give one of --text "…", --approve and --deny.`);
}

/** @throws CommandError for a request that is not this agent's, or is answered no more; badUse when several could be meant. */
async function requestOf(
  store: Store,
  tree: TreeReader,
  agent: AgentRecord,
  named: string | undefined,
): Promise<AskedRequest> {
  const pending = await tree.requests(agent.threadId);
  const listed = pending.map((one) => `${one.id} (${one.kind}: ${opening(one.text)})`).join(", ");
  const others = pending.length === 0 ? `${agent.path} asks nothing now` : `${agent.path} asks ${listed}`;
  if (named === undefined) {
    if (pending.length === 1) return pending[0]!;
    if (pending.length > 1) throw badUse(`${others}; name one of them after the agent.`);
    throw notAsked(`${others}; look at what is asked in the tree.`, "tree");
  }
  if (!isRequestId(named)) {
    throw badUse(`\`${named}\` is not the id of a question; it looks like req_…. ${others}.`);
  }
  const found = pending.find(({ id }) => id === named);
  if (found !== undefined) return found;
  const record = await store.read((view) => view.request(named));
  const fault =
    record === undefined
      ? `no request ${named} is in ${store.name}`
      : record.threadId === agent.threadId
        ? `${named} is ${record.status} already; nothing was answered`
        : `${named} is asked by another agent`;
  throw notAsked(`${fault}; ${others}. Look at what is asked in the tree.`, "tree");
}

/** Tells who has the answer, and runs the tree here where that is asked for. */
export async function goOn(
  terminal: Terminal,
  at: Commanded,
  options: RunOptions,
  receipt: CommandReceipt,
  said: string,
): Promise<void> {
  tell(terminal, options, receipt, {
    owner: `${said}, and goes on.`,
    here:
      options.run === true
        ? `${said}, and the tree is run here.`
        : `${said}. No process runs the tree: the agent goes on when one does, such as with --run.`,
  });
  if (options.run === true) await runHere(terminal, at, options, receipt);
}

export function notAsked(message: string, see: string): CommandError {
  return new CommandError(EXIT.notFound, "REQUEST_NOT_RESUMABLE", message, see);
}
