/**
 * Formulas over bounds: what a mailbox may hold and what a budget may be passed by (MBX-8, BUD-2). What a commit adds is judged, so
 * that what was let in over a limit by rule is not held against those that come after it.
 */
import { isWithin, ROOT_PATH, type AgentPath } from "../protocol/agent-path.ts";
import type { MailRecord } from "../protocol/mail.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import { totalTokens, type Usage } from "../protocol/usage.ts";
import { broken, type Formula, pathOf, type Picture, type Violation } from "./invariants-picture.ts";

/** Unread and reserved together stay within the limits; the one request that starts an idle agent may pass them (decision 0007). */
function* mailboxes(picture: Picture): Iterable<Violation> {
  const { view, tree, memory } = picture;
  const limits = { messages: tree.limits.mailboxMessages, bytes: tree.limits.mailboxBytes };
  for (const { threadId, path } of picture.agents) {
    const box = view.mailbox(threadId);
    const used = {
      messages: box.unread + box.reservedMessages,
      bytes: box.unreadBytes + box.reservedBytes,
    };
    const before = memory.boxes.get(threadId) ?? { messages: 0, bytes: 0 };
    const fresh = (picture.mailOf.get(threadId) ?? []).filter((mail) => !memory.mail.has(mail.id));
    const free = fresh.filter((mail) => goesOver(picture, mail));
    const starts = fresh.some(
      (mail) => mail.trigger && box.triggers === 1 && mail.content.bytes <= limits.bytes,
    );
    const judged = {
      messages: used.messages - free.length,
      bytes: used.bytes - free.reduce((sum, mail) => sum + mail.content.bytes, 0),
    };
    for (const unit of ["messages", "bytes"] as const) {
      if (starts || judged[unit] <= Math.max(limits[unit], before[unit])) continue;
      yield broken(
        "MBX-8",
        `the mailbox of ${path} holds ${used[unit]} ${unit} and at most ${limits[unit]} may be`,
      );
    }
    memory.boxes.set(threadId, used);
  }
}

/** Notices of the runtime, redirected results, and results whole where the profile has them so. */
function goesOver({ profile }: Picture, mail: MailRecord): boolean {
  if (mail.author.kind === "runtime" || mail.redirectedFrom !== null) return true;
  return mail.kind === "final_answer" && (profile.results === "per_run" || !profile.boundedResults);
}

type Counted = "tokens" | "money";

const AMOUNTS: Readonly<Record<Counted, (usage: Usage) => number>> = {
  tokens: totalTokens,
  money: (usage) => usage.cost ?? 0,
};

/** Once a budget is passed, only what was under way is counted: one request a run, and of no run that begins after. */
function* overshoot(picture: Picture): Iterable<Violation> {
  const { view, tree, memory } = picture;
  for (const { path, budget, limit } of budgetsOf(picture)) {
    const key = `${budget} ${path}`;
    const usage = view.usageUnder(tree.treeId, path);
    const spent = budget === "tokens" ? totalTokens(usage) : usage.pricedCost;
    const passed = memory.passed.get(key);
    if (spent <= limit) memory.passed.delete(key);
    else if (passed === undefined || passed.limit !== limit)
      memory.passed.set(key, { limit, runs: new Map() });
    if (passed === undefined || passed.limit !== limit) continue;
    for (const run of runsIn(picture, path)) {
      const amount = AMOUNTS[budget];
      const before = memory.runs.get(run.id);
      if (before !== undefined && amount(before.usage) === amount(run.usage)) continue;
      if (before === undefined && amount(run.usage) === 0) continue;
      const requests = (passed.runs.get(run.id) ?? 0) + 1;
      passed.runs.set(run.id, requests);
      if (requests === 1 && before !== undefined) continue;
      yield broken(
        "BUD-2",
        `the ${budget} budget of ${path} is passed (${spent} of ${limit}), and a run of ${pathOf(picture, run.threadId)} has made another request`,
      );
    }
  }
}

/** A budget that was told to be spent: nothing is unfinished in its scope, and nothing runs (BUD-2). */
function* exhausted(picture: Picture): Iterable<Violation> {
  for (const { path, budget } of picture.tree.exhausted) {
    const open = picture.works.find((work) => work.state !== "ended" && isWithin(work.executorPath, path));
    if (open !== undefined)
      yield broken("BUD-2", `the ${budget} budget of ${path} is spent, and ${open.id} is ${open.state}`);
    const run = runsIn(picture, path).find((one) => !isSettled(one));
    if (run !== undefined)
      yield broken(
        "BUD-2",
        `the ${budget} budget of ${path} is spent, and a run of ${pathOf(picture, run.threadId)} goes on`,
      );
  }
}

export const boundFormulas: readonly Formula[] = [mailboxes, overshoot, exhausted];

function* budgetsOf({
  tree,
  agents,
}: Picture): Iterable<{ readonly path: AgentPath; readonly budget: Counted; readonly limit: number }> {
  for (const { path, config } of agents) {
    const ofTree = path === ROOT_PATH ? tree.limits : null;
    for (const [budget, limits] of [
      ["tokens", [config.budgets.tokens, ofTree?.tokensPerTree]],
      ["money", [config.budgets.money, ofTree?.moneyPerTree]],
    ] as const) {
      const least = Math.min(...limits.map((limit) => limit ?? Infinity));
      if (least !== Infinity) yield { path, budget, limit: least };
    }
  }
}

function runsIn(picture: Picture, path: AgentPath): readonly RunRecord[] {
  return picture.agents.flatMap((agent) =>
    isWithin(agent.path, path) ? (picture.runsOf.get(agent.threadId) ?? []) : [],
  );
}
