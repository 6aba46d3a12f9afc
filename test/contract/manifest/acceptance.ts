/** The ten cases in which delegation goes wrong elsewhere: ACC-1 to ACC-10. */
import { acceptance, type Contract } from "./entry.ts";

export const accepted: readonly Contract[] = [
  {
    id: "ACC-1",
    behaviour:
      "Idle message: a message to a finished agent starts nothing, a follow-up does, and neither is lost.",
    source: acceptance,
  },
  {
    id: "ACC-2",
    behaviour:
      "Message during a tool: when it is accepted and when it is consumed can both be seen; no tool is cut short.",
    source: acceptance,
  },
  {
    id: "ACC-3",
    behaviour:
      "Sibling delegation: activity, result and reply address each go where they should, and say so.",
    source: acceptance,
  },
  {
    id: "ACC-4",
    behaviour:
      "Several requests in one run: the run may be shared, the works still settle each for its own requester.",
    source: acceptance,
  },
  {
    id: "ACC-5",
    behaviour:
      "Final race: a result that meets the final answer prolongs nothing and is kept; policy decides on the next run.",
    source: acceptance,
  },
  {
    id: "ACC-6",
    behaviour:
      "Capacity and eviction: registered, resident and running differ; the busy and those with mail are not taken for idle.",
    source: acceptance,
  },
  {
    id: "ACC-7",
    behaviour:
      "Recovery: no authority grows, a failure has its reason, and what cannot be recovered does not look like success.",
    source: acceptance,
  },
  {
    id: "ACC-8",
    behaviour:
      "Role configuration: what was asked for and what is effective can be compared, and clipped fields are named.",
    source: acceptance,
  },
  {
    id: "ACC-9",
    behaviour:
      "Interrupt: finished side effects stay, and an interrupted state never passes for a final answer.",
    source: acceptance,
  },
  {
    id: "ACC-10",
    behaviour: "Process crash: a kill between accepting and consuming loses nothing.",
    source: acceptance,
  },
];
