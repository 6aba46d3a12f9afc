/** Formulas over runs, transcripts, waits and the counters of agents and trees (RUN, EXE, WAI, BUD). */
import type { AgentRecord } from "../protocol/agent.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import { openCalls } from "../protocol/transcript.ts";
import { isHeld, statusOf } from "../control/status.ts";
import { NOT_LIVE } from "../control/listing.ts";
import { broken, type Formula, pathOf, type Picture, type Violation } from "./invariants-picture.ts";

function* oneRun(picture: Picture): Iterable<Violation> {
  for (const agent of picture.agents) {
    const runs = runsOf(picture, agent);
    const open = runs.filter((run) => !isSettled(run));
    if (open.length > 1) yield broken("RUN-1", `${agent.path} has ${open.length} runs at once`);
    if ((open[0]?.id ?? null) !== agent.currentRun) {
      yield broken(
        "RUN-1",
        `the current run of ${agent.path} is ${agent.currentRun}, the open one ${open[0]?.id ?? "none"}`,
      );
    }
    if (agent.runs !== runs.length)
      yield broken("RUN-1", `${agent.path} counts ${agent.runs} runs and has ${runs.length}`);
    const ordinals = runs.map((run) => run.ordinal).toSorted((a, b) => a - b);
    if (ordinals.some((ordinal, index) => ordinal !== index + 1))
      yield broken("RUN-1", `runs of ${agent.path} are not numbered 1, 2, 3 …`);
    if (agent.state !== "open" && open.length > 0)
      yield broken("INT-7", `${agent.path} is ${agent.state} and runs`);
  }
}

function* settledStays(picture: Picture): Iterable<Violation> {
  for (const runs of picture.runsOf.values()) {
    for (const run of runs) {
      const before = picture.memory.runs.get(run.id);
      if (before === undefined || before === run || !isSettled(before)) continue;
      if (
        endOf(before) !== endOf(run) ||
        before.reason !== run.reason ||
        before.completedAt !== run.completedAt
      ) {
        yield broken("REC-1", `run ${run.id} had settled ${before.status} and is now ${run.status}`);
      }
    }
  }
}

/** A rollback and its undo leave the way in which a run had ended. */
function endOf({ status, rolledBack }: RunRecord): RunRecord["status"] {
  return rolledBack?.from ?? status;
}

function* serves(picture: Picture): Iterable<Violation> {
  for (const runs of picture.runsOf.values()) {
    for (const run of runs) {
      if (isSettled(run)) continue;
      for (const id of run.serves) {
        const work = picture.workOf.get(id);
        if (work !== undefined && work.state !== "ended" && work.servedBy !== run.id) {
          yield broken(
            "WRK-4",
            `run ${run.id} serves ${id}, which is ${work.state} under ${work.servedBy ?? "no run"}`,
          );
        }
      }
    }
  }
}

/** A running count is always: runs accepted, not settled, not in a wait. A reserved one has its permit already. */
function* running(picture: Picture): Iterable<Violation> {
  const busy: RunRecord[] = [];
  for (const agent of picture.agents) {
    if (agent.parent === null) continue;
    const works = (run: RunRecord): boolean => run.status !== "waiting" && !isHeld(run);
    busy.push(...runsOf(picture, agent).filter((run) => !isSettled(run) && works(run)));
  }
  const { running } = picture.tree.limits;
  // The permit of a run that had lent it may be overdrawn.
  const overdrawn = busy.filter((run) => run.permitLent === false).length;
  if (running !== null && busy.length - overdrawn > running) {
    const paths = busy.map((run) => pathOf(picture, run.threadId)).join(", ");
    yield broken("EXE-4", `${busy.length} children run (${paths}) and at most ${running} may`);
  }
}

function* waits(picture: Picture): Iterable<Violation> {
  for (const agent of picture.agents) {
    const run = agent.currentRun === null ? undefined : picture.view.run(agent.currentRun);
    for (const wait of picture.view.openWaitsOf(agent.threadId)) {
      if (wait.runId !== run?.id)
        yield broken("WAI-6", `${agent.path} has an open wait of the settled run ${wait.runId}`);
      else if (run.status === "starting")
        yield broken("WAI-6", `${agent.path} waits and its run was never accepted`);
    }
    const requests = picture.view.openRequestsOf(agent.threadId);
    for (const request of requests) {
      if (request.runId !== run?.id)
        yield broken("INT-6", `${agent.path} has a pending request of the settled run ${request.runId}`);
    }
    if (requests.length !== agent.openRequests) {
      yield broken(
        "WAI-2",
        `${agent.path} counts ${agent.openRequests} open requests and has ${requests.length}`,
      );
    }
  }
}

/** What ends a wait ends it in the commit that brings it, so no open wait has already got what it waits for. */
function* missedEnds(picture: Picture): Iterable<Violation> {
  for (const agent of picture.agents) {
    for (const wait of picture.view.openWaitsOf(agent.threadId)) {
      if (wait.works.length > 0) {
        const ended = wait.works.filter((id) => picture.workOf.get(id)?.state === "ended").length;
        if (ended >= wait.need)
          yield broken("WAI-4", `${agent.path} waits for ${wait.need} works, and ${ended} have ended`);
        continue;
      }
      // For threads of other trees: what happens there is looked at a poll later.
      if (wait.threads !== undefined) continue;
      const arrivals = new Set(picture.view.arrivals(picture.tree.treeId).map((mail) => mail.id));
      const unseen = (picture.mailOf.get(agent.threadId) ?? []).find(
        (mail) =>
          mail.state === "accepted" &&
          mail.seq > wait.sinceSeq &&
          mail.boundRunId !== wait.runId &&
          !arrivals.has(mail.id),
      );
      if (unseen !== undefined)
        yield broken("WAI-3", `${agent.path} waits for any mail, and mail ${unseen.seq} is there`);
    }
  }
}

/** A run ends `completed` with the trigger-turn mail in for which it was reserved. */
function* takesItsRequest(picture: Picture): Iterable<Violation> {
  for (const [threadId, runs] of picture.runsOf) {
    for (const run of runs) {
      if (run.status !== "completed" || picture.memory.runs.get(run.id)?.status === "completed") continue;
      const left = (picture.mailOf.get(threadId) ?? []).find(
        (mail) =>
          mail.state === "accepted" &&
          mail.trigger &&
          mail.seq <= run.reservedSeq &&
          mail.boundRunId !== run.id,
      );
      if (left !== undefined) {
        yield broken(
          "MBX-4",
          `run ${run.id} of ${pathOf(picture, threadId)} is completed without mail ${left.seq}, for which it was reserved`,
        );
      }
    }
  }
}

function* transcripts(picture: Picture): Iterable<Violation> {
  for (const [threadId, items] of picture.newItems) {
    const seen = picture.memory.items.get(threadId) ?? 0;
    const path = pathOf(picture, threadId);
    for (const [offset, item] of items.entries()) {
      if (item.index !== seen + offset)
        yield broken("RUN-2", `item ${item.index} of ${path} stands at ${seen + offset}`);
    }
    const count = picture.agentOf.get(threadId)?.items ?? 0;
    if (count !== seen + items.length)
      yield broken("RUN-2", `${path} counts ${count} items and has ${seen + items.length}`);
  }
  for (const agent of picture.agents) {
    if (agent.currentRun !== null || agent.items === 0) continue;
    const last = runsOf(picture, agent).at(-1);
    if (last === undefined || picture.memory.runs.get(last.id)?.status === last.status) continue;
    const open = openCalls(picture.view.items(agent.threadId, last.firstItem, agent.items));
    if (open.length > 0)
      yield broken(
        "RUN-2",
        `${open.length} calls of the settled run ${last.id} of ${agent.path} have no result`,
      );
  }
}

function* counts(picture: Picture): Iterable<Violation> {
  const { tree, agents, profile } = picture;
  const children = new Map<string, number>();
  const openChildren = new Map<string, number>();
  const count = (of: Map<string, number>, parent: string): unknown =>
    of.set(parent, (of.get(parent) ?? 0) + 1);
  for (const { parent, state } of agents) {
    if (parent === null) continue;
    count(children, parent);
    if (state === "open") count(openChildren, parent);
  }
  if (tree.agents !== agents.length - 1)
    yield broken("BUD-1", `the tree counts ${tree.agents} agents and has ${agents.length - 1}`);
  if (tree.agents > (tree.limits.agentsPerTree ?? Infinity))
    yield broken("BUD-1", `the tree has ${tree.agents} agents`);
  for (const agent of agents) {
    const has = children.get(agent.threadId) ?? 0;
    if (agent.children !== has)
      yield broken("BUD-1", `${agent.path} counts ${agent.children} children and has ${has}`);
    const open = openChildren.get(agent.threadId) ?? 0;
    if (profile.depthLimits && open > (tree.limits.directChildren ?? Infinity))
      yield broken("BUD-1", `${agent.path} has ${open} open children`);
    if (profile.depthLimits && agent.depth > (tree.limits.depth ?? Infinity))
      yield broken("BUD-1", `${agent.path} is ${agent.depth} deep`);
    const spent = runsOf(picture, agent).reduce(
      (sum, run) => sum + run.usage.inputTokens + run.usage.outputTokens,
      0,
    );
    const told = agent.usage.inputTokens + agent.usage.outputTokens;
    if (spent !== told) yield broken("BUD-4", `${agent.path} counts ${told} tokens and its runs ${spent}`);
  }
}

/** Status does not lie: who is idle owes nothing, who is closed is closed with all below. */
function* statuses(picture: Picture): Iterable<Violation> {
  for (const agent of picture.agents) {
    const parent = agent.parent === null ? undefined : picture.agentOf.get(agent.parent);
    const closedAbove = parent !== undefined && parent.state !== "open" && !wasSetAside(picture, parent);
    if (closedAbove && agent.state === "open")
      yield broken("INT-7", `${agent.path} is open below ${parent.path}, which is closed`);
    const { kind } = statusOf(picture.view, agent, NOT_LIVE);
    const owes = picture.works.some((work) => work.executor === agent.threadId && work.state !== "ended");
    if (kind === "idle" && ((owes && !picture.profile.interruptQueuesTriggers) || agent.currentRun !== null))
      yield broken("LST-1", `${agent.path} shows idle and has work`);
    if (kind === "running" && agent.currentRun === null)
      yield broken("LST-1", `${agent.path} shows running and has no run`);
  }
}

/** One whose row could not be read is closed, and all below it goes on (REC-1). */
function wasSetAside({ memory, newEvents }: Picture, { threadId }: AgentRecord): boolean {
  if (memory.events.has(`record.set_aside ${threadId}`)) return true;
  return newEvents.some(({ type, data }) => type === "record.set_aside" && data["id"] === threadId);
}

export const runFormulas: readonly Formula[] = [
  oneRun,
  settledStays,
  serves,
  running,
  waits,
  missedEnds,
  takesItsRequest,
  transcripts,
  counts,
  statuses,
];

function runsOf(picture: Picture, agent: AgentRecord): readonly RunRecord[] {
  return picture.runsOf.get(agent.threadId) ?? [];
}
