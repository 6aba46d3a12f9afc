/** Why a provider thread is not gone on with. */
import { describe, expect, test } from "vitest";
import { forbidding, type StalenessFacts, stalenessOf } from "../../../src/lineage/staleness.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../../src/protocol/lineage-limits.ts";
import { STALENESS_SIGNALS, type StalenessSignal } from "../../../src/protocol/transfer.ts";
import { handoff, providerThread } from "./records.ts";

const fresh: StalenessFacts = {
  runs: { ordinal: 9, rolledBack: [], voided: [] },
  providerThread: providerThread("a", [[1, 5]]),
  handoffs: [],
  change: "apply_next_turn",
  resumeFailed: false,
  cleanContext: false,
  contextFull: false,
  deltaFits: null,
  limits: DEFAULT_LINEAGE_LIMITS,
};
const chain = Array.from({ length: 7 }, (_, at) => handoff(String(at), [[1, 1]]));
const chained = (count: number): Partial<StalenessFacts> => ({
  handoffs: chain,
  providerThread: providerThread("a", [[1, 5]], { handoffIds: chain.slice(0, count).map(({ id }) => id) }),
});
const at = (ordinal: number, rolledBack: StalenessFacts["runs"]["rolledBack"] = []) => ({
  runs: { ordinal, rolledBack, voided: [] },
});

describe("staleness", () => {
  test.for<[string, Partial<StalenessFacts>, readonly StalenessSignal[]]>([
    ["nothing holds for a fresh one", {}, []],
    ["S3-31 twenty runs elsewhere are not too many", at(26), []],
    ["S3-31 twenty-one are", at(27), ["off_provider_runs"]],
    ["runs that were rolled back do not count", at(27, [[20, 20]]), []],
    ["a void run does not count", { runs: { ordinal: 27, rolledBack: [], voided: [[26, 26]] } }, []],
    ["S3-32 six handoffs are not too many", chained(6), []],
    ["S3-32 seven are", chained(7), ["handoff_chain"]],
    ["a session that restarts goes on", { change: "restart_session" }, []],
    ["S3-33 settings that do not go together", { change: "handoff" }, ["incompatible_settings"]],
    ["S3-34 it could not be resumed", { resumeFailed: true }, ["resume_failed"]],
    [
      "S3-34 it could not be resumed in an earlier run",
      { providerThread: providerThread("a", [[1, 5]], { status: "error" }) },
      ["resume_failed"],
    ],
    [
      "S3-35 it tells of what was rolled back",
      { providerThread: providerThread("a", [[1, 5]], { continuity: "divergent" }) },
      ["divergent"],
    ],
    ["S3-36 a clean context is wanted", { cleanContext: true }, ["clean_context"]],
    ["it leaves no room for a run", { contextFull: true }, ["context_full"]],
    ["S3-37 a delta that fits", { deltaFits: true }, []],
    ["S3-37 a delta that does not", { deltaFits: false }, ["delta_too_large"]],
  ])("C10 %s", ([, facts, signals]) => {
    expect(stalenessOf({ ...fresh, ...facts })).toEqual(signals);
  });

  test("C10 tells all signals that hold, in their order", () => {
    const all = stalenessOf({
      ...fresh,
      ...at(40),
      change: "handoff",
      resumeFailed: true,
      cleanContext: true,
      contextFull: true,
      deltaFits: false,
      limits: { offProviderRuns: 0, handoffsHard: -1 },
      providerThread: providerThread("a", [[1, 5]], { continuity: "divergent" }),
    });
    expect(all).toEqual(STALENESS_SIGNALS);
    expect(forbidding(all)).toEqual([
      "incompatible_settings",
      "resume_failed",
      "divergent",
      "clean_context",
      "context_full",
    ]);
  });
});
