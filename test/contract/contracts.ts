/**
 * The manifest of contracts: every behaviour that has an id, as data. `coverage.test.ts` holds it against the
 * titles of the tests: an id without a test carries its reason, a test without an id's entry fails.
 */
import { accepted } from "./manifest/acceptance.ts";
import { type Contract, type UpstreamRows, upstreamTest } from "./manifest/entry.ts";
import { lineageForks } from "./manifest/lineage-forks.ts";
import { lineageFound } from "./manifest/lineage-found.ts";
import { lineageSwitching } from "./manifest/lineage-switching.ts";
import { lineageThreads } from "./manifest/lineage-threads.ts";
import { lineageTransfers } from "./manifest/lineage-transfers.ts";
import { limits } from "./manifest/limits.ts";
import { mailbox } from "./manifest/mailbox.ts";
import { observed } from "./manifest/reference.ts";
import { running } from "./manifest/running.ts";
import { spawning } from "./manifest/spawning.ts";
import { stopping } from "./manifest/stopping.ts";
import { surroundings } from "./manifest/surroundings.ts";
import { upstreamControl } from "./manifest/upstream-control.ts";
import { upstreamTools } from "./manifest/upstream-tools.ts";
import { waiting } from "./manifest/waiting.ts";
import { work } from "./manifest/work.ts";

/** How many ids may be deferred. It only falls: whoever tests one lowers it. */
export const deferredCeiling = 0;

/** Every contract, in the order of its family. */
export const contracts: readonly Contract[] = [
  ...spawning,
  ...mailbox,
  ...work,
  ...waiting,
  ...running,
  ...stopping,
  ...limits,
  ...surroundings,
  ...accepted,
  ...observed,
  ...lineageTransfers,
  ...lineageThreads,
  ...lineageForks,
  ...lineageSwitching,
  ...lineageFound,
  ...[...upstreamControl, ...upstreamTools].flatMap(expand),
];

function expand({ rows, ...shared }: UpstreamRows): Contract[] {
  return rows
    .flatMap((row) =>
      typeof row === "number" ? [row] : Array.from({ length: row[1] - row[0] + 1 }, (_, i) => row[0] + i),
    )
    .map((row) => ({ id: `U-${row}`, source: upstreamTest, ...shared }));
}
