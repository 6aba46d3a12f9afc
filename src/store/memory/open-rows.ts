/** Names of what is under way in a tree, in memory; damaged rows are named as all others. */
import type { CommandRecord } from "../../protocol/command.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { RuntimeRequestRecord, WaitRecord } from "../../protocol/wait.ts";
import type { BackendTx } from "../backend.ts";
import type { OpenRow } from "../port.ts";
import type { Index } from "./table.ts";

/** By tree; of questions, by thread. */
export interface OpenIndexes {
  readonly openRuns: Index<RunRecord>;
  readonly openWaits: Index<WaitRecord>;
  readonly openRequests: Index<RuntimeRequestRecord>;
  readonly pending: Index<CommandRecord>;
}

export function openRows({
  openRuns,
  openWaits,
  openRequests,
  pending,
}: OpenIndexes): Pick<BackendTx, "openRows"> {
  return {
    openRows(tree): readonly OpenRow[] {
      const runs = openRuns.stored(tree);
      const requests = runs.flatMap(({ threadId }) => openRequests.stored(threadId));
      return [
        ...runs.map(({ id, threadId }) => ({ table: "runs" as const, id, threadId })),
        ...openWaits.stored(tree).map(({ id, threadId }) => ({ table: "waits" as const, id, threadId })),
        ...requests.map(({ id, threadId }) => ({ table: "requests" as const, id, threadId })),
        ...pending.stored(tree).map(({ id }) => ({ table: "commands" as const, id, threadId: tree })),
      ];
    },
  };
}
