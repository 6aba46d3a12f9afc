/** What holds of any life of switches and rollbacks. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { covered, gapOf, lastOrdinal } from "../../../src/lineage/coverage.ts";
import type { NamedThread } from "../../../src/lineage/native-turns.ts";
import { planRollback } from "../../../src/lineage/rollback-plan.ts";
import { resolveStartContext } from "../../../src/lineage/start-context.ts";
import { addOrdinal, countOrdinals, holdsOrdinal, overlap, unite } from "../../../src/protocol/ordinals.ts";
import type { HandoffRecord } from "../../../src/protocol/transfer.ts";
import {
  capabilities,
  farThread,
  handoff,
  nativeRef,
  providerThread,
  startFacts,
  thread,
} from "./records.ts";
import { facts, to, unable } from "./rollback-records.ts";

/** Runs a thread forward as the acceptance of runs does, with switches and rollbacks between. */
test("C4.5 C9.4 C9.5 law: through switches and rollbacks, who runs next is told everything that stays, once, and nothing that was taken back", () => {
  const move = fc.oneof(
    fc.record({ kind: fc.constant("run" as const), far: fc.boolean() }),
    fc.record({ kind: fc.constant("back" as const), pick: fc.nat(20), able: fc.boolean() }),
  );
  fc.assert(
    fc.property(fc.boolean(), fc.array(move, { maxLength: 25 }), (ours, moves) => {
      let runs: { providerThreadId: NamedThread["id"] }[] = [];
      let rolledBack = facts().reader.rolledBack;
      let records: NamedThread[] = [];
      let handoffs: HandoffRecord[] = [];
      let active: NamedThread["id"] | null = null;
      /** What is really in each provider's conversation: runs by turn, those it was told of included. */
      const minds = new Map<string, { turn: number; runs: number[] }[]>();
      for (const what of moves) {
        if (what.kind === "run") {
          const ordinal = runs.length + 1;
          const target = what.far ? { provider: "far", instanceId: "far-1", driver: "far" } : {};
          const state = { ordinal, rolledBack, voided: [] };
          const { base } = resolveStartContext(
            startFacts({ ...state, providerThreads: records, handoffs, target }),
          );
          if (base.kind !== "none" && base.kind !== "handoff") return expect.unreachable(base.kind);
          const id = base.providerThreadId ?? (`pth_${records.length}` as const);
          const fresh = (what.far ? farThread : providerThread)(
            String(records.length),
            [],
            ours ? { nativeThreadRef: null } : {},
          );
          const record = records.find((one) => one.id === id) ?? fresh;
          const told = base.kind === "handoff" ? base.runs : [];
          const mine = handoff(String(handoffs.length), told, { targetRunId: `run_${ordinal}` });
          if (base.kind === "handoff") handoffs.push(mine);
          records = [
            ...records.filter((one) => one.id !== id),
            {
              ...record,
              nativeRunOrdinals: addOrdinal(record.nativeRunOrdinals, ordinal),
              turns: [...record.turns, { ordinal, ref: nativeRef(`turn-${ordinal}`) }],
              handoffIds: base.kind === "handoff" ? [...record.handoffIds, mine.id] : record.handoffIds,
            },
          ];
          const mind = minds.get(id) ?? [];
          minds.set(id, mind);
          const heard = [
            ordinal,
            ...Array.from({ length: ordinal - 1 }, (_, at) => at + 1).filter((run) =>
              holdsOrdinal(told, run),
            ),
          ];
          // A delta tells nothing twice.
          if (base.kind === "handoff" && base.coverage === "delta") {
            expect(mind.flatMap((turn) => turn.runs).filter((run) => holdsOrdinal(told, run))).toEqual([]);
          }
          mind.push({ turn: ordinal, runs: heard });
          const known = mind.flatMap((turn) => turn.runs);
          // The provider's own conversation holds every run that stays, and none that was taken back.
          const stays = Array.from({ length: ordinal }, (_, at) => at + 1).filter(
            (run) => !holdsOrdinal(rolledBack, run),
          );
          expect([...new Set(known)].toSorted((a, b) => a - b)).toEqual(stays);
          runs = [...runs, { providerThreadId: id }];
          active = id;
          continue;
        }
        const stay = Array.from({ length: runs.length }, (_, at) => at + 1).filter(
          (run) => !holdsOrdinal(rolledBack, run),
        );
        const ordinal = [0, ...stay][what.pick % (stay.length + 1)]!;
        const plan = planRollback(
          facts({
            reader: thread(runs, { rolledBack }),
            request: to(ordinal),
            activeProviderThreadId: active,
            capabilities: what.able ? capabilities() : unable,
            loop: ours ? "ours" : "theirs",
            providerThreads: records,
            handoffs,
            revision: runs.length,
          }),
        );
        expect(overlap(plan.rolledBack, rolledBack)).toBe(false);
        rolledBack = unite(rolledBack, plan.rolledBack);
        expect(countOrdinals(rolledBack)).toBe(runs.length - stay.filter((run) => run <= ordinal).length);
        handoffs = handoffs.map((one) =>
          plan.handoffs.includes(one.id) ? { ...one, status: "superseded" } : one,
        );
        records = records.map((record): NamedThread => {
          const step = plan.providerThreads.find(({ id }) => id === record.id)!;
          if (step.action === "untouched") return record;
          if (step.action === "divergent") return { ...record, continuity: "divergent" };
          const last = lastOrdinal(step.nativeRunOrdinals);
          minds.set(
            record.id,
            minds.get(record.id)!.filter(({ turn }) => turn <= last),
          );
          const { nativeRunOrdinals, handoffIds } = step;
          const turns = record.turns.filter(({ ordinal }) => holdsOrdinal(nativeRunOrdinals, ordinal));
          return { ...record, nativeRunOrdinals, turns, handoffIds };
        });
        active = plan.activeProviderThreadId;
        for (const record of records) {
          if (record.continuity === "divergent") continue;
          expect(overlap(covered(record, handoffs), rolledBack)).toBe(false);
          // What the records say that it knows is what is in its conversation.
          const known = new Set((minds.get(record.id) ?? []).flatMap((turn) => turn.runs));
          const missing = gapOf({ ordinal: runs.length + 1, rolledBack, voided: [] }, record, handoffs);
          for (const run of stay) {
            if (!holdsOrdinal(rolledBack, run)) expect(holdsOrdinal(missing, run)).toBe(!known.has(run));
          }
        }
      }
    }),
    { numRuns: 300 },
  );
});
