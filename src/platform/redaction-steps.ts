/**
 * The kinds of secrets that are taken out of text, a step each (SEC-3). They err towards taking too much.
 *
 * - R1 Time is linear in the text: every pattern starts at a fixed word and has no run that two parts could share;
 *   where a closing part is looked for, code scans for it once.
 * - R2 Applying them twice changes nothing more, and the text never grows.
 * - R3 Each step says from where on a text is undecided, so that text which comes in pieces can be shown as far as no piece
 *   to come can change it (`redact-stream.ts`).
 */
export const MARKER = "***";

/** One kind of secret. */
export interface RedactionStep {
  readonly clean: (text: string) => string;
  /** From where on the text may turn out to be part of a secret once more has come; its length when nothing may. */
  readonly openFrom: (text: string) => number;
  /** Where a secret that was open at the start of the text has ended for certain; -1 while it has not. */
  readonly closesAt: (text: string) => number;
}

/** Words before a `:` or `=` whose value is a secret, and how long that value must be to be taken for one. */
export const LABELS =
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

/** The beginnings of such at the end of a text. */
const BEGUN_URL = /:(?:\/(?:\/[^\s/:@]{0,256}(?::[^\s/]{0,1024})?)?)?$/;
const BEGUN_BEARER = /\bbearer\s{0,8}(?:(?<=\s)[A-Za-z0-9._~+/=-]*)?$/i;
const WORD = /[A-Za-z0-9_.-]/;
/** No label is longer. */
const BEGUN_LABEL = /[A-Za-z_-]{0,16}$/;
const BEGUN_ASSIGNMENT = /\\{0,4}["']?\s{0,8}$/y;
const BEGUN_VALUE = /\\{0,4}$/y;
const BEGUN_KEY_BLOCK = /-{1,4}$|-----(?:B(?:E(?:G(?:I(?:N(?: [A-Z0-9 ]{0,60}-{0,4})?)?)?)?)?)?$/;

function knownSecrets(secrets: readonly string[]): RedactionStep {
  // The longest first: a secret may contain another.
  const literals = secrets
    .filter((secret) => secret.length >= MARKER.length)
    .toSorted((a, b) => b.length - a.length);
  return {
    clean: (text) => literals.reduce((clean, literal) => clean.replaceAll(literal, MARKER), text),
    openFrom(text) {
      let open = Math.min(text.length, ...literals.map((literal) => begunAt(text, literal)));
      // A whole one that the undecided part begins in is decided with it.
      for (let before = -1; before !== open;) {
        before = open;
        for (const literal of literals) {
          let at = text.indexOf(literal);
          while (at !== -1 && at + literal.length <= open) at = text.indexOf(literal, at + literal.length);
          if (at !== -1) open = Math.min(open, at);
        }
      }
      return open;
    },
    closesAt: (text) => text.length,
  };
}

/** Where the longest beginning of a secret stands that the text ends with. */
function begunAt(text: string, literal: string): number {
  for (let at = Math.max(0, text.length - literal.length + 1); at < text.length; at += 1) {
    if (literal.startsWith(text.slice(at))) return at;
  }
  return text.length;
}

const URLS: RedactionStep = {
  clean: (text) => text.replace(CREDENTIALS_IN_URL, `://${MARKER}@`),
  openFrom: (text) => startOf(BEGUN_URL, text),
  closesAt: (text) => text.search(/[\s/]/),
};

/** Secrets known by their shape, which no separator interrupts. */
const WORDS: RedactionStep = {
  clean: (text) => text.replace(BEARER, `$1${MARKER}`).replace(SHAPES, MARKER),
  openFrom: (text) => Math.min(startOf(BEGUN_BEARER, text), startOfWord(text)),
  closesAt: (text) => text.search(/[^A-Za-z0-9._~+/=-]/),
};

/** Of the word that the text ends with. */
function startOfWord(text: string): number {
  let at = text.length;
  while (at > 0 && WORD.test(text[at - 1]!)) at -= 1;
  return at;
}

function startOf(begun: RegExp, text: string): number {
  const at = text.search(begun);
  return at === -1 ? text.length : at;
}

/** A block without its end is cut off at the end of the text: half a key is a secret too. */
const KEY_BLOCKS: RedactionStep = {
  clean(text) {
    let out = "";
    let copied = 0;
    for (const [from, to] of keyBlocks(text)) {
      out += text.slice(copied, from) + MARKER;
      copied = to ?? text.length;
    }
    return out + text.slice(copied);
  },
  openFrom(text) {
    const last = keyBlocks(text).at(-1);
    if (last === undefined) return startOf(BEGUN_KEY_BLOCK, text);
    const [from, to] = last;
    return to === null ? from : to + startOf(BEGUN_KEY_BLOCK, text.slice(to));
  },
  closesAt: endOfKeyBlock,
};

/** The last one has no end when the text ends before it. */
function keyBlocks(text: string): (readonly [from: number, to: number | null])[] {
  const begin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
  const blocks: (readonly [number, number | null])[] = [];
  for (let match = begin.exec(text); match !== null; match = begin.exec(text)) {
    const end = endOfKeyBlock(text, begin.lastIndex);
    blocks.push([match.index, end === -1 ? null : end]);
    if (end === -1) break;
    begin.lastIndex = end;
  }
  return blocks;
}

function endOfKeyBlock(text: string, from = 0): number {
  const end = text.indexOf("-----END ", from);
  const dashes = end === -1 ? -1 : text.indexOf("-----", end + "-----END ".length);
  return dashes === -1 ? -1 : dashes + "-----".length;
}

const LABELLED: RedactionStep = {
  clean(text) {
    let out = "";
    let copied = 0;
    for (const { from, to, secret } of labelled(text)) {
      if (!secret) continue;
      out += text.slice(copied, from) + MARKER;
      copied = to;
    }
    return out + text.slice(copied);
  },
  openFrom(text) {
    let open = startOf(BEGUN_LABEL, text);
    for (const { label, to, open: unfinished } of [...labelled(text)].toReversed())
      if (unfinished || to > open) open = Math.min(open, label);
    return open;
  },
  // No value runs over the end of its line.
  closesAt: (text) => text.indexOf("\n"),
};

interface Labelled {
  /** Where the label starts. */
  readonly label: number;
  readonly from: number;
  readonly to: number;
  readonly secret: boolean;
  /** More text may change it. */
  readonly open: boolean;
}

function* labelled(text: string): Generator<Labelled> {
  const labels = new RegExp(LABELS);
  for (let label = labels.exec(text); label !== null; label = labels.exec(text)) {
    const end = labels.lastIndex;
    ASSIGNMENT.lastIndex = end;
    if (ASSIGNMENT.exec(text) === null) {
      yield {
        label: label.index,
        from: end,
        to: end,
        secret: false,
        open: reachesEnd(BEGUN_ASSIGNMENT, text, end),
      };
      continue;
    }
    const start = ASSIGNMENT.lastIndex;
    const [from, to] = valueAt(text, start, label[2] !== undefined);
    const shortest = label[3] === undefined ? SHORTEST_PASSWORD : SHORTEST_TOKEN;
    const secret = to - from >= shortest;
    const open = to === text.length || reachesEnd(BEGUN_VALUE, text, start);
    yield { label: label.index, from, to, secret, open };
    if (secret) labels.lastIndex = to;
  }
}

function reachesEnd(begun: RegExp, text: string, from: number): boolean {
  begun.lastIndex = from;
  return begun.test(text);
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

/** What a filter consists of, in the order in which it is applied. */
export function redactionSteps(secrets: readonly string[]): readonly RedactionStep[] {
  return [knownSecrets(secrets), KEY_BLOCKS, URLS, LABELLED, WORDS];
}
