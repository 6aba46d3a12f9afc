/** Rows found in code and by users: rows X-* of the lineage contract. */
import { type Contract, lineageRow } from "./entry.ts";

export const lineageFound: readonly Contract[] = [
  {
    id: "X-1",
    behaviour:
      "Provider start fails after planning; retry, or another run: same handoff still offered; coverage unchanged.",
    source: lineageRow,
  },
  {
    id: "X-2",
    behaviour: "Failed and interrupted runs in the gap; delta built: included with their status.",
    source: lineageRow,
  },
  {
    id: "X-3",
    behaviour: "Fork rolled back to its start; next run: inherited context is delivered again.",
    source: lineageRow,
  },
  {
    id: "X-4",
    behaviour:
      "Crash between native fork call and commit; restart: child adopted or orphan archived, no second native fork on retry.",
    source: lineageRow,
  },
  {
    id: "X-5",
    behaviour: "B cannot start; switch A to B: thread still bound to A and usable.",
    source: lineageRow,
  },
  {
    id: "X-6",
    behaviour: "Child ends without text / is killed; finalise: non-empty result with status; parent told.",
    source: lineageRow,
  },
  {
    id: "X-7",
    behaviour: "Finalise runs twice, or after restart; to: one result transfer.",
    source: lineageRow,
  },
  {
    id: "X-8",
    behaviour: "Two merge-backs of one fork; second consumed: items of the first not repeated.",
    source: lineageRow,
  },
  {
    id: "X-9",
    behaviour: "Snapshot keys with non-ASCII names, two locales; digest: identical.",
    source: lineageRow,
  },
  {
    id: "X-10",
    behaviour: "Lock directory without owner; next writer: obtains the lease after the stale time.",
    source: lineageRow,
    provedBy: ["REC-6"],
  },
  {
    id: "X-11",
    behaviour:
      "Fork, then the source continues and is rolled back; child reads history: exactly the state at the cut.",
    source: lineageRow,
  },
  {
    id: "X-12",
    behaviour: "Unsent draft, process restart; child reopened: draft present.",
    source: lineageRow,
  },
  {
    id: "X-13",
    behaviour: "Provider refuses rollback; to: error shown, nothing marked.",
    source: lineageRow,
  },
  {
    id: "X-14",
    behaviour: "A to B to A to B; fourth run: both provider threads resumed by their own native ids.",
    source: lineageRow,
  },
  {
    id: "X-15",
    behaviour: "Auth error in native fork, auto; fork: error surfaces, no replay.",
    source: lineageRow,
  },
  {
    id: "X-16",
    behaviour:
      "Same commandId twice; dispatch: one effect, same receipt; different payload to COMMAND_ID_CONFLICT.",
    source: lineageRow,
  },
];
