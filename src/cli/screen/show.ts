/**
 * A running tree as it is shown: drawn live on a terminal, as plain lines elsewhere, as NDJSON for programs. A show is told
 * the events and looks up the rest.
 */
import { systemClock } from "../../platform/clock.ts";
import type { RuntimeEvent } from "../../protocol/events.ts";
import type { AgentSummary } from "../../runtime/tree-reader.ts";
import { clip, type Terminal } from "../terminal.ts";
import { LiveBlock } from "./live.ts";
import { plainLine } from "./plain-line.ts";
import { treeLines } from "./tree-lines.ts";
import { counted, seconds } from "./words.ts";

export interface Show {
  event(event: RuntimeEvent): void;
  /** Draws the last state and leaves the terminal as it was found. */
  end(): Promise<void>;
}

/** What a live show looks up for each drawing. */
export interface Look {
  readonly title: string;
  readonly agents: () => Promise<readonly AgentSummary[]>;
  /** Loaded sessions at most; null where residency is not known. */
  readonly residents: number | null;
}

export function createShow(terminal: Terminal, look: Look, json: boolean): Show {
  if (json) return { event: (event) => terminal.json(event), end: async () => undefined };
  const startedAt = systemClock.monotonic();
  const since = (): string => seconds(systemClock.monotonic() - startedAt).padStart(6);
  if (!terminal.interactive) {
    const print = (event: RuntimeEvent): void => {
      const line = plainLine(terminal, event, since());
      if (line !== null) terminal.line(line);
    };
    terminal.line(look.title);
    return { event: print, end: async () => undefined };
  }
  terminal.line(terminal.paint("bold", clip(look.title, terminal.columns)));
  terminal.line();
  const block = new LiveBlock(terminal, async () => {
    const agents = await look.agents();
    const rule = "─".repeat(Math.min(terminal.columns, 80));
    return [
      terminal.paint("dim", rule),
      ...treeLines(
        terminal,
        { agents, now: systemClock.now(), live: look.residents !== null },
        Math.min(terminal.columns, 100),
      ),
      terminal.paint("dim", clip(footer(agents, look.residents, since().trim()), terminal.columns)),
    ];
  });
  return {
    event(event) {
      const line = plainLine(terminal, event, since());
      if (line === null) block.changed();
      else block.print(line);
    },
    end: () => block.end(),
  };
}

function footer(agents: readonly AgentSummary[], residents: number | null, time: string): string {
  const loaded = agents.filter((agent) => agent.resident).length;
  const running = agents.filter((agent) => agent.status.kind === "running").length;
  const memory = residents === null ? [] : [`● ${loaded} loaded, at most ${residents}`];
  return [counted(agents.length, "agent"), ...memory, `${running} running`, time].join(" · ");
}
