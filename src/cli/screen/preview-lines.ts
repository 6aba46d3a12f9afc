/** What a switch would do: what the provider knows, what it would be told and in how many tokens, what is left out, and why. */
import type { StartPreview } from "../../threads/preview.ts";
import { clean, type Terminal, wrap } from "../terminal.ts";
import { coverageLines, providerName, runsNamed } from "./coverage-lines.ts";
import { counted, sizeOf } from "./words.ts";

const STRATEGIES: Readonly<Record<string, string>> = {
  none: "it goes on, and has nothing to be told",
  native_fork: "a native fork",
  delta: "a delta of what it does not know",
  full: "the whole conversation as text",
  checkpoint: "the state at a checkpoint as text",
  projected: "the pinned context alone",
  unsupported: "it cannot be done",
};

/** `brought`: forks that come back, by the transfers that tell of them. */
export function previewLines(
  terminal: Terminal,
  preview: StartPreview,
  brought: ReadonlyMap<string, string>,
): string[] {
  const { strategy, into, why, knows, tells, coverage } = preview;
  const way = strategy === "none" ? "in" : "into";
  const conversation =
    into === null ? "" : `, ${way} ${into === "existing" ? "the conversation it has" : "a new conversation"}`;
  const how =
    strategy === "none" && brought.size > 0
      ? "it goes on, told of nothing but what comes back"
      : (STRATEGIES[strategy] ?? clean(strategy));
  const name = providerName(preview.provider, preview.model);
  return [
    terminal.paint("bold", `If the next run went to ${name}`),
    ...wrapped(terminal, "strategy", `${how}${conversation}`),
    ...wrapped(terminal, "why", clean(why)),
    ...wrapped(terminal, "knows", knows.length === 0 ? "nothing of this thread" : runsNamed(knows)),
    ...tells.flatMap(({ transferId, kind, runs, tokens, bytes, omitted }) =>
      wrapped(
        terminal,
        "is told",
        `${toldOf(kind, runsNamed(runs), brought.get(transferId ?? ""))}: ${sizeOf(tokens, bytes)}` +
          (omitted === 0 ? ", nothing left out" : `, ${counted(omitted, "item")} left out for want of room`),
      ),
    ),
    ...(tells.length === 0 ? wrapped(terminal, "is told", "nothing") : []),
    ...(coverage.length === 0
      ? []
      : ["", terminal.paint("bold", "Who knows what now"), ...coverageLines(terminal, coverage)]),
  ];
}

function toldOf(kind: string, runs: string, fork: string | undefined): string {
  if (kind === "pinned_context") return "the pinned context";
  return fork === undefined
    ? `${runs}, as ${kind.replaceAll("_", " ")}`
    : `${runs} of ${fork}, which comes back`;
}

const LABEL_COLUMNS = 10;

function wrapped(terminal: Terminal, label: string, text: string): string[] {
  return wrap(`${label.padEnd(LABEL_COLUMNS)}${text}`, terminal.columns, " ".repeat(LABEL_COLUMNS));
}
