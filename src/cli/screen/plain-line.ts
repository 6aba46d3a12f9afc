/** An event as one plain line: who, and what happened. */
import type { RuntimeEvent } from "../../protocol/events.ts";
import { clip, fit, type Terminal } from "../terminal.ts";
import { eventLine } from "./event-line.ts";

const NAME_COLUMNS = 10;

export function plainLine(terminal: Terminal, event: RuntimeEvent, before = ""): string | null {
  const line = eventLine(event);
  if (line === null) return null;
  const what = clip(line.what, Math.max(20, terminal.columns - NAME_COLUMNS - before.length - 3));
  const painted = line.style === null ? what : terminal.paint(line.style, what);
  const start = before === "" ? "" : `${terminal.paint("dim", before)}  `;
  return `${start}${fit(line.who, NAME_COLUMNS)} ${painted}`;
}
