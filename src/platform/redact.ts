/**
 * Takes secrets out of text that leaves the store: logs, events, spans, handoffs, salvage, another provider (SEC-3).
 * It errs towards taking too much. Transcripts and mail in the store are not its business.
 *
 * - R1 Time is linear in the text: every pattern starts at a fixed word and has no run that two parts could share;
 *   where a closing part is looked for, code scans for it once.
 * - R2 Applying it twice changes nothing more, and the text never grows.
 */
import type { Json } from "../protocol/json.ts";

export type Redact = (text: string) => string;

const MARKER = "***";

/** Words before a `:` or `=` whose value is a secret, and how long that value must be to be taken for one. */
const LABELS =
  /(passw(?:or)?d|passphrase|pwd)|(authorization|cookie)|(secret(?:[_-]?key)?|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|credentials?)/gi;
const SHORTEST_PASSWORD = MARKER.length;
const SHORTEST_TOKEN = 8;

/** Between a label and its value: a closing quote, blanks, the sign. */
const ASSIGNMENT = /\\{0,4}["']?\s{0,8}[:=]\s{0,8}/y;
const OPENING = /(\\{0,4})(["'])/y;
const BARE_VALUE = /[^\s"'\\,;&)}\]]+/y;

const CREDENTIALS_IN_URL = /:\/\/[^\s/:@]{0,256}:[^\s/]{2,1024}@/g;

// The rest of the word goes too: cut off at the shape's length, it could begin another shape.
const SHAPES = new RegExp(
  `(?<![A-Za-z0-9])(?:${[
    "sk-[A-Za-z0-9_-]{16,}",
    "gh[pousr]_[A-Za-z0-9]{20,}",
    "github_pat_[A-Za-z0-9_]{20,}",
    "glpat-[A-Za-z0-9_-]{16,}",
    "(?:AKIA|ASIA)[A-Z0-9]{16}",
    "xox[a-z]-[A-Za-z0-9-]{10,}",
    "xapp-[A-Za-z0-9-]{10,}",
    "AIza[A-Za-z0-9_-]{30,}",
    "npm_[A-Za-z0-9]{30,}",
    "hf_[A-Za-z0-9]{30,}",
    "tok_[A-Za-z0-9]{21}",
  ].join("|")})[A-Za-z0-9_-]*|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}`,
  "g",
);
const BEARER = /\b(bearer\s{1,8})[A-Za-z0-9._~+/=-]{12,}/gi;

/** A filter that also knows secrets by value, such as the keys given to the runtime. Values under 3 letters are ignored. */
export function createRedactor(secrets: readonly string[]): Redact {
  // The longest first: a secret may contain another.
  const literals = secrets
    .filter((secret) => secret.length >= MARKER.length)
    .toSorted((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const literal of literals) clean = clean.replaceAll(literal, MARKER);
    return withoutLabelled(withoutKeyBlocks(clean).replace(CREDENTIALS_IN_URL, `://${MARKER}@`))
      .replace(BEARER, `$1${MARKER}`)
      .replace(SHAPES, MARKER);
  };
}

/** The filter for secrets that are known by their shape alone. */
export const redact: Redact = createRedactor([]);

/** Redacts every text inside a JSON value; a text under a label such as `password` goes whole. */
export function redactJson(value: Json, filter: Redact = redact): Json {
  if (typeof value === "string") return filter(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one: Json) => redactJson(one, filter));
  const fields = Object.entries(value).map(([key, field]): [string, Json] => {
    const hidden = typeof field === "string" && field.length >= MARKER.length && endsInLabel(key);
    return [key, hidden ? MARKER : redactJson(field, filter)];
  });
  return Object.fromEntries(fields);
}

function endsInLabel(key: string): boolean {
  for (const match of key.matchAll(LABELS)) if (match.index + match[0].length === key.length) return true;
  return false;
}

/** A block without its end is cut off at the end of the text: half a key is a secret too. */
function withoutKeyBlocks(text: string): string {
  const begin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
  let out = "";
  let copied = 0;
  for (let match = begin.exec(text); match !== null; match = begin.exec(text)) {
    out += text.slice(copied, match.index) + MARKER;
    const end = text.indexOf("-----END ", begin.lastIndex);
    const dashes = end === -1 ? -1 : text.indexOf("-----", end + "-----END ".length);
    if (dashes === -1) return out;
    copied = dashes + "-----".length;
    begin.lastIndex = copied;
  }
  return out + text.slice(copied);
}

function withoutLabelled(text: string): string {
  let out = "";
  let copied = 0;
  const labels = new RegExp(LABELS);
  for (let label = labels.exec(text); label !== null; label = labels.exec(text)) {
    ASSIGNMENT.lastIndex = labels.lastIndex;
    const assignment = ASSIGNMENT.exec(text);
    if (assignment === null) continue;
    const [from, to] = valueAt(text, ASSIGNMENT.lastIndex, label[2] !== undefined);
    const shortest = label[3] === undefined ? SHORTEST_PASSWORD : SHORTEST_TOKEN;
    if (to - from < shortest) continue;
    out += text.slice(copied, from) + MARKER;
    copied = to;
    labels.lastIndex = to;
  }
  return out + text.slice(copied);
}

/** Where a value starts and ends: up to its closing quote, else up to a separator; a header goes to the end of the line. */
function valueAt(text: string, start: number, header: boolean): [number, number] {
  OPENING.lastIndex = start;
  const opening = OPENING.exec(text);
  if (opening !== null)
    return [OPENING.lastIndex, closingQuote(text, OPENING.lastIndex, opening[2]!, opening[1]!.length)];
  if (header) return [start, endOfLine(text, start)];
  BARE_VALUE.lastIndex = start;
  return [start, start + (BARE_VALUE.exec(text)?.[0].length ?? 0)];
}

/** A quote under more backslashes than the opening one belongs to the value. No value runs over the end of its line. */
function closingQuote(text: string, start: number, quote: string, depth: number): number {
  let slashes = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === "\n") return at;
    if (character === quote && slashes <= depth) return at - slashes;
    slashes = character === "\\" ? slashes + 1 : 0;
  }
  return text.length;
}

function endOfLine(text: string, start: number): number {
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "\n" || text[at] === '"' || text[at] === "'") return at;
  }
  return text.length;
}
