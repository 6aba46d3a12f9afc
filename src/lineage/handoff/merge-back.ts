/** The delta of a merge-back (C7.3, C7.6, C7.7): what the fork has done since its point, and what both sides have changed. */
import { holdsOrdinal, type OrdinalRange } from "../../protocol/ordinals.ts";
import { buildHandoff } from "./build.ts";
import { gather } from "./gather.ts";
import type { HandoffBuild, HandoffInput, HandoffSegment } from "./input.ts";
import { fileChanges } from "./tool-facts.ts";

export type MergeBackInput = Omit<HandoffInput, "purpose" | "extent" | "segments" | "conflicts"> & {
  /** The fork's own items and runs, from its point to the source point. */
  readonly fork: HandoffSegment;
  /** Its runs that an earlier merge-back has delivered to the same provider thread; they are not told again. */
  readonly delivered: readonly OrdinalRange[];
  /** The target's own items and runs since the base. */
  readonly target: HandoffSegment;
};

/** Files of one side that are compared with the other's; beyond them a conflict may go unseen. */
const COMPARED = 10_000;

/** `empty` where everything was delivered already. */
export function mergeBackText({ fork, delivered, target, ...given }: MergeBackInput): HandoffBuild {
  const runs = fork.runs.filter(({ ordinal }) => !holdsOrdinal(delivered, ordinal));
  const changedThere = new Set(changedPaths(target, given));
  const conflicts = changedPaths({ ...fork, runs }, given).filter((path) => changedThere.has(path));
  return buildHandoff({
    ...given,
    purpose: "merge_back",
    extent: "delta",
    segments: [{ ...fork, runs }],
    conflicts,
  });
}

function changedPaths(
  segment: HandoffSegment,
  { effects, workspace }: Pick<HandoffInput, "effects" | "workspace">,
): readonly string[] {
  const { calls } = gather({ segments: [segment], purpose: "merge_back" });
  const changes = fileChanges(calls, { effects, workspace, most: COMPARED });
  return changes.map(({ path }) => path).toSorted();
}
