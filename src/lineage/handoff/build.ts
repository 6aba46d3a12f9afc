/**
 * The one builder of texts that carry context (C6.1): handoffs of a switch, deltas of a merge-back, seeds of forks and
 * context of subagents. Pure: the same input gives the same text.
 *
 * - H1 Everything that is sent is charged to the budget, the frame first. What is pinned may take half of the room, what
 *   forks have brought back half of what that leaves of it, what
 *   follows from records half of what is left then, the dialogue the rest.
 * - H2 Where no message fits beside the pins, messages come first; where none fits even so, nothing is built (C6.9).
 * - H3 The text is redacted piece by piece before anything is measured or cut, and once more as a whole; redaction never
 *   lets a text grow.
 */
import type { HandoffId } from "../../protocol/ids.ts";
import type { HandoffKind, HandoffStrategy } from "../../protocol/transfer.ts";
import { Meter, usedOf } from "./budget.ts";
import { DialogueSelection } from "./dialogue.ts";
import { footer, heading, type LeftOut, longestFooter, ordinalsOf, outcomeLines, rangesOf } from "./frame.ts";
import { gather, type Gathered } from "./gather.ts";
import type { HandoffBuild, HandoffInput, HandoffSegment } from "./input.ts";
import { derivedSections, type Line, pinnedSections, type Section } from "./sections.ts";
import { clean, head } from "./words.ts";

const STRATEGIES: Readonly<Record<HandoffInput["extent"], readonly [HandoffKind, HandoffStrategy]>> = {
  full: ["portable_context", "full_thread_summary"],
  delta: ["delta_context", "delta_since_target_last_seen"],
  checkpoint: ["checkpoint_context", "checkpoint_summary"],
};

/** Parts of the room that is left at that time. */
const SHARES = { outcomes: 1 / 8, pinned: 1 / 2, derived: 1 / 2, section: 1 / 2, summary: 1 / 2 };

/** Sections that are short and must not miss come before those that can be long. */
const FIRST: readonly Section["name"][] = ["requests", "conflicts", "plan", "checkpoint", "failures"];

export function buildHandoff(given: HandoffInput): HandoffBuild {
  const segments = withinDepth(given.segments, given.limits.ancestorDepth);
  const input: HandoffInput = { ...given, segments };
  const gathered = gather(input);
  const ancestors = given.segments.length - segments.length + (given.further ?? 0);
  const source: Source = { input, gathered, ancestors, ...sectionsOf(input, gathered) };
  if (!tellsAnything(source)) return { kind: "empty" };
  const coveredRuns = ordinalsOf(segments.at(-1) ?? { runs: [] });
  const composed = compose(source, "pins_first") ?? compose(source, "messages_first");
  if (composed === null)
    return { kind: "failed", code: "HANDOFF_BUDGET_TOO_SMALL", budget: given.budget, coveredRuns };

  const text = input.redact(composed.text);
  const [kind, strategy] = STRATEGIES[input.extent];
  const first = coveredRuns[0];
  const last = coveredRuns.at(-1);
  const { summary, snapshot, budget } = input;
  const summarised = composed.sections.includes("summary");
  return {
    kind: "built",
    text,
    about: {
      kind,
      strategy,
      coveredRuns,
      coveredRunOrdinals: first === undefined || last === undefined ? null : { from: first[0], to: last[1] },
      payload: {
        sections: composed.sections,
        items: composed.items,
        omittedItemIds: composed.left.ids,
        checkpointRef: input.checkpoint?.record.id ?? null,
        snapshotRef: snapshot === null ? null : { revision: snapshot.revision, digest: snapshot.digest },
        ...(composed.whole.length === 0 ? {} : { mergeBackIds: composed.whole }),
      },
      budget: { limit: budget.limit, used: usedOf(text, budget), unit: budget.unit },
      createdByProvider: summarised && summary.kind === "text" ? summary.author : null,
    },
    coveredRanges: heldRanges(insideOf(input, gathered), composed.left.ids),
    pinned: input.redact(composed.pinned),
    mode: summarised ? "summary_plus_recent" : "recent",
  };
}

/** The nearest ancestors; a thread that comes again further up ends the chain (C5.22). */
function withinDepth(chain: readonly HandoffSegment[], depth: number): readonly HandoffSegment[] {
  const kept: HandoffSegment[] = [];
  const seen = new Set<string>();
  for (const segment of chain.toReversed()) {
    if (kept.length > depth || seen.has(segment.threadId)) break;
    seen.add(segment.threadId);
    kept.push(segment);
  }
  return kept.toReversed();
}

interface Source {
  readonly input: HandoffInput;
  readonly gathered: Gathered;
  readonly ancestors: number;
  readonly pinned: readonly Section[];
  readonly derived: readonly Section[];
}

/** A subagent is told what was pinned and what was said, and nothing else (SPN-5). */
function sectionsOf(input: HandoffInput, gathered: Gathered): Pick<Source, "pinned" | "derived"> {
  if (input.purpose === "subagent_spawn") return { pinned: pinnedSections(input), derived: [] };
  return { pinned: pinnedSections(input), derived: derivedSections(input, gathered) };
}

/** A goal alone is nothing to tell, and of a delta neither is what stands apart from its runs; that one has failed is. */
function tellsAnything({ input, gathered, pinned, derived }: Source): boolean {
  if (gathered.dialogue.length > 0) return true;
  if (input.purpose === "subagent_spawn") return pinned.length > 0;
  if (ordinalsOf(input.segments.at(-1) ?? { runs: [] }).length > 0) return true;
  const pins = pinned.some(({ name, lines }) => name !== "goal_and_constraints" || lines.length > 1);
  return input.extent !== "delta" && (pins || derived.length > 0);
}

interface Composed {
  readonly text: string;
  /** The pinned sections in it. */
  readonly pinned: string;
  readonly whole: readonly HandoffId[];
  readonly sections: readonly string[];
  readonly items: number;
  readonly left: LeftOut;
}

/** Null where no message fits, or nothing at all. */
function compose(source: Source, order: "pins_first" | "messages_first"): Composed | null {
  const { input, gathered, pinned, derived } = source;
  const meter = new Meter(input.budget.maxBytes, input.budget.maxChars);
  const top = heading(input);
  const frame = top + DIALOGUE_HEADING + longestFooter(input);
  if (!meter.take(frame)) return null;

  const dialogue = new DialogueSelection(input, gathered.dialogue);
  if (order === "messages_first") dialogue.takeLandmarks(meter);
  const outcomes = takeLines(OUTCOMES_HEADING, outcomesOf(input), meter.share(SHARES.outcomes));
  const taken = new Map<string, Taken>();
  const pinnedRoom = meter.share(SHARES.pinned);
  for (const section of pinned) {
    // What forks have brought back leaves room for messages, however long it is.
    const room = section.name === "merge_backs" ? pinnedRoom.share(SHARES.section) : pinnedRoom;
    taken.set(section.name, takeSection(section, room));
  }
  dialogue.takeLandmarks(meter);
  const derivedRoom = meter.share(SHARES.derived);
  for (const section of byUrgency(derived)) {
    taken.set(section.name, takeSection(section, derivedRoom.share(SHARES.section)));
  }
  const summary = takeSummary(input, meter.share(SHARES.summary));
  dialogue.takeNewest(meter);

  const parts = [...pinned, ...derived].map(({ name }) => ({ name, ...taken.get(name)! }));
  const present = parts.filter(({ text }) => text !== "");
  if (gathered.dialogue.length > 0 ? dialogue.size === 0 : present.length === 0 && outcomes.text === "") {
    return null;
  }
  const left = leftOut(
    source,
    dialogue,
    [...parts, outcomes].reduce((sum, one) => sum + one.dropped, 0),
  );
  const said = dialogue.size === 0 ? "" : DIALOGUE_HEADING + dialogue.text();
  const body = present.map(({ text }) => text).join("");
  const sections: string[] = present.map(({ name }) => name);
  if (summary !== "") sections.push("summary");
  if (said !== "") sections.push("dialogue");
  const text = top + outcomes.text + body + summary + said + footer(left, input.readTool);
  const pins = pinned.map(({ name }) => taken.get(name)!.text).join("");
  const whole = parts.flatMap((part) => part.whole);
  return { text, pinned: pins, whole, sections, items: dialogue.size, left };
}

const OUTCOMES_HEADING = "\n== How the runs ended ==\n";
const DIALOGUE_HEADING = "\n== Recent dialogue ==\n";
const SUMMARY_HEADING = "\n== Summary of the dialogue ==\n";

function outcomesOf(input: HandoffInput): readonly Line[] {
  return input.purpose === "subagent_spawn" ? [] : outcomeLines(input).map((text) => ({ text }));
}

function byUrgency(sections: readonly Section[]): readonly Section[] {
  const rank = ({ name }: Section): number => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return sections.toSorted((a, b) => rank(a) - rank(b));
}

interface Taken {
  readonly text: string;
  readonly dropped: number;
  /** Merge-backs that are in it whole. */
  readonly whole: readonly HandoffId[];
}

function takeSection({ title, lines, ordered }: Section, meter: Meter): Taken {
  return takeLines(`\n== ${title} ==\n`, lines, meter, ordered);
}

/** Lines as far as they fit, from the first; then in the order in which things happened. */
function takeLines(title: string, lines: readonly Line[], meter: Meter, ordered = false): Taken {
  const kept: string[] = [];
  const whole: HandoffId[] = [];
  let prefix = title;
  for (const { text, short, mergeBack } of lines) {
    const line = [text, short].find((form) => form !== undefined && meter.take(`${prefix}- ${form}\n`));
    if (line === undefined) continue;
    prefix = "";
    kept.push(`- ${line}\n`);
    if (mergeBack !== undefined && line === text) whole.push(mergeBack);
  }
  const text = (ordered ? kept : kept.toReversed()).join("");
  return { text: text === "" ? "" : title + text, dropped: lines.length - kept.length, whole };
}

/** A summary is the one text that is cut rather than left out. */
function takeSummary({ mode, summary, redact, limits }: HandoffInput, meter: Meter): string {
  if (mode === "recent" || summary.kind === "none") return "";
  const text = clean(summary.text, redact).trim();
  if (text === "") return "";
  for (const room of [limits.historyTextBytes, limits.historyTailBytes, limits.historySummaryBytes]) {
    const section = `${SUMMARY_HEADING}${head(text, room)}\n`;
    if (meter.take(section)) return section;
  }
  return "";
}

function leftOut(
  { input, gathered, ancestors }: Source,
  dialogue: DialogueSelection,
  lines: number,
): LeftOut {
  const own = input.segments.length - 1;
  const ids: number[] = [];
  for (let at = gathered.dialogue.length - 1; at >= 0; at -= 1) {
    const utterance = gathered.dialogue[at]!;
    if (utterance.segment === own && !dialogue.has(at)) ids.push(utterance.index);
  }
  return { messages: gathered.dialogue.length - dialogue.size, ids, lines, ancestors };
}

/** Of a run, a subagent is told no more than what was said in it. */
function insideOf({ purpose, segments }: HandoffInput, { inside, dialogue }: Gathered): readonly number[] {
  if (purpose !== "subagent_spawn") return inside;
  return dialogue.filter(({ segment }) => segment === segments.length - 1).map(({ index }) => index);
}

/** Items of the source that the text tells of, as ranges `[from, to)`. */
function heldRanges(inside: readonly number[], omitted: readonly number[]): (readonly [number, number])[] {
  const out = new Set(omitted);
  const held = inside.filter((index) => !out.has(index)).toReversed();
  return rangesOf(held).map(([from, to]) => [from, to + 1] as const);
}
