/** What a wait asks for, as works: targets resolved, mode and time-out judged (WAI-3, agents.md 29, 30). */
import type { AgentPath } from "../protocol/agent-path.ts";
import { RejectedError } from "../protocol/errors.ts";
import { isWorkId, type ThreadId, type TreeId, type WorkId } from "../protocol/ids.ts";
import type { Limits } from "../protocol/limits.ts";
import type { StoreView } from "../store/port.ts";
import { resolveTarget } from "./resolve-target.ts";

export interface WaitInput {
  readonly targets?: readonly string[] | undefined;
  readonly works?: readonly string[] | undefined;
  /** How many must end; default `all`. */
  readonly mode?: "any" | "all" | number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface WaitTargets {
  readonly works: readonly WorkId[];
  readonly agents: readonly ThreadId[];
  readonly need: number;
}

/** Works of one wait; its output tells each of them. */
const MOST_WORKS = 256;

/** A target stands for the caller's open works at that agent, or, with none, for its latest work. */
export function resolveWait(
  view: StoreView,
  tree: TreeId,
  from: { readonly path: AgentPath; readonly threadId: ThreadId | null },
  input: WaitInput,
): WaitTargets {
  const works = new Set<WorkId>();
  const agents: ThreadId[] = [];
  for (const reference of input.targets ?? []) {
    if (isWorkId(reference)) {
      throw new RejectedError(
        "INVALID_ARGUMENT",
        `targets names agents, and ${reference} is a work; give it in \`works\`.`,
        { argument: "targets", value: reference },
      );
    }
    const agent = resolveTarget(view, tree, from.path, reference, "targets");
    agents.push(agent.threadId);
    const asked = from.threadId === null ? [] : view.openWorksAskedBy(from.threadId);
    const open = asked.filter((work) => work.executor === agent.threadId);
    const latest =
      open.length > 0
        ? open
        : [view.latestWork(agent.threadId, from.threadId ?? undefined) ?? view.latestWork(agent.threadId)];
    for (const work of latest) if (work !== undefined) works.add(work.id);
    if (latest[0] === undefined) {
      throw new RejectedError(
        "INVALID_ARGUMENT",
        `${agent.path} has no work to wait for; give it a task first.`,
        {
          argument: "targets",
          value: agent.path,
        },
      );
    }
  }
  for (const id of input.works ?? []) {
    const work = isWorkId(id) ? view.work(id) : undefined;
    if (work === undefined || work.treeId !== tree) {
      throw new RejectedError(
        "INVALID_ARGUMENT",
        `no work ${id} is in this tree; use an id that a tool returned.`,
        {
          argument: "works",
          value: id,
        },
      );
    }
    works.add(work.id);
    if (!agents.includes(work.executor)) agents.push(work.executor);
  }
  if (works.size > MOST_WORKS) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `${works.size} works would be waited for and at most ${MOST_WORKS} may; name fewer agents or works.`,
      { argument: "targets", limit: MOST_WORKS, use: works.size },
    );
  }
  return { works: [...works], agents, need: needOf(input.mode, works.size) };
}

function needOf(mode: WaitInput["mode"], works: number): number {
  if (mode === undefined || mode === "all") return works;
  if (mode === "any") return Math.min(1, works);
  if (!Number.isInteger(mode) || mode < 1 || mode > works) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `mode ${mode} is out of range: ${works} works are waited for; give \`any\`, \`all\`, or at most as many.`,
      {
        argument: "mode",
        value: mode,
      },
    );
  }
  return mode;
}

/** Below the minimum it is raised, above the maximum refused. */
export function judgeTimeout(
  limits: Limits,
  asked: number | undefined,
): { timeoutMs: number; clampedToMs: number | null } {
  const timeoutMs = asked ?? limits.waitDefaultMs;
  if (timeoutMs > limits.waitMaximumMs) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `timeout_ms ${timeoutMs} is above the maximum of ${limits.waitMaximumMs}; wait again instead.`,
      {
        argument: "timeout_ms",
        value: timeoutMs,
        limit: limits.waitMaximumMs,
      },
    );
  }
  if (timeoutMs >= limits.waitMinimumMs) return { timeoutMs, clampedToMs: null };
  return { timeoutMs: limits.waitMinimumMs, clampedToMs: asked === undefined ? null : limits.waitMinimumMs };
}
