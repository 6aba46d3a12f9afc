/** An event as one plain line: who, and what happened. */
import type { RuntimeEvent } from "../../protocol/events.ts";
import { clip, fit, type Terminal, widthOf } from "../terminal.ts";
import { eventLine } from "./event-line.ts";

const NAME_COLUMNS = 10;

export function plainLine(terminal: Terminal, event: RuntimeEvent, before = ""): string | null {
  const line = eventLine(event);
  if (line === null) return null;
  const who = nameCell(terminal, line.who, NAME_COLUMNS);
  const what = clip(line.what, Math.max(20, terminal.room - widthOf(who) - before.length - 3));
  const painted = line.style === null ? what : terminal.paint(line.style, what);
  const start = before === "" ? "" : `${terminal.paint("dim", before)}  `;
  return `${start}${who} ${painted}`;
}

/** A name in its column: where no terminal shows it, it is whole. */
export function nameCell(terminal: Terminal, name: string, columns: number): string {
  return terminal.room === Infinity ? name.padEnd(columns) : fit(name, columns);
}
