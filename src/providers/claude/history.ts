/**
 * A conversation of Claude's as turns, which it has no word for: one begins with a prompt and ends before the next (pure;
 * lineage C13). A turn has the id of its prompt for a name: it is known before the turn begins, and is kept with it.
 *
 * - H1 What is put into a turn is sent in pieces, and a prompt as one text. So it is told from one, in forks too, where
 *   everything has new ids.
 */
import type { NativeHistoryPage } from "../../protocol/native-events.ts";
import { refOf } from "./translate.ts";
import type { ClaudeConversation } from "./transcripts.ts";
import type { ClaudeBlock, SaidMessage } from "./wire.ts";

type Turn = NativeHistoryPage["turns"][number];
type Item = Turn["items"][number];

export interface ClaudeTurn {
  /** Of its prompt. */
  readonly id: string;
  /** Its messages, the prompt first. */
  readonly said: readonly SaidMessage[];
  /** As it looks from how it ends. */
  readonly status: "completed" | "failed" | "interrupted";
}

export function turnsOf({ rows, said }: ClaudeConversation): readonly ClaudeTurn[] {
  const byId = new Map(rows.flatMap((row) => (row.uuid === undefined ? [] : [[row.uuid, row] as const])));
  const turns: { id: string; said: SaidMessage[]; status: ClaudeTurn["status"] }[] = [];
  for (const message of said) {
    const row = byId.get(message.uuid);
    const begins =
      message.type === "user" &&
      typeof message.message.content === "string" &&
      typeof row?.promptSource === "string";
    if (begins) turns.push({ id: message.uuid, said: [], status: "interrupted" });
    const turn = turns.at(-1);
    if (turn === undefined) continue;
    turn.said.push(message);
    // Its own reminder to say something stands behind an answer without a word.
    const answered = message.type === "assistant" || row?.isMeta === true;
    turn.status = typeof row?.error === "string" ? "failed" : answered ? "completed" : "interrupted";
  }
  return turns;
}

/** From a place on; `running` names the turn that is under way. */
export function historyPage(
  turns: readonly ClaudeTurn[],
  from: number,
  size: number,
  running: string | null,
): NativeHistoryPage {
  const next = from + size;
  return {
    turns: turns.slice(from, next).map((turn) => ({
      ref: refOf(turn.id),
      status: turn.id === running ? "running" : turn.status,
      items: turn.said.flatMap(itemsOf),
    })),
    next: next < turns.length ? String(next) : null,
  };
}

function itemsOf({ type, uuid, message }: SaidMessage): Item[] {
  const ref = refOf(uuid);
  if (typeof message.content === "string") return [{ ref, role: type, text: message.content }];
  return message.content.flatMap((block): Item[] => {
    switch (block.type) {
      case "text":
        return [{ ref, role: type, text: wordsOf(block) }];
      case "tool_use":
        return [{ ref, role: "tool", text: JSON.stringify({ name: block["name"], input: block["input"] }) }];
      case "tool_result":
        return [{ ref, role: "tool", text: resultText(block["content"]) }];
      default:
        return [];
    }
  });
}

function wordsOf(block: ClaudeBlock): string {
  return typeof block["text"] === "string" ? block["text"] : "";
}

/** What a tool gave: a text, or pieces of which some are texts. */
export function resultText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return JSON.stringify(content ?? "");
  return content
    .map((piece: ClaudeBlock) => (piece.type === "text" ? wordsOf(piece) : `[${piece.type}]`))
    .join("\n");
}
