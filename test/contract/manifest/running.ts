/** Runs, permits and residency: RUN, EXE, RES. */
import { type Contract, guarantee } from "./entry.ts";

export const running: readonly Contract[] = [
  {
    id: "RUN-1",
    behaviour: "A thread has one run at a time, and each of its stages is a commit.",
    source: guarantee,
  },
  {
    id: "RUN-2",
    behaviour: "A step is stored before the next begins; reloads and restarts go on from what is stored.",
    source: guarantee,
  },
  {
    id: "RUN-3",
    behaviour: "Limits of steps and time end a run under their own name, after one offer to wrap up.",
    source: guarantee,
  },
  {
    id: "RUN-4",
    behaviour: "Provider errors are typed; retries are bounded and share one back-off per provider.",
    source: guarantee,
  },
  {
    id: "RUN-5",
    behaviour: "Step rules bind the built-in providers in full; elsewhere capabilities decide and say so.",
    source: guarantee,
  },
  {
    id: "EXE-1",
    behaviour: "Running children take permits of tree and runtime; roots and joiners take none.",
    source: guarantee,
  },
  {
    id: "EXE-2",
    behaviour: "Over the limit a work is queued in sight; only new spawns and follow-ups can be refused.",
    source: guarantee,
  },
  {
    id: "EXE-3",
    behaviour: "No branch starves another, and a run that comes back from a wait goes first.",
    source: guarantee,
  },
  {
    id: "EXE-4",
    behaviour: "Limits hold at every instant for every entry; a wait answers only once its permit is back.",
    source: guarantee,
  },
  {
    id: "RES-1",
    behaviour: "Registered, resident and running are separate numbers, all visible.",
    source: guarantee,
  },
  {
    id: "RES-2",
    behaviour: "No more sessions are loaded than allowed; room is made from the least recently used.",
    source: guarantee,
  },
  {
    id: "RES-3",
    behaviour: "One predicate decides who may be unloaded; agents with mail go last.",
    source: guarantee,
  },
  {
    id: "RES-4",
    behaviour: "State is flushed before it is forgotten, and the mailbox is looked at once more.",
    source: guarantee,
  },
  {
    id: "RES-5",
    behaviour: "Concurrent loads are one load, and a reloaded agent behaves as if it had stayed.",
    source: guarantee,
  },
  {
    id: "RES-6",
    behaviour: "Opening a tree loads only those that have something to do.",
    source: guarantee,
  },
  {
    id: "RES-7",
    behaviour: "Memory grows with residents, not with registered agents.",
    source: guarantee,
  },
  {
    id: "RES-8",
    behaviour:
      "A failed load is typed, widens nothing, is retried where that helps, and leaves mail in place.",
    source: guarantee,
  },
  {
    id: "RES-9",
    behaviour: "A provider or tool that is not configured leaves the agent and its mail untouched.",
    source: guarantee,
  },
];
