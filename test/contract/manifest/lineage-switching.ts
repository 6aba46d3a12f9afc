/** Switching between providers: rows S3-* of the lineage contract. */
import { type Contract, lineageRow } from "./entry.ts";

export const lineageSwitching: readonly Contract[] = [
  {
    id: "S3-1",
    behaviour:
      "One thread; runs on A, B, A: one thread, native handles of both kept, canonical history complete.",
    source: lineageRow,
  },
  {
    id: "S3-2",
    behaviour: "A switch; its transfer: source and target thread equal.",
    source: lineageRow,
  },
  {
    id: "S3-3",
    behaviour:
      "A used before, B since; return to A: A's old provider thread resumed + delta over the missed runs.",
    source: lineageRow,
  },
  {
    id: "S3-4",
    behaviour: "Resume of A fails; return to A: new provider thread + full summary.",
    source: lineageRow,
  },
  {
    id: "S3-5",
    behaviour: "Settings incompatible; return: new provider thread + full summary.",
    source: lineageRow,
  },
  {
    id: "S3-6",
    behaviour: "Delta judged poor (C10 limits); return: new provider thread + full summary.",
    source: lineageRow,
  },
  {
    id: "S3-7",
    behaviour:
      "Several returns; handoffs are compared: no run is summarised twice into the same provider thread.",
    source: lineageRow,
  },
  {
    id: "S3-8",
    behaviour: "Any cross-provider context; audit: a handoff record exists for it.",
    source: lineageRow,
  },
  {
    id: "S3-9",
    behaviour: "Runs 1to5 A, run 6 B; dispatch 6: H1 covers 1to5, L1 created, run 6 linked to L1 and H1.",
    source: lineageRow,
  },
  {
    id: "S3-10",
    behaviour: "Runs 7to8 B; dispatch: same L1, no handoff.",
    source: lineageRow,
  },
  {
    id: "S3-11",
    behaviour: "Run 9 A; dispatch: H2 covers 6to8, C1 resumed, run 9 linked to C1 and H2.",
    source: lineageRow,
  },
  {
    id: "S3-12",
    behaviour: "C1 after run 9; native transcript read: no B run in it, only the handoff text.",
    source: lineageRow,
  },
  {
    id: "S3-13",
    behaviour: "Resumable, small gap; strategy: never a full summary.",
    source: lineageRow,
  },
  {
    id: "S3-14",
    behaviour: "Nothing ran since A last took part; return to A: no handoff.",
    source: lineageRow,
  },
  {
    id: "S3-15",
    behaviour: "At least one run since; return to A: handoff mandatory, resume without it impossible.",
    source: lineageRow,
  },
  {
    id: "S3-16",
    behaviour:
      "Example above; coverage read: C1: native 1,2,3,4,5,9 + H2(6to8); L1: native 6,7,8 + H1(1to5).",
    source: lineageRow,
  },
  {
    id: "S3-17",
    behaviour: "Native transcript lost; canonical history read: intact.",
    source: lineageRow,
  },
  {
    id: "S3-18",
    behaviour:
      "Transfer + handoff; compared: transfer: source, target, type, status; handoff: the text; neither duplicates the other.",
    source: lineageRow,
  },
  {
    id: "S3-19",
    behaviour: "A handoff; fields read: all seed 3 fields present with the seed 3 enums.",
    source: lineageRow,
  },
  {
    id: "S3-20",
    behaviour: "A consumed handoff; run read: run names the handoff and the handoff names the run.",
    source: lineageRow,
  },
  {
    id: "S3-21",
    behaviour: "Regenerate; both read: old superseded with unchanged text, new ready.",
    source: lineageRow,
  },
  {
    id: "S3-22",
    behaviour:
      "A switch; trace: history to best provider thread to strategy to handoff if needed to session to resume/create to send.",
    source: lineageRow,
  },
  {
    id: "S3-23",
    behaviour: "A switch; stored user message: exactly what the user typed; handoff is a separate preamble.",
    source: lineageRow,
  },
  {
    id: "S3-24",
    behaviour:
      "Providers with system / developer / only user channel; delivery: the best available channel is used.",
    source: lineageRow,
  },
  {
    id: "S3-25",
    behaviour: "Target covers the thread; strategy: 1: none.",
    source: lineageRow,
  },
  {
    id: "S3-26",
    behaviour: "Resumable, missed a range; strategy: 2: delta into existing.",
    source: lineageRow,
  },
  {
    id: "S3-27",
    behaviour: "Resumable, gap or chain over a soft limit only; strategy: 3: full into existing.",
    source: lineageRow,
  },
  {
    id: "S3-28",
    behaviour: "Resume failed / incompatible / stale; strategy: 4: full into new.",
    source: lineageRow,
  },
  {
    id: "S3-29",
    behaviour: "No context channel, no reconstruction; strategy: 5: unsupported, explicit.",
    source: lineageRow,
  },
  {
    id: "S3-30",
    behaviour: "State matching several rules; strategy: the lowest number wins.",
    source: lineageRow,
  },
  {
    id: "S3-31",
    behaviour: "More off-provider runs than the limit; return: stale to new + full, signal stored.",
    source: lineageRow,
  },
  {
    id: "S3-32",
    behaviour: "More chained handoffs than the hard limit; return: same.",
    source: lineageRow,
  },
  {
    id: "S3-33",
    behaviour: "Model/runtime mode changed incompatibly; return: same.",
    source: lineageRow,
  },
  {
    id: "S3-34",
    behaviour: "Last resume failed; return: same.",
    source: lineageRow,
  },
  {
    id: "S3-35",
    behaviour: "Provider thread rolled back or forked in conflict; return: same.",
    source: lineageRow,
  },
  {
    id: "S3-36",
    behaviour: "User asks clean context; next run: same.",
    source: lineageRow,
  },
  {
    id: "S3-37",
    behaviour: "Delta exceeds provider context policy; return: same.",
    source: lineageRow,
  },
  {
    id: "S3-38",
    behaviour:
      "Summariser = leaving, entering, configured, local; build: each works; local needs no provider.",
    source: lineageRow,
  },
  {
    id: "S3-39",
    behaviour:
      "Summary by a third provider; handoff read: createdByProvider = that provider, not the target.",
    source: lineageRow,
  },
  {
    id: "S3-40",
    behaviour: "Thread with runs of two providers; full summary: contains both, from canonical records.",
    source: lineageRow,
  },
  {
    id: "S3-41",
    behaviour: "Goals and constraints pinned or stated; summary: present.",
    source: lineageRow,
  },
  {
    id: "S3-42",
    behaviour: "Decisions; summary: present.",
    source: lineageRow,
  },
  {
    id: "S3-43",
    behaviour: "Changed files; summary: listed.",
    source: lineageRow,
  },
  {
    id: "S3-44",
    behaviour: "Commands/tests run; summary: listed with results.",
    source: lineageRow,
  },
  {
    id: "S3-45",
    behaviour: "Open plan / todo; summary: current state.",
    source: lineageRow,
  },
  {
    id: "S3-46",
    behaviour: "Unanswered approval or question; summary: mentioned.",
    source: lineageRow,
  },
  {
    id: "S3-47",
    behaviour: "Checkpoint + diff; summary: current one described.",
    source: lineageRow,
  },
  {
    id: "S3-48",
    behaviour: "Known failure; summary: mentioned.",
    source: lineageRow,
  },
  {
    id: "S3-49",
    behaviour: "Finished subagent; summary: its result, if relevant.",
    source: lineageRow,
  },
  {
    id: "S3-50",
    behaviour: "Protocol events in history; summary: absent.",
    source: lineageRow,
  },
  {
    id: "S3-51",
    behaviour: "Reasoning items in history; summary: absent.",
    source: lineageRow,
  },
  {
    id: "S3-52",
    behaviour: "Test failed in run 2, passed in run 4; summary: only the later output.",
    source: lineageRow,
  },
  {
    id: "S3-53",
    behaviour: "3 000-line diff; summary: file summary, not the diff.",
    source: lineageRow,
  },
  {
    id: "S3-54",
    behaviour: "Switch after run N; checkpoints read: still owned by runs, none moved or recreated.",
    source: lineageRow,
  },
  {
    id: "S3-55",
    behaviour: "Switch; handoff read: references latest checkpoint and diff summary.",
    source: lineageRow,
  },
  {
    id: "S3-56",
    behaviour: "Run N completed and captured, switch at N+1; handoff: includes state through checkpoint N.",
    source: lineageRow,
  },
  {
    id: "S3-57",
    behaviour: "Runs 1to8; rollback to 5: 6to8 rolled_back.",
    source: lineageRow,
  },
  {
    id: "S3-58",
    behaviour:
      "Handoffs covering 6+, and one covering 1to5; rollback to 5: the former superseded, the latter kept.",
    source: lineageRow,
  },
  {
    id: "S3-59",
    behaviour:
      "Rollback to 5: rolled back if active and able, else divergent; a thread covering only at most 5 untouched.",
    source: lineageRow,
  },
  {
    id: "S3-60",
    behaviour: "Active provider can roll back; rollback: its rollback is called.",
    source: lineageRow,
  },
  {
    id: "S3-61",
    behaviour: "It cannot; work resumes: new provider thread from the retained summary.",
    source: lineageRow,
  },
  {
    id: "S3-62",
    behaviour: "Mixed-provider thread; fork: lineage + source point, no provider needed.",
    source: lineageRow,
  },
  {
    id: "S3-63",
    behaviour: "That fork; first run: context resolved then.",
    source: lineageRow,
  },
  {
    id: "S3-64",
    behaviour: "Fork from run 5 (A), strong refs; first run A: native.",
    source: lineageRow,
  },
  {
    id: "S3-65",
    behaviour: "Fork from run 5 (A); first run B: portable at dispatch.",
    source: lineageRow,
  },
  {
    id: "S3-66",
    behaviour:
      "Fork from a checkpoint without native thread; first run: new provider thread with checkpoint/full context.",
    source: lineageRow,
  },
  {
    id: "S3-67",
    behaviour:
      "Fork from a subagent's provider thread, stable / unstable; first run: used natively / portable.",
    source: lineageRow,
  },
  {
    id: "S3-68",
    behaviour: "Run: provider, providerThreadId, contextHandoff id(s).",
    source: lineageRow,
  },
  {
    id: "S3-69",
    behaviour: "Three switches; thread list: still one conversation, several provider threads attached.",
    source: lineageRow,
  },
];
