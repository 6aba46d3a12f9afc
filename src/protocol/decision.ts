/**
 * The answer to an approval. It is stored and told as text, which is what answers have always been: `approved` or `denied`, with
 * a note behind a colon. What people write instead is read here, and nowhere else.
 */

export interface Decision {
  readonly verdict: "approved" | "denied";
  /** For whoever asked. */
  readonly note: string | null;
}

const YES: ReadonlySet<string> = new Set(["yes", "y", "ok", "approve", "approved", "allow", "allowed"]);
const NO: ReadonlySet<string> = new Set(["no", "n", "deny", "denied"]);
const WITH_NOTE = /^(approved|denied):\s*(\S[^]*)$/i;

/** The text of a decision. */
export function decisionText({ verdict, note }: Decision): string {
  return note === null || note.trim() === "" ? verdict : `${verdict}: ${note}`;
}

/** What an answer decides. A word for yes approves, however it is capitalized; all else denies, and is the note. */
export function readDecision(answer: string): Decision {
  const text = answer.trim();
  const [, verdict, note] = WITH_NOTE.exec(text) ?? [];
  if (verdict !== undefined)
    return { verdict: verdict.toLowerCase() as Decision["verdict"], note: note ?? null };
  const word = text.toLowerCase();
  if (YES.has(word)) return { verdict: "approved", note: null };
  return { verdict: "denied", note: word === "" || NO.has(word) ? null : text };
}
