/** `coppice agent budget`: another limit for tokens, money or time of an agent and all below it (BUD-2). */
import { type Command, InvalidArgumentError } from "commander";
import type { Usage } from "../../protocol/usage.ts";
import { badUse, CommandError, EXIT } from "../failure.ts";
import { figure } from "../screen/words.ts";
import type { Terminal } from "../terminal.ts";
import { act, commanding, RUN_JSON, runHere, type RunOptions, tell, withRun } from "./commanding.ts";
import { withTree } from "./options.ts";

/** Infinity is no limit: what is parsed to null is lost on the way here. */
interface Options extends RunOptions {
  readonly tokens?: number;
  readonly money?: number;
  readonly wallClock?: number;
}

const SECOND = 1_000;

export function addBudget(agent: Command, terminal: Terminal): void {
  withRun(
    withTree(agent.command("budget"), {
      json: RUN_JSON,
      example: "agent budget /root --tokens 40000000",
    }),
  )
    .description("set a budget of an agent and all below it; raised, a spent one takes requests again")
    .argument("<agent>", "path or id of the agent; the root's is the tree's")
    .option("--tokens <number>", "tokens in all; `none` for no limit", limit(true))
    .option("--money <usd>", "USD in all; `none` for no limit", limit(false))
    .option(
      "--wall-clock <seconds>",
      "how long work may go on without a rest; `none` for no limit",
      limit(true),
    )
    .action(async (target: string, options: Options) => {
      const { budget, value, words } = budgetOf(options);
      await commanding(options, target, async (at) => {
        const { path, state } = at.agent;
        if (state !== "open") {
          throw new CommandError(
            EXIT.notFound,
            "AGENT_CLOSED",
            `${path} is ${state} and never runs again; no budget of it was changed.`,
          );
        }
        const receipt = await act(terminal, at, "raise_budget", { target, budget, limit: value });
        const usage = await at.store.read((view) => view.usageUnder(at.tree.id, path));
        const said = `${path} and all below it: ${words}${usedWords(budget, value, usage)}.`;
        tell(terminal, options, receipt, { owner: said, here: said });
        if (options.run === true) await runHere(terminal, at, options, receipt);
      });
    });
}

function budgetOf({ tokens, money, wallClock }: Options) {
  const given = [
    { budget: "tokens", number: tokens, unit: 1, words: atMost(`${figure(tokens ?? 0)} tokens`) },
    { budget: "money", number: money, unit: 1, words: atMost(`${money} USD`) },
    {
      budget: "wallClock",
      number: wallClock,
      unit: SECOND,
      words: `at most ${wallClock} s of work without a rest`,
    },
  ].flatMap(({ budget, number, unit, words }) => {
    if (number === undefined) return [];
    const none = number === Infinity;
    return [{ budget, value: none ? null : number * unit, words: none ? `no limit of ${budget}` : words }];
  });
  if (given.length === 1) return given[0]!;
  const fault = given.length === 0 ? "the budget is missing" : "these are several budgets";
  throw badUse(`${fault}; give one of --tokens, --money and --wall-clock.`);
}

function atMost(amount: string): string {
  return `at most ${amount} in all`;
}

/** Since it is of all that was ever used, and not of what comes. A clock starts anew after each rest. */
function usedWords(budget: string, limit: number | null, { inputTokens, outputTokens, cost }: Usage): string {
  const used = budget === "tokens" ? inputTokens + outputTokens : cost;
  if (budget === "wallClock") return "";
  if (used === null) return "; what is used is not known";
  const spent = limit !== null && used >= limit ? ", so it is spent and starts nothing" : "";
  return `; ${budget === "tokens" ? figure(used) : used} are used${spent}`;
}

function limit(whole: boolean) {
  return (text: string): number => {
    if (text === "none") return Infinity;
    const number = Number(text);
    if ((whole ? /^\d+$/ : /^\d+(\.\d+)?$/).test(text) && number <= Number.MAX_SAFE_INTEGER / SECOND)
      return number;
    throw new InvalidArgumentError(`Give a ${whole ? "whole " : ""}number, 0 or more, or \`none\`.`);
  };
}
