/**
 * The sections of a handoff between its frame and its dialogue, in the order of C6.2. Each is a list of lines from the
 * most to the least wanted; how many of them go in is decided where the budget is.
 *
 * - S1 What was pinned is copied as it is, whole or not at all (C6.4).
 * - S2 Output of tools is redacted, then cut (C13.8).
 */
import { byteLength } from "../../platform/text.ts";
import type { HandoffId } from "../../protocol/ids.ts";
import type { SnapshotLine } from "../../protocol/snapshot.ts";
import { endingOf, placeOf } from "./frame.ts";
import type { Gathered } from "./gather.ts";
import type { HandoffInput, SubagentResult } from "./input.ts";
import {
  type CommandRun,
  commandRuns,
  currentPlan,
  type FileChange,
  fileChanges,
  toolFailures,
} from "./tool-facts.ts";
import { clean, head, oneLine, tail } from "./words.ts";

export type SectionName =
  | "goal_and_constraints"
  | "decisions"
  | "open_items"
  | "merge_backs"
  | "files"
  | "conflicts"
  | "commands"
  | "plan"
  | "requests"
  | "checkpoint"
  | "failures"
  | "subagents";

export interface Line {
  readonly text: string;
  /** Stands for it where there is no room for the whole. */
  readonly short?: string;
  /** The merge-back whose words these are. */
  readonly mergeBack?: HandoffId;
}

export interface Section {
  readonly name: SectionName;
  readonly title: string;
  /** Newest first, unless `ordered`. */
  readonly lines: readonly Line[];
  /** In the order in which they are read: nothing to turn round. */
  readonly ordered?: boolean;
}

/** Lines of one kind that are looked at; of more, the newest. */
const MOST = { files: 200, commands: 40, failures: 20, results: 20, planSteps: 100, listed: 50 };

/** What was pinned (C6.4); of a delta, what its own runs have pinned. And what forks have brought back, which nothing else says. */
export function pinnedSections(input: HandoffInput): readonly Section[] {
  const { snapshot, segments, redact } = input;
  const title = segments.at(-1)?.title ?? null;
  const covered = new Set(segments.flatMap(({ runs }) => runs.map(({ id }) => id)));
  const told = (lines: readonly SnapshotLine[]): Line[] =>
    lines
      .filter(({ sourceExecutionId }) => input.extent !== "delta" || covered.has(sourceExecutionId))
      .map(({ text }) => ({ text: clean(text, redact) }))
      .toReversed();
  const pins = (kinds: readonly ("constraints" | "decisions" | "nextActions" | "openItems")[]): Line[] =>
    kinds.flatMap((kind) => told(snapshot?.[kind] ?? []));
  const objective = snapshot?.objective ?? title;
  const goal = objective === null ? [] : [{ text: `Goal: ${clean(objective, redact)}` }];
  return present([
    {
      name: "goal_and_constraints",
      title: "Goal and constraints",
      lines: [...goal, ...pins(["constraints"])],
      ordered: true,
    },
    { name: "decisions", title: "Decisions", lines: pins(["decisions"]) },
    { name: "open_items", title: "Open items and next actions", lines: pins(["nextActions", "openItems"]) },
    { name: "merge_backs", title: "Brought back by forks", lines: mergeBackLines(input) },
  ]);
}

/** What follows from the records of the runs. */
export function derivedSections(input: HandoffInput, gathered: Gathered): readonly Section[] {
  const { effects, redact, limits } = input;
  const commands = commandRuns(gathered.calls, { effects, most: MOST.commands });
  const changes = fileChanges(gathered.calls, {
    effects,
    workspace: input.workspace,
    most: MOST.files,
  });
  const plan = currentPlan(gathered.calls);
  return present([
    { name: "files", title: "Files changed", lines: changes.map((change) => fileLine(change, input)) },
    {
      name: "conflicts",
      title: "Conflicts: changed on both sides since the fork",
      lines: (input.conflicts ?? []).map((path) => ({ text: clean(path, redact) })),
      ordered: true,
    },
    {
      name: "commands",
      title: "Commands and tests, each with its latest result",
      lines: commands.map((command) => commandLine(command, input)),
    },
    {
      name: "plan",
      title: "Plan as it stands",
      lines: (plan?.lines ?? [])
        .slice(0, MOST.planSteps)
        .map((text) => ({ text: oneLine(clean(text, redact), limits.historySummaryBytes) })),
      ordered: true,
    },
    {
      name: "requests",
      title: "Waiting for an answer",
      lines: input.openRequests
        .map(({ kind, askedBy, text }) => `${kind} of ${askedBy}: ${text}`)
        .map((text) => ({ text: head(clean(text, redact), limits.historyTailBytes) }))
        .toReversed(),
    },
    { name: "checkpoint", title: "Latest checkpoint", lines: checkpointLines(input), ordered: true },
    { name: "failures", title: "Known failures", lines: failureLines(input, gathered, commands) },
    { name: "subagents", title: "Results of subagents", lines: resultLines(input, gathered.results) },
  ]);
}

function present(sections: readonly Section[]): readonly Section[] {
  return sections.filter(({ lines }) => lines.length > 0);
}

function fileLine(change: FileChange, { redact, limits, segments }: HandoffInput): Line {
  const { diff, finished } = change;
  const size = diff === null ? "" : sizeOf(diff);
  const doubt = finished ? "" : ", no result: look before you rely on it";
  const short = `${clean(change.path, redact)} (${placeOf(change, segments)}, ${change.by}${size}${doubt})`;
  if (diff === null || diff.length > limits.diffChars) return { text: short };
  return { text: `${short}\n${clean(diff, redact)}`, short };
}

/** `, +3 -1 lines`; empty for what is no diff. */
function sizeOf(diff: string): string {
  const added = diff.match(/^\+(?!\+\+ )/gm)?.length ?? 0;
  const removed = diff.match(/^-(?!-- )/gm)?.length ?? 0;
  return added + removed === 0 ? "" : `, +${added} -${removed} lines`;
}

function commandLine(run: CommandRun, { redact, limits, segments }: HandoffInput): Line {
  const command = oneLine(clean(run.command, redact), limits.historySummaryBytes);
  const short = `\`${command}\` (${placeOf(run, segments)}): ${run.outcome}`;
  const room = run.outcome === "failed" ? limits.historyTailBytes : limits.historySummaryBytes;
  const output = tail(clean(run.output, redact).trim(), room);
  return output === "" ? { text: short } : { text: `${short}\n${output}`, short };
}

function checkpointLines({ checkpoint, redact, limits }: HandoffInput): readonly Line[] {
  if (checkpoint === null) return [];
  const { workspace, id } = checkpoint.record;
  const named = `${id} of run ${checkpoint.ordinal}`;
  if (workspace.status !== "ready") {
    const why = workspace.reason === undefined ? "" : ` (${clean(workspace.reason, redact)})`;
    const state = `${workspace.status === "none" ? "not captured" : "missing"}${why}`;
    return [{ text: `${named}; state of the workspace: ${state}` }];
  }
  const files = workspace.files.slice(0, MOST.listed).join(", ");
  const more =
    workspace.files.length > MOST.listed ? ` and ${workspace.files.length - MOST.listed} more` : "";
  const lines = [{ text: `${named}; state of the workspace: captured as ${clean(workspace.ref, redact)}` }];
  if (workspace.summary !== "") {
    const summary = clean(workspace.summary, redact);
    const shown =
      summary.length > limits.diffChars ? `${summary.length} characters${sizeOf(summary)}` : summary;
    lines.push({ text: `Differences: ${shown}` });
  }
  if (files !== "") lines.push({ text: `Files: ${clean(files, redact)}${more}` });
  return lines;
}

function failureLines(
  { segments, redact, limits, effects }: HandoffInput,
  { calls }: Gathered,
  commands: readonly CommandRun[],
): readonly Line[] {
  const short = (text: string): Line => ({ text: oneLine(clean(text, redact), limits.historySummaryBytes) });
  const runs = segments
    .flatMap((segment, at) => segment.runs.map((run) => ({ segment: at, run })))
    .filter(({ run }) => !run.rolledBack && run.status !== "completed" && (run.error ?? null) !== null)
    .map(({ segment, run }) => {
      const what = `${placeOf({ segment, run }, segments)} ${endingOf(run)}`;
      return short(`${what}: ${run.error!.code}: ${run.error!.message}`);
    })
    .toReversed();
  const failing = commands
    .filter(({ outcome }) => outcome === "failed")
    .map((run) => short(`\`${run.command}\` failed in ${placeOf(run, segments)}`));
  const tools = toolFailures(calls, { effects, most: MOST.failures }).map((failure) =>
    short(`${failure.name} failed in ${placeOf(failure, segments)}: ${failure.output}`),
  );
  return [...runs.slice(0, MOST.failures), ...failing, ...tools];
}

/** Cut from the end where the whole has no room: what a fork has come to stands last. */
function mergeBackLines({ segments, redact, limits }: HandoffInput): readonly Line[] {
  return segments
    .flatMap(({ runs, mergeBacks = [] }, segment) =>
      mergeBacks.flatMap(({ runId, handoffId, text }): Line[] => {
        const run = runs.find(({ id }) => id === runId);
        if (run === undefined || run.rolledBack) return [];
        const told = clean(text, redact).trim();
        const where = `told in ${placeOf({ segment, run }, segments)}:`;
        const short = `${where}\n${tail(told, limits.historyTailBytes)}`;
        return [{ text: `${where}\n${told}`, short, mergeBack: handoffId }];
      }),
    )
    .toReversed()
    .slice(0, MOST.results);
}

function resultLines(input: HandoffInput, results: readonly SubagentResult[]): readonly Line[] {
  return results.slice(0, MOST.results).map(({ agent, status, text }) => {
    const short = `${agent} (${status})`;
    const result = head(clean(text, input.redact).trim(), input.limits.historyTailBytes);
    return byteLength(result) === 0 ? { text: short } : { text: `${short}: ${result}`, short };
  });
}
