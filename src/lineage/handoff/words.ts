/**
 * Text of others inside a text of ours: redacted, well-formed, cut between two characters where it must be cut, and never
 * to be taken for a line of the frame (C6.9, C6.12).
 */
import type { Redact } from "../../platform/redact.ts";
import { byteLength, headBytes, tailBytes } from "../../platform/text.ts";

/** Begins a line of somebody's text that looks like a heading of ours; as in mail. */
const MARK = "\u00a6 ";
const FRAME_LINE = /^(?=[^\S\n\r\u2028\u2029]*={2,3} )/gm;

/** Redacts first: half a secret that a cut has left is known by no filter (C13.8). */
export function clean(text: string, redact: Redact): string {
  return redact(text.toWellFormed()).replaceAll(FRAME_LINE, MARK);
}

/** At most so many bytes from the beginning, the mark included. */
export function head(text: string, bytes: number): string {
  const whole = byteLength(text);
  return whole <= bytes ? text : `${headBytes(text, bytes - MARK_BYTES)}… [cut from ${whole} bytes]`;
}

/** At most so many bytes from the end, the mark included. */
export function tail(text: string, bytes: number): string {
  const whole = byteLength(text);
  return whole <= bytes ? text : `[cut from ${whole} bytes] …${tailBytes(text, bytes - MARK_BYTES)}`;
}

/** Room for the longest mark that a cut leaves. */
const MARK_BYTES = 48;

/** At most so many UTF-16 units from the beginning, the mark included. */
export function headChars(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const mark = `… [cut from ${text.length} characters]`;
  // A limit that is smaller than its mark leaves the mark out.
  const room = chars > mark.length ? chars - mark.length : chars;
  const kept = text.slice(0, room);
  return (kept.isWellFormed() ? kept : kept.slice(0, -1)) + (room === chars ? "" : mark);
}

/** On one line, at most so many bytes. */
export function oneLine(text: string, bytes: number): string {
  return head(text.replaceAll(/\s+/g, " ").trim(), bytes);
}
