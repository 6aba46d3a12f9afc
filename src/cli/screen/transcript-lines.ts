/** A conversation as lines, each entry with the number that `--at message:N` and `--before-message` take; and its history. */
import type { HistoryEntry } from "../../protocol/thread.ts";
import type { TranscriptItem } from "../../protocol/transcript.ts";
import type { TranscriptEntry } from "../../threads/transcript.ts";
import { cleanLines, clip, fit, type Terminal, wrap } from "../terminal.ts";
import { runsNamed } from "./coverage-lines.ts";
import { counted, figure, opening } from "./words.ts";

const NUMBER_COLUMNS = 5;
const WHO_COLUMNS = 12;
const MARGIN = " ".repeat(NUMBER_COLUMNS + WHO_COLUMNS + 2);
/** Of one entry, unless all are asked for. */
const SHOWN_LINES = 12;
/** Far more than is shown, and far less than a message may have. */
const SHOWN_CHARACTERS = 20_000;

export function transcriptLines(terminal: Terminal, entry: TranscriptEntry, full: boolean): string[] {
  if (entry.kind === "divider") {
    return [terminal.paint("dim", `── forked from ${entry.parent} ──`)];
  }
  const { item, historical, readOnly } = entry;
  const who = entry.kind === "handoff" ? "handoff" : whoOf(item);
  const said = entry.kind === "handoff" ? handoffText(entry) : textOf(item);
  const text = historical ? `(rolled back) ${said}` : said;
  const shown = full ? text : text.slice(0, SHOWN_CHARACTERS);
  const room = Math.max(20, terminal.columns - MARGIN.length);
  const lines = cleanLines(shown).flatMap((line) => wrap(line, room));
  const cut = full ? lines : lines.slice(0, SHOWN_LINES);
  if (cut.length < lines.length || shown.length < text.length) {
    cut.push(`… ${counted(text.length, "character")} in all; see them with --full`);
  }
  const number = fit(String(item.index + 1), NUMBER_COLUMNS, "right");
  const head = `${number}  ${fit(who, WHO_COLUMNS)}`;
  const style = readOnly || historical ? "dim" : null;
  return cut.map((line, index) => {
    const whole = `${index === 0 ? head : MARGIN}${line}`.trimEnd();
    return style === null ? whole : terminal.paint(style, whole);
  });
}

function whoOf(item: TranscriptItem): string {
  switch (item.kind) {
    case "user":
      return "you";
    case "assistant":
      return "answer";
    case "mail":
      return opening(item.author);
    case "tool_result":
      return opening(item.name);
    case "context":
      return "runtime";
  }
}

function textOf(item: TranscriptItem): string {
  switch (item.kind) {
    case "tool_result":
      return typeof item.output === "string" ? item.output : JSON.stringify(item.output);
    case "assistant":
      return item.parts
        .map((part) => (part.type === "tool_call" ? `calls ${part.name} ${part.input}` : part.text))
        .join("\n");
    default:
      return item.text;
  }
}

/** The text itself is for `handoff show`. */
function handoffText({ item, handoff }: Extract<TranscriptEntry, { kind: "handoff" }>): string {
  if (handoff === null) return item.kind === "context" ? item.text : "";
  const told = handoff.coveredRuns.length === 0 ? "" : ` of ${runsNamed(handoff.coveredRuns)}`;
  const status = handoff.deliveredAt === null ? handoff.status : `${handoff.status}, delivered`;
  return `${handoff.kind.replaceAll("_", " ")}${told}: ${handoff.id} (${status})`;
}

export function historyLine(terminal: Terminal, { sequence, body }: HistoryEntry): string {
  const head = `${fit(String(sequence), NUMBER_COLUMNS, "right")}  ${fit(body.kind, WHO_COLUMNS)}`;
  return clip(`${head}${bodyOf(body)}`, terminal.columns);
}

function bodyOf(body: HistoryEntry["body"]): string {
  switch (body.kind) {
    case "user":
    case "assistant":
      return opening(body.text);
    case "tool": {
      const result = body.result === null ? "no result" : `${figure(body.result.bytes)} bytes`;
      return opening(`${body.name} ${body.summary.replaceAll("\n", " ")} → ${result}`);
    }
    case "change":
      return opening(`${body.path} ${body.summary}`);
    case "boundary": {
      const skipped = body.skipped === 0 ? "" : `, ${figure(body.skipped)} unreadable`;
      return `${body.level}: ${figure(body.entries)} entries${skipped}`;
    }
  }
}
