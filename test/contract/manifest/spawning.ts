/** Identity, paths, spawning and listing: SPN, LST. */
import { type Contract, guarantee } from "./entry.ts";

export const spawning: readonly Contract[] = [
  {
    id: "SPN-1",
    behaviour:
      "Paths follow one grammar and resolve below the caller; a path stays taken as long as its tree lives.",
    source: guarantee,
  },
  {
    id: "SPN-2",
    behaviour:
      "A spawn is one commit of thread, edge, work, transfer and first mail; one that fails leaves nothing behind.",
    source: guarantee,
  },
  {
    id: "SPN-3",
    behaviour: "Of several faults in one spawn the first in a fixed order is reported.",
    source: guarantee,
  },
  {
    id: "SPN-4",
    behaviour:
      "Children spawned side by side start side by side: no lock is held while a store or provider is slow.",
    source: guarantee,
  },
  {
    id: "SPN-5",
    behaviour:
      "Each fork mode is honoured or refused; history is cut when the tool is called, cleaned, and marked inherited.",
    source: guarantee,
  },
  {
    id: "SPN-6",
    behaviour:
      "A repeated key with equal arguments answers the first receipt; with other arguments it is a conflict.",
    source: guarantee,
  },
  {
    id: "SPN-7",
    behaviour:
      "A child's effective configuration is resolved once, stored, shown, and survives unload and restart.",
    source: guarantee,
  },
  {
    id: "LST-1",
    behaviour:
      "The list shows every registered agent of the tree in pages, with status, residency, outcome and debts.",
    source: guarantee,
  },
];
