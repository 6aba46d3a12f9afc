/** The mailbox: MBX. */
import { type Contract, guarantee } from "./entry.ts";

export const mailbox: readonly Contract[] = [
  {
    id: "MBX-1",
    behaviour: "Mail that was acknowledged survives a kill that follows at once.",
    source: guarantee,
  },
  {
    id: "MBX-2",
    behaviour: "A recipient reads mail in commit order, a sender's own mail in the order of sending.",
    source: guarantee,
  },
  {
    id: "MBX-3",
    behaviour:
      "Queue-only mail starts nothing and loads nobody; trigger-turn mail starts an idle agent or joins its run.",
    source: guarantee,
  },
  {
    id: "MBX-4",
    behaviour:
      "A run's first request carries pending mail, oldest first and bounded; no work completes unread.",
    source: guarantee,
  },
  {
    id: "MBX-5",
    behaviour:
      "Mail joins a run at step boundaries; after the final answer it waits, until a steer or tool call reopens the run.",
    source: guarantee,
  },
  {
    id: "MBX-6",
    behaviour:
      "Mail sent from inside the moment of ending, idling or unloading is neither lost nor in need of a nudge.",
    source: guarantee,
  },
  {
    id: "MBX-7",
    behaviour: "A message's state only moves forward, and the holder of its receipt can read it.",
    source: guarantee,
  },
  {
    id: "MBX-8",
    behaviour:
      "A mailbox is bounded; whoever is refused learns the limit, and room for owed results is reserved.",
    source: guarantee,
  },
  {
    id: "MBX-9",
    behaviour:
      "A large payload becomes an artifact; mail carries its head, tail, size, digest and reference.",
    source: guarantee,
  },
  {
    id: "MBX-10",
    behaviour: "Stored mail that cannot be read goes to the dead letters, and the agent goes on.",
    source: guarantee,
  },
  {
    id: "MBX-11",
    behaviour:
      "Author and recipient come from the runtime, and text that imitates a header is rendered inert.",
    source: guarantee,
  },
  {
    id: "MBX-12",
    behaviour:
      "Writing to an unknown or closed agent is an error that tells its state; unloaded agents take mail.",
    source: guarantee,
  },
  {
    id: "MBX-13",
    behaviour: "Each agent shows how many messages are unread and how old the oldest is.",
    source: guarantee,
  },
  {
    id: "MBX-14",
    behaviour: "Start options of merged mail follow the latest trigger, and every cause is kept.",
    source: guarantee,
  },
  {
    id: "MBX-15",
    behaviour:
      "A run that fails before acceptance ends its works, keeps other mail, and isolates what is refused again.",
    source: guarantee,
  },
  {
    id: "MBX-16",
    behaviour:
      "A work that ends unread takes its request to the dead letters; results drained too early become mail again.",
    source: guarantee,
  },
];
