/** What memory knows of a run that goes on here. */
import type { RunId } from "../protocol/ids.ts";
import type { Grant } from "./dispatch.ts";
import type { LentPermit } from "./lent-permit.ts";
import type { RunClock } from "./run-clock.ts";
import type { Candidate } from "./tree.ts";

/** A run that is accepted or reserved and whose session is loaded. */
export interface ActiveRun {
  readonly runId: RunId;
  readonly candidate: Candidate;
  grant: Grant | null;
  /** While it is driven. */
  clock: RunClock | null;
  /** Calls from outside that wait in it, and how many of them wait for its permit. */
  readonly holds: Set<LentPermit>;
  returning: number;
  composed: boolean;
  drainedSeq: number;
}
