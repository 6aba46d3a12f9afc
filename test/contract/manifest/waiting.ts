/** Waking and waiting: WAI. */
import { type Contract, guarantee } from "./entry.ts";

export const waiting: readonly Contract[] = [
  {
    id: "WAI-1",
    behaviour:
      "A result wakes its recipient as its wake mode says, and only while the work it was asked under is open.",
    source: guarantee,
  },
  {
    id: "WAI-2",
    behaviour:
      "Wakes are held while a question or approval is pending and released by the commit that ends it.",
    source: guarantee,
  },
  {
    id: "WAI-3",
    behaviour:
      "A wait takes targets, works and a mode, reports each event once and hands mail out without losing it.",
    source: guarantee,
  },
  {
    id: "WAI-4",
    behaviour: "A wait subscribes before it checks, so what is settled already returns at once.",
    source: guarantee,
  },
  {
    id: "WAI-5",
    behaviour:
      "A waiting run asks no model, polls nothing and lends permit and slot; waiting parents cannot deadlock.",
    source: guarantee,
  },
  {
    id: "WAI-6",
    behaviour: "A wait that ends early leaves the child and its result unharmed.",
    source: guarantee,
  },
  {
    id: "WAI-7",
    behaviour: "Where the transport is short of time, a wait is cut, and goes on by its cursor.",
    source: guarantee,
  },
  {
    id: "WAI-8",
    behaviour: "A wait that would close a cycle is refused and the loop is named.",
    source: guarantee,
  },
];
