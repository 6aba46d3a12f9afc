/** Threads as lines: one in a list, one by itself with its runs, and its pinned context. */
import type { PinSection, SnapshotLine, SnapshotRecord } from "../../protocol/snapshot.ts";
import type { ForkDraft } from "../../protocol/thread.ts";
import type { AskedRequest } from "../../runtime/tree-reader.ts";
import type { ThreadActivity, ThreadDocument, ThreadSummary } from "../../threads/thread-view.ts";
import { clean, clip, fit, type Terminal, wrap } from "../terminal.ts";
import { commandLine } from "./command-line.ts";
import { coverageLines, providerName, TABLE_COLUMNS } from "./coverage-lines.ts";
import { requestLines } from "./request-lines.ts";
import { ago, counted, opening } from "./words.ts";

const LABEL_COLUMNS = 13;

export function titleOf({ title }: Pick<ThreadSummary, "title">): string {
  return title === null ? "untitled" : clean(title);
}

/** `open, idle` and the like. */
export function stateOf({
  status,
  activity,
}: {
  readonly status: ThreadSummary["status"];
  readonly activity: ThreadActivity;
}): string {
  if (activity.kind === "idle") return status === "open" ? "open, idle" : status;
  const doing =
    activity.kind === "running" ? "running" : "stopped in a run, which is settled when it goes on";
  return `${status}, ${doing} (${activity.executionId})`;
}

/** A line a thread and what is known of it: the id in full, for it is what every command wants. */
export function listLines(
  terminal: Terminal,
  thread: ThreadSummary,
  { now, folders }: { readonly now: number; readonly folders: boolean },
): string[] {
  const { activity, status } = thread;
  const doing = status !== "open" ? status : activity.kind;
  const provider =
    thread.provider === null ? noProvider(thread) : providerName(thread.provider, thread.model);
  const facts = [
    thread.legacy ? "legacy-unthreaded" : provider,
    ...(thread.executions === 0 && !thread.legacy ? [] : [counted(thread.executions, "run")]),
    doing,
    ago(now - thread.updatedAt),
  ];
  const fork =
    thread.lineage.relationshipToParent === "fork" ? ` · fork of ${thread.lineage.parentThreadId}` : "";
  const where = thread.workspace === null || !folders ? "" : ` · ${clean(thread.workspace)}`;
  const style = doing === "running" ? "green" : doing === "unsettled" ? "yellow" : "dim";
  return [
    clip(`${thread.id}  ${titleOf(thread)}`, terminal.room),
    ...wrap(`${facts.join(" · ")}${fork}${where}`, terminal.room - 2, "  ").map((line) =>
      terminal.paint(style, `  ${line}`),
    ),
  ];
}

export interface ShownRun {
  readonly ordinal: number;
  readonly provider: string;
  readonly model: string | null;
  readonly outcome: string;
  /** The revision that it opened on; null for one from before threads. */
  readonly opened: number | null;
  readonly projected: number | null;
  readonly history: string | null;
  readonly asked: string;
}

export interface ShownThread {
  readonly thread: ThreadDocument;
  readonly runs: readonly ShownRun[];
  readonly context: SnapshotRecord | null;
  readonly history: { readonly level: string | null; readonly entries: number };
  readonly draft: ForkDraft | null;
  /** What it waits for somebody to answer. */
  readonly requests: readonly AskedRequest[];
  /** Ordinals of runs by their ids, for the lines of the context. */
  readonly ordinals: ReadonlyMap<string, string>;
}

/** @param options what `thread show` was given, for the commands that are printed. */
export function threadLines(
  terminal: Terminal,
  shown: ShownThread,
  options: { readonly store?: string; readonly config?: string },
): string[] {
  const { thread, context, draft } = shown;
  const fact = (label: string, text: string): string =>
    clip(`${fit(label, LABEL_COLUMNS)}${text}`, terminal.room);
  const { forkedFrom, selection } = thread;
  const at = forkedFrom === null ? "" : `${forkedFrom.point.threadId}, ${pointName(forkedFrom.point)}`;
  return [
    terminal.paint("bold", clip(titleOf(thread), terminal.room)),
    terminal.paint("dim", thread.id),
    fact("state", `${stateOf(thread)}, revision ${thread.revision}`),
    ...(thread.workspace === null ? [] : [fact("workspace", clean(thread.workspace))]),
    fact("provider", providerWords(thread)),
    ...(selection === null || thread.provider === null
      ? []
      : [fact("next", `${providerName(selection.provider, selection.model)}, from the next run on`)]),
    ...(thread.continuity === "projected-only" ? [fact("continuity", "projected-only")] : []),
    ...(at === "" ? [] : [fact("forked from", at)]),
    ...(shown.history.level === null
      ? []
      : [fact("history", `${shown.history.level}, ${counted(shown.history.entries, "entry", "entries")}`)]),
    ...(draft === null ? [] : [fact("draft", opening(draft.text))]),
    ...(thread.legacy ? [fact("legacy", "legacy-unthreaded: it has no context, forks or pins")] : []),
    ...section(terminal, "Waits for an answer", requestLines(terminal, shown.requests, options)),
    ...section(terminal, "Runs", runLines(terminal, shown, options)),
    ...section(
      terminal,
      "Who knows what",
      thread.coverage.length === 0 ? [] : coverageLines(terminal, thread.coverage),
    ),
    ...section(
      terminal,
      `Context, revision ${thread.currentContext?.revision ?? 0}`,
      context === null ? [] : contextLines(terminal, context, shown.ordinals),
    ),
  ];
}

export function pointName(point: {
  readonly ordinal: number;
  readonly cut: string;
  readonly turnItemId: number | null;
}): string {
  if (point.turnItemId === null)
    return point.ordinal === 0 ? "from its beginning" : `after run ${point.ordinal}`;
  const side = point.cut === "exclusive" ? "before" : "after";
  return `${side} message ${point.turnItemId + 1}`;
}

/** A run that failed before a provider had accepted it is of none. */
function noProvider({ executions }: { readonly executions: number }): string {
  return executions === 0 ? "no run yet" : "no provider has accepted a run yet";
}

function providerWords({ provider, model, selection, executions }: ThreadDocument): string {
  if (provider !== null) return providerName(provider, model);
  const none = executions === 0 ? "none yet" : "none has accepted a run yet";
  return selection === null
    ? none
    : `${none}; ${providerName(selection.provider, selection.model)} is chosen`;
}

function section(terminal: Terminal, title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ["", terminal.paint("bold", title), ...lines];
}

function runLines(
  terminal: Terminal,
  { runs, thread }: ShownThread,
  { config, store }: { readonly store?: string; readonly config?: string },
): string[] {
  if (runs.length === 0) return [];
  const providers = Math.min(
    24,
    Math.max(8, ...runs.map(({ provider, model }) => providerName(provider, model).length)),
  );
  const row = (
    number: string,
    provider: string,
    ended: string,
    context: string,
    history: string,
    asked: string,
  ): string =>
    clip(
      `${fit(number, 5, "right")}  ${fit(provider, providers)} ${fit(ended, 11)} ${fit(context, 8)} ${fit(history, 11)} ${asked}`,
      terminal.room,
    );
  const all = thread.executions;
  const older = all - runs.length;
  const showAll = commandLine(`thread show ${thread.id}`, { runs: all, config, store });
  const olderLine = older > 0 ? [terminal.paint("dim", `  ${counted(older, "older run")}: ${showAll}`)] : [];
  if (terminal.columns < TABLE_COLUMNS) {
    const lines = runs.flatMap((run) => [
      clip(
        `${fit(String(run.ordinal), 5, "right")}  ${providerName(run.provider, run.model)} ${run.outcome}`,
        terminal.room,
      ),
      clip(`       ${opening(run.asked)}`, terminal.room),
    ]);
    return [...olderLine, ...lines];
  }
  return [
    ...olderLine,
    terminal.paint("dim", row("run", "provider", "ended", "context", "history", "asked")),
    ...runs.map((run) => {
      const opened = run.opened === null ? "–" : String(run.opened);
      const context = run.projected === null ? opened : `${opened} → ${run.projected}`;
      const name = providerName(run.provider, run.model);
      return row(String(run.ordinal), name, run.outcome, context, run.history ?? "–", opening(run.asked));
    }),
  ];
}

const SECTIONS: readonly (readonly [PinSection | "outcomes" | "delegations", string])[] = [
  ["decisions", "Decisions"],
  ["constraints", "Constraints"],
  ["openItems", "Open"],
  ["nextActions", "Next"],
  ["outcomes", "Outcomes"],
  ["delegations", "Delegations"],
];

/** Each line with the run that it comes from. */
export function contextLines(
  terminal: Terminal,
  snapshot: SnapshotRecord,
  ordinals: ReadonlyMap<string, string>,
): string[] {
  const lines = (title: string, rows: readonly SnapshotLine[]): string[] =>
    rows.length === 0
      ? []
      : [
          title,
          ...rows.flatMap(({ text, sourceExecutionId }) =>
            wrap(
              `- ${clean(text)} (${ordinals.get(sourceExecutionId) ?? sourceExecutionId})`,
              terminal.columns - 2,
              "  ",
            ).map((line) => `  ${line}`),
          ),
        ];
  return [
    ...(snapshot.objective === null ? [] : [`Objective: ${clean(snapshot.objective)}`]),
    ...SECTIONS.flatMap(([name, title]) => lines(title, snapshot[name] ?? [])),
    ...(snapshot.degraded
      ? [terminal.paint("yellow", "The record of its newest run was damaged: only its outcome is in here.")]
      : []),
  ];
}
