/** The ledger of works: WRK. */
import { type Contract, guarantee } from "./entry.ts";

export const work: readonly Contract[] = [
  {
    id: "WRK-1",
    behaviour:
      "Every request that triggers is a work with requester, executor, parent, reply address and outcome.",
    source: guarantee,
  },
  {
    id: "WRK-2",
    behaviour: "Works merged into one run settle one by one, or together with the run and marked as shared.",
    source: guarantee,
  },
  {
    id: "WRK-3",
    behaviour: "A work ends exactly once, in one named ending, with partial text and usage kept.",
    source: guarantee,
  },
  {
    id: "WRK-4",
    behaviour:
      "A work waits for the open works under it and ends with the run that has seen all their results.",
    source: guarantee,
  },
  {
    id: "WRK-5",
    behaviour:
      "An ending writes one transfer and one result mail to the reply address, whatever crashes between.",
    source: guarantee,
  },
  {
    id: "WRK-6",
    behaviour:
      "The result for a closed recipient goes to its nearest living ancestor, else to the tree's inbox.",
    source: guarantee,
  },
  {
    id: "WRK-7",
    behaviour: "A result without text says so and carries what could be salvaged.",
    source: guarantee,
  },
  {
    id: "WRK-8",
    behaviour: "A declared output schema is checked, repaired once, and then fails under its own name.",
    source: guarantee,
  },
  {
    id: "WRK-9",
    behaviour: "The open works that an agent owes, and those owed to it, can be listed.",
    source: guarantee,
  },
  {
    id: "WRK-10",
    behaviour: "A work's ending, its run's status and the recorded reason use one mapping of words.",
    source: guarantee,
  },
];
