/** Lineage and transfers of context: rows S0-* of the lineage contract. */
import { type Contract, lineageRow } from "./entry.ts";

export const lineageTransfers: readonly Contract[] = [
  {
    id: "S0-1",
    behaviour:
      "All four are ContextTransfer rows with relationship type + source point + optional resolution, one schema.",
    source: lineageRow,
  },
  {
    id: "S0-2",
    behaviour:
      "A thread with 500 runs: cost does not depend on history size; no summariser, no adapter call.",
    source: lineageRow,
  },
  {
    id: "S0-3",
    behaviour:
      "The user forks it: a new idle thread exists; source document, snapshot chain and provider threads are byte-identical.",
    source: lineageRow,
  },
  {
    id: "S0-4",
    behaviour:
      "A fresh fork; its record is read: no provider, no model binding, activeProviderThreadId null, no executions.",
    source: lineageRow,
  },
  {
    id: "S0-5",
    behaviour:
      "A fresh fork: the run and provider thread are created for P/M; the choice was not needed before.",
    source: lineageRow,
  },
  {
    id: "S0-6",
    behaviour:
      "Fork of a Codex-like run, strong refs; first run uses the same provider: adapter forkThread is called once and no handoff exists.",
    source: lineageRow,
  },
  {
    id: "S0-7",
    behaviour:
      "Same fork; first run uses another provider: a portable handoff is built at that dispatch, forkThread not called.",
    source: lineageRow,
  },
  {
    id: "S0-8",
    behaviour:
      "Thread on provider A; next message uses provider B: thread count unchanged; one provider_handoff transfer.",
    source: lineageRow,
  },
  {
    id: "S0-9",
    behaviour:
      "Runs 1to5 on A; run 6 on B: transfer resolved from A's state, new B thread started with handoff followed by the user message.",
    source: lineageRow,
  },
  {
    id: "S0-10",
    behaviour:
      "Mixed-provider thread; canonical history is read: it has every run; each provider thread is only a handle with explicit coverage.",
    source: lineageRow,
  },
  {
    id: "S0-11",
    behaviour:
      "Fork from S with runs F1toFn: handoff covers exactly S (exclusive) to the fork's latest stable point.",
    source: lineageRow,
  },
  {
    id: "S0-12",
    behaviour:
      "Pending merge-back; source thread dispatches: delta text precedes that user message in the same provider turn.",
    source: lineageRow,
  },
  {
    id: "S0-13",
    behaviour:
      "Source on A, fork on B: source still on A and its active provider thread unchanged; transfer goes fork to source.",
    source: lineageRow,
  },
  {
    id: "S0-14",
    behaviour:
      "Provider emits native child lifecycle; events are ingested: native child ref recorded; app issues no spawn of its own.",
    source: lineageRow,
  },
  {
    id: "S0-15",
    behaviour:
      "Native child: a child execution node exists; a child thread too when the provider exposes a child conversation id.",
    source: lineageRow,
  },
  {
    id: "S0-16",
    behaviour:
      "Parent run active on A: child thread + run created, relationship to parent stored (subagent_spawn).",
    source: lineageRow,
  },
  {
    id: "S0-17",
    behaviour:
      "That child finishes; finalisation runs: a subagent_result transfer child to parent exists with the result text.",
    source: lineageRow,
  },
  {
    id: "S0-18",
    behaviour:
      "One user fork and one agent child; graph rows are compared: same shape; they differ in createdBy and lifecycle policy only.",
    source: lineageRow,
  },
  {
    id: "S0-19",
    behaviour:
      "The transfer schema; a type outside the five is written: rejected (THREAD_INVARIANT_VIOLATION).",
    source: lineageRow,
  },
  {
    id: "S0-20",
    behaviour:
      "Provider without native fork; user forks and runs: relationship is still fork; resolution is portable.",
    source: lineageRow,
  },
  {
    id: "S0-21",
    behaviour:
      "Any transfer: it names thread and any of run, checkpoint, turn item, native thread/turn ref; unknown fields rejected.",
    source: lineageRow,
  },
  {
    id: "S0-22",
    behaviour:
      "Thread with an active run 3, completed 1to2: a completed run or checkpoint is taken, never run 3.",
    source: lineageRow,
  },
  {
    id: "S0-23",
    behaviour:
      "A created transfer; process restarts before first use: it is still there, pending, and resolvable.",
    source: lineageRow,
  },
  {
    id: "S0-24",
    behaviour:
      "Id, type, both threads, source point, nullable base/providers/resolution/consumedAt, status in the six, createdBy in.",
    source: lineageRow,
  },
  {
    id: "S0-25",
    behaviour:
      "Fork made at run 2, fork later at run F3; merge-back is created: basePoint = fork's source point (run 2), sourcePoint = F3.",
    source: lineageRow,
  },
  {
    id: "S0-26",
    behaviour: "Native transfer succeeds; handoffs are listed: none was created.",
    source: lineageRow,
  },
  {
    id: "S0-27",
    behaviour:
      "Native impossible; transfer is created but not used: still no handoff; it appears only at dispatch.",
    source: lineageRow,
  },
  {
    id: "S0-28",
    behaviour: "A handoff; kind is read: portable, delta or checkpoint context only.",
    source: lineageRow,
  },
  {
    id: "S0-29",
    behaviour:
      "Text, covered ranges, source items and omissions are readable, and the provider prompt contains that text verbatim.",
    source: lineageRow,
  },
  {
    id: "S0-30",
    behaviour: "Each resolution strategy; record lacks its reference (native ref or handoff id): rejected.",
    source: lineageRow,
  },
  {
    id: "S0-31",
    behaviour: "Same provider, weak native ref; first run on fork: portable, not native.",
    source: lineageRow,
  },
  {
    id: "S0-32",
    behaviour: "Same provider, strong ref, adapter flag off; first run on fork: portable, not native.",
    source: lineageRow,
  },
  {
    id: "S0-33",
    behaviour: "Cross-provider handoff or merge-back; resolved: a handoff record backs it.",
    source: lineageRow,
  },
  {
    id: "S0-34",
    behaviour: "Thread.fork; events are inspected: target thread created.",
    source: lineageRow,
  },
  {
    id: "S0-35",
    behaviour: "Thread.fork; events are inspected: relationship + transfer with status pending.",
    source: lineageRow,
  },
  {
    id: "S0-36",
    behaviour: "Thread.fork; adapter log is inspected: no session opened.",
    source: lineageRow,
  },
  {
    id: "S0-37",
    behaviour: "Thread.fork; adapter log is inspected: no provider thread, no turn.",
    source: lineageRow,
  },
  {
    id: "S0-38",
    behaviour: "Thread.fork; handoff store is inspected: nothing built.",
    source: lineageRow,
  },
  {
    id: "S0-39",
    behaviour:
      "Dispatch: order: find transfer to native or portable to create/resume provider thread to send context + user message.",
    source: lineageRow,
  },
  {
    id: "S0-40",
    behaviour: "100 forks never run; time passes: zero summaries, zero provider objects.",
    source: lineageRow,
  },
  {
    id: "S0-41",
    behaviour:
      "Any run start; call graph is traced: exactly one provider-neutral resolveStartContext with threadId, provider, message.",
    source: lineageRow,
  },
  {
    id: "S0-42",
    behaviour:
      "Pending transfers for thread X and run Y, others elsewhere; hook runs for X/Y: only those are considered.",
    source: lineageRow,
  },
  {
    id: "S0-43",
    behaviour: "Target provider covers everything; hook runs: plan none.",
    source: lineageRow,
  },
  {
    id: "S0-44",
    behaviour: "Same provider + native support; hook runs: native plan.",
    source: lineageRow,
  },
  {
    id: "S0-45",
    behaviour: "No native path; hook runs: portable plan with a handoff for this run.",
    source: lineageRow,
  },
  {
    id: "S0-46",
    behaviour: "Base and source points present; hook runs: delta plan covering only what lies between.",
    source: lineageRow,
  },
  {
    id: "S0-47",
    behaviour: "Provider mute; hook runs: explicit CONTEXT_UNSUPPORTED; zero adapter calls.",
    source: lineageRow,
  },
  {
    id: "S0-48",
    behaviour: "Orchestrator holds relation, source point, transfer, receipt.",
    source: lineageRow,
  },
  {
    id: "S0-49",
    behaviour:
      "Fork at that turn: one thread/fork with lastTurnId = that id, turn included, later turns absent, no rollback call.",
    source: lineageRow,
  },
  {
    id: "S0-50",
    behaviour: "Paginated history + native turn id; fork at an earlier turn: succeeds through lastTurnId.",
    source: lineageRow,
  },
  {
    id: "S0-51",
    behaviour:
      "Legacy history, no native turn id, 2 later terminal turns: fork of the head, then rollback of the fork by 2; source untouched.",
    source: lineageRow,
  },
  {
    id: "S0-52",
    behaviour:
      "Paginated fork result, no native turn id: explicit failure, no rollback request sent, orphan recorded for cleanup.",
    source: lineageRow,
  },
  {
    id: "S0-53",
    behaviour:
      "Adapter call is captured; fork at a point: input has neutral boundary + source turn history, no driver-specific field.",
    source: lineageRow,
  },
  {
    id: "S0-54",
    behaviour: "Legacy-history thread; checkpoint rollback: thread/rollback issued with the right count.",
    source: lineageRow,
  },
  {
    id: "S0-55",
    behaviour:
      "History mode probed first; explicit failure (or thread/revert if the adapter has it); thread/rollback never sent.",
    source: lineageRow,
  },
  {
    id: "S0-56",
    behaviour:
      "Paginated thread, adapter without revert; rollback demanded: ROLLBACK_NATIVE_UNSUPPORTED, state unchanged.",
    source: lineageRow,
  },
  {
    id: "S0-57",
    behaviour:
      "Any thread record: only parent, relationship, root; root chain consistent for forks of forks and subagents of forks.",
    source: lineageRow,
  },
  {
    id: "S0-58",
    behaviour:
      "A thread created by fork, switched, merged back, with a subagent: four separate rows; nothing of it on the thread record.",
    source: lineageRow,
  },
  {
    id: "S0-59",
    behaviour:
      "Completed-run checkpoint; explicit checkpoint; idle provider thread with known coverage; each is a fork source: accepted.",
    source: lineageRow,
  },
  {
    id: "S0-60",
    behaviour:
      "Run active; fork with latest_stable / fork of that run: previous completed checkpointed run / SOURCE_POINT_UNSTABLE.",
    source: lineageRow,
  },
  {
    id: "S0-61",
    behaviour: "Assistant message half streamed; fork of that message or run: refused; never a partial copy.",
    source: lineageRow,
  },
  {
    id: "S0-62",
    behaviour:
      "Codex-like to same, strong refs; first dispatch: transfer statuses in order: pending, resolved_native, consumed.",
    source: lineageRow,
  },
  {
    id: "S0-63",
    behaviour:
      "No native path; first dispatch: handoff appears then, transfer resolved_portable then consumed.",
    source: lineageRow,
  },
  {
    id: "S0-64",
    behaviour: "Source run still running; fork naming it or its checkpoint: rejected.",
    source: lineageRow,
  },
  {
    id: "S0-65",
    behaviour: "Runs 1 completed without checkpoint, 2 completed with, 3 failed; latest_stable: run 2.",
    source: lineageRow,
  },
  {
    id: "S0-66",
    behaviour:
      "Portable context used; records are read: transfer and handoff both present and linked both ways.",
    source: lineageRow,
  },
  {
    id: "S0-67",
    behaviour:
      "Provider switch; its transfer is read: source thread = target thread, target provider other than previously active.",
    source: lineageRow,
  },
  {
    id: "S0-68",
    behaviour:
      "Provider used in 1to5, others in 6to8; return at 9: transfer base = run 5, source = run 8, delta.",
    source: lineageRow,
  },
];
