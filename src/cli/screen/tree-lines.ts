/** A tree as lines: one an agent, with state, unread mail, tokens and last activity. */
import { depthOf } from "../../protocol/agent-path.ts";
import type { AgentSummary, NativeAgent } from "../../runtime/tree-reader.ts";
import { clean, clip, fit, type Terminal, widthOf } from "../terminal.ts";
import { ago, figure, shortName, statusStyle, statusWord } from "./words.ts";

const NAME_COLUMNS = 24;
/** So that a live tree does not jump about with its words. */
const STATE_COLUMNS = 24;
const UNREAD_COLUMNS = 6;
const TOKEN_COLUMNS = 9;
const AGE_COLUMNS = 7;
const MARK_COLUMNS = 2;
/** Narrower than this, the age and then the tokens are left out, and names are cut to a third. */
const WITH_AGE = 56;
const WITH_TOKENS = 48;

export interface TreeView {
  readonly agents: readonly AgentSummary[];
  readonly now: number;
  /** Whether residency is known: only the owner of a tree knows it. */
  readonly live: boolean;
  /** The id of each agent's thread at the end of its line. */
  readonly ids?: boolean;
  /** Words in place of the statuses, by path. */
  readonly words?: ReadonlyMap<string, string>;
  /** Agents of providers' own, each shown under its agent. */
  readonly natives?: readonly NativeAgent[];
}

export function treeLines(terminal: Terminal, view: TreeView, columns = terminal.room): string[] {
  const names = nameColumn(view.agents);
  const longestName = Math.max(6, ...names.map((name) => name.length));
  const nameColumns = Math.min(columns < WITH_AGE ? Math.floor(columns / 3) : NAME_COLUMNS, longestName);
  const shownTokens = columns < WITH_TOKENS ? 0 : TOKEN_COLUMNS + 1;
  const shownAge = columns < WITH_AGE ? 0 : AGE_COLUMNS + 1;
  const fixed = nameColumns + UNREAD_COLUMNS + shownTokens + shownAge + (view.live ? MARK_COLUMNS : 0) + 3;
  const states = view.agents.map((agent) => view.words?.get(agent.path) ?? statusWord(agent.status));
  const longest = Math.max(STATE_COLUMNS, ...states.map(widthOf));
  const stateColumns = Math.min(longest, Math.max(8, columns - fixed));
  const mark = (text: string): string => (view.live ? `${fit(text, MARK_COLUMNS)}` : "");
  const row = (name: string, marked: string, state: string, rest: readonly string[]): string =>
    `${name} ${marked}${state} ${rest.slice(0, shownTokens === 0 ? 1 : shownAge === 0 ? 2 : 3).join(" ")}`;
  const head = row(fit("agent", nameColumns), mark(""), fit("state", stateColumns), [
    fit("unread", UNREAD_COLUMNS, "right"),
    fit("tokens", TOKEN_COLUMNS, "right"),
    fit("last", AGE_COLUMNS, "right"),
  ]);
  const lines = view.agents.flatMap((agent, index) => {
    const state = fit(states[index]!, stateColumns);
    const line = row(
      fit(names[index]!, nameColumns),
      terminal.paint("cyan", mark(agent.resident ? "●" : "○")),
      terminal.paint(statusStyle(agent.status), state),
      [
        agent.unread > 0
          ? terminal.paint("bold", fit(figure(agent.unread), UNREAD_COLUMNS, "right"))
          : fit("–", UNREAD_COLUMNS, "right"),
        fit(figure(agent.tokens), TOKEN_COLUMNS, "right"),
        fit(ago(view.now - agent.lastActiveAt), AGE_COLUMNS, "right"),
      ],
    );
    return [line, ...nativeLines(terminal, agent, view.natives ?? [], columns)];
  });
  const table = [terminal.paint("dim", clip(head, columns)), ...lines];
  if (view.ids !== true) return table;
  const ids = ["thread", ...view.agents.map(({ threadId }) => threadId)];
  return table.map((line, index) => `${line}  ${ids[index]!}`);
}

/** They are looked at and never written to, and have no path. */
function nativeLines(
  terminal: Terminal,
  { path }: AgentSummary,
  natives: readonly NativeAgent[],
  columns: number,
): string[] {
  const indent = " ".repeat(3 * depthOf(path));
  return natives
    .filter(({ under }) => under === path)
    .map(({ prompt, outcome }) => {
      const state = ` (${outcome ?? "running"})`;
      const name = clip(`${indent}~ ${clean(prompt)}`, Math.max(8, columns - state.length));
      return terminal.paint("dim", `${name}${state}`);
    });
}

/** Names with the branches of the tree before them. Agents come sorted by path, so that parents precede children. */
function nameColumn(agents: readonly AgentSummary[]): string[] {
  const top = Math.min(...agents.map((agent) => depthOf(agent.path)));
  return agents.map((agent, index) => {
    const depth = depthOf(agent.path) - top;
    if (depth === 0) return agent.path;
    let branches = isLast(agents, index, depth) ? "└─ " : "├─ ";
    for (let level = depth - 1; level > 0; level -= 1) {
      branches = `${isLast(agents, index, level) ? "   " : "│  "}${branches}`;
    }
    return `${branches}${shortName(agent.path)}`;
  });

  function isLast(rows: readonly AgentSummary[], index: number, level: number): boolean {
    const next = rows.slice(index + 1).find((other) => depthOf(other.path) - top <= level);
    return next === undefined || depthOf(next.path) - top < level;
  }
}
