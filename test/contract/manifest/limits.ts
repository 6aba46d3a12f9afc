/** Budgets and host-driven roots: BUD, HDR. */
import { type Contract, guarantee } from "./entry.ts";

export const limits: readonly Contract[] = [
  {
    id: "BUD-1",
    behaviour:
      "Depth, agents, children, rates, running, tokens, money and time have finite defaults per tree and subtree.",
    source: guarantee,
  },
  {
    id: "BUD-2",
    behaviour: "A request reserves its estimate first; a spent budget ends the works in its scope by name.",
    source: guarantee,
  },
  {
    id: "BUD-3",
    behaviour: "A refusal tells limit, value, use and remedy, and never fails the run that met it.",
    source: guarantee,
  },
  {
    id: "BUD-4",
    behaviour: "Usage is stored at the leaf, summed upwards, and marked complete or partial.",
    source: guarantee,
  },
  {
    id: "BUD-5",
    behaviour: "Chains of works, runs a work and runs a minute are bounded.",
    source: guarantee,
  },
  { id: "BUD-6", behaviour: "All defaults stand in one table.", source: guarantee },
  {
    id: "BUD-7",
    behaviour: "Prices are given by the user; without one cost is unknown and a money budget is refused.",
    source: guarantee,
  },
  {
    id: "HDR-1",
    behaviour: "A host-driven root has a token, mail and works, but no runs, and nothing wakes it.",
    source: guarantee,
  },
  {
    id: "HDR-2",
    behaviour: "Its wait returns unread mail with a cursor, and other tool results end with a notice.",
    source: guarantee,
  },
  {
    id: "HDR-3",
    behaviour: "Mail is delivered once a later call shows the cursor; until then it comes again, marked.",
    source: guarantee,
  },
  {
    id: "HDR-4",
    behaviour: "Works outlive the root's last connection, unless a setting interrupts them.",
    source: guarantee,
  },
  {
    id: "HDR-5",
    behaviour: "It takes no permit, and a second host on the same root is turned away.",
    source: guarantee,
  },
];
