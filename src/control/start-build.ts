/**
 * The texts of a start, built within one budget (lineage C6.7): each has its own cap, and all of them share what the window
 * leaves and what their provider recommends.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { HandoffId, TransferId } from "../protocol/ids.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import { byteLength } from "../platform/text.ts";
import { shareOut, type Size } from "../lineage/handoff/budget.ts";
import type { BuiltHandoff, HandoffBuild, SummaryOutcome } from "../lineage/handoff/input.ts";
import {
  summarise,
  type ChooseSummariser,
  type SummaryMaterial,
  summaryMaterial,
} from "../lineage/handoff/summarise.ts";
import type { StartMemory } from "./start-facts.ts";
import type { StartText } from "./start-request.ts";
import type { Planned } from "./start-run.ts";

/** A text that is ready to be stored; null where there was nothing to tell. */
export interface BuiltText {
  readonly transferId: TransferId | null;
  readonly built: BuiltHandoff | null;
  /** Items that the thread begins with from then on. */
  readonly inherits: readonly ItemBody[];
}

/** There was no room for a text; the next plan knows. */
export interface Untold {
  readonly teaches: Partial<StartMemory>;
}

const NO_MATERIAL: SummaryMaterial = { dialogue: [], failures: [], files: [] };

/** @throws RejectedError `HANDOFF_BUDGET_TOO_SMALL` where there is no other way. */
export async function buildTexts(
  choose: ChooseSummariser,
  planned: Planned,
  signal: AbortSignal,
): Promise<readonly BuiltText[] | Untold> {
  const { texts } = planned;
  const summaries: SummaryOutcome[] = [];
  for (const { mode, told, left } of texts) {
    const summariser = mode === "recent" ? null : await choose(left ?? null);
    const material = mode === "recent" ? NO_MATERIAL : summaryMaterial(told);
    summaries.push(await summarise({ mode, summariser, material, signal }));
  }
  const builds = withinOne(texts, summaries);
  for (const [at, build] of builds.entries()) {
    if (build.kind !== "failed") continue;
    const teaches = at === 0 ? otherWay(planned) : null;
    if (teaches !== null) return { teaches };
    const { limit, unit } = build.budget;
    throw new RejectedError(
      build.code,
      `not one message fits into a handoff of ${limit} ${unit}; raise the budget, or choose a model with a larger window.`,
      { limit, unit },
    );
  }
  return builds.map((build, at) => {
    const { transferId, inherit } = texts[at]!;
    const built = build.kind === "built" ? build : null;
    return { transferId, built, inherits: built === null ? [] : (inherit?.(built) ?? []) };
  });
}

/**
 * As each would be alone, as far as they fit together; else each by its share, and one that is no use so by its wish. What a user
 * has written is never cut: the others share what it leaves, and where that is of no use to them they go beyond it.
 */
function withinOne(
  texts: readonly StartText[],
  summaries: readonly SummaryOutcome[],
): readonly HandoffBuild[] {
  const alone = inTurn(texts, summaries, () => undefined);
  const [first] = texts;
  if (first === undefined || alone.some(({ kind }) => kind === "failed")) return alone;
  const { shared } = first;
  const wants = alone.map(sizeOf);
  const must = new Set([...alone.keys()].filter((at) => isOwnWords(alone[at]!)));
  const mostMust = texts.length - (must.size === 0 ? 1 : 0);
  for (;;) {
    const shares = sharesOf(wants, shared, must);
    if (texts.length === 1 || shares.every((share, at) => isWhole(share, wants[at]!))) return alone;
    const builds = inTurn(texts, summaries, (at, taken) =>
      // One that keeps all it wants may still be told more, where the ones before tell less than they would.
      isWhole(shares[at]!, wants[at]!) ? leftOf(shared, taken, shares.slice(at + 1), wants[at]!) : shares[at],
    );
    const failed = builds.findIndex(({ kind }, at) => kind === "failed" && !must.has(at));
    if (failed === -1 || must.size === mostMust) return builds;
    must.add(failed);
  }
}

function sharesOf(wants: readonly Size[], shared: Size, must: ReadonlySet<number>): readonly Size[] {
  const of = (unit: keyof Size) =>
    shareOut(
      wants.map((want) => want[unit]),
      shared[unit],
      must,
    );
  const chars = of("chars");
  return of("bytes").map((bytes, at) => ({ bytes, chars: chars[at]! }));
}

function isWhole(share: Size, want: Size): boolean {
  return share.bytes >= want.bytes && share.chars >= want.chars;
}

function isOwnWords(build: HandoffBuild): boolean {
  return build.kind === "built" && build.about.strategy === "manual_context";
}

function leftOf(shared: Size, taken: readonly Size[], kept: readonly Size[], least: Size): Size {
  const left = (unit: keyof Size) =>
    Math.max(
      least[unit],
      [...taken, ...kept].reduce((sum, one) => sum - one[unit], shared[unit]),
    );
  return { bytes: left("bytes"), chars: left("chars") };
}

/** One after the other: what was told by the first is not told again by the next. */
function inTurn(
  texts: readonly StartText[],
  summaries: readonly SummaryOutcome[],
  room: (at: number, taken: readonly Size[]) => Size | undefined,
): readonly HandoffBuild[] {
  const told = new Set<HandoffId>();
  const taken: Size[] = [];
  return texts.map((text, at) => {
    const most = room(at, taken);
    const build = text.build(summaries[at]!, { told, ...(most === undefined ? {} : { most }) });
    if (build.kind === "built") for (const id of build.about.payload.mergeBackIds ?? []) told.add(id);
    taken.push(sizeOf(build));
    return build;
  });
}

function sizeOf(build: HandoffBuild): Size {
  return build.kind === "built"
    ? { bytes: byteLength(build.text), chars: build.text.length }
    : { bytes: 0, chars: 0 };
}

/** What there is instead of telling a base by a text for which there is no room; null where there is nothing. */
function otherWay({ plan: { base }, facts }: Planned): Partial<StartMemory> | null {
  if (base.kind !== "handoff") return null;
  if (base.coverage === "delta") return facts.target.deltaFits === null ? { deltaFits: false } : null;
  const onlyFull = base.into === "new" && base.staleness.join() === "context_full";
  return onlyFull ? { goesOnFull: true } : null;
}
