/** Interrupt, close and recovery: INT, REC. */
import { type Contract, guarantee } from "./entry.ts";

export const stopping: readonly Contract[] = [
  {
    id: "INT-1",
    behaviour:
      "An interrupt answers whom it touched, with the status before and after, and its agents stay usable.",
    source: guarantee,
  },
  {
    id: "INT-2",
    behaviour: "An interrupt for a given run leaves a later run alone.",
    source: guarantee,
  },
  {
    id: "INT-3",
    behaviour: "An interrupt is acknowledged at once and enforced after a grace time.",
    source: guarantee,
  },
  {
    id: "INT-4",
    behaviour: "The signal reaches requests, tools and waits, and no listener is left behind.",
    source: guarantee,
  },
  {
    id: "INT-5",
    behaviour: "The requester gets a result that says interrupted.",
    source: guarantee,
  },
  {
    id: "INT-6",
    behaviour: "Approvals pending at what is interrupted become cancelled.",
    source: guarantee,
  },
  {
    id: "INT-7",
    behaviour: "A close ends a subtree from the leaves within a deadline and sends what is owed outside.",
    source: guarantee,
  },
  {
    id: "INT-8",
    behaviour:
      "An interrupt ends the works being served; children go on; mail not yet taken starts the next run.",
    source: guarantee,
  },
  {
    id: "REC-1",
    behaviour:
      "After a kill at any commit nothing is lost and nothing is there twice; a second kill changes nothing more.",
    source: guarantee,
  },
  {
    id: "REC-2",
    behaviour: "A tree has one owner behind a fenced lease; others read, append mail and leave commands.",
    source: guarantee,
  },
  {
    id: "REC-3",
    behaviour: "Faults of the store surface typed, and memory never runs ahead of it.",
    source: guarantee,
  },
  {
    id: "REC-4",
    behaviour: "Processes are registered, ended by group and swept at the next start.",
    source: guarantee,
  },
  {
    id: "REC-5",
    behaviour:
      "A request whose acceptance is unknown is looked up, or repeated under the same ids and marked.",
    source: guarantee,
  },
  {
    id: "REC-6",
    behaviour: "A lease runs out by stated times; its frozen owner stops by itself before another may claim.",
    source: guarantee,
  },
];
