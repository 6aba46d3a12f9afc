/** What the reference engine was seen to do, as the `codex` profile keeps it: B1 to B51. */
import { type Contract, reference } from "./entry.ts";

export const observed: readonly Contract[] = [
  {
    id: "B1",
    behaviour:
      "Spawn, wait, list: a canonical path comes back, the wait tells of activity, the result's mail follows it.",
    source: reference,
  },
  {
    id: "B2",
    behaviour: "Six malformed task names get six different refusals.",
    source: reference,
  },
  {
    id: "B3",
    behaviour: "Names that start with a digit, or are very long, or merely look reserved, are accepted.",
    source: reference,
  },
  {
    id: "B4",
    behaviour: "A second agent of the same path is refused, whether the first is loaded or not.",
    source: reference,
  },
  {
    id: "B5",
    behaviour: "A blank message is refused on spawn, send and follow-up.",
    source: reference,
  },
  {
    id: "B6",
    behaviour: "A field that a tool does not know is refused, and the known ones are listed.",
    source: reference,
  },
  {
    id: "B7",
    behaviour: "A fork count that is a word, zero, negative or not a string is refused.",
    source: reference,
  },
  {
    id: "B8",
    behaviour: "Any spelling of all, and the empty string, forks everything.",
    source: reference,
  },
  {
    id: "B9",
    behaviour: "A fork count takes that many of the latest runs.",
    source: reference,
  },
  {
    id: "B10",
    behaviour: "An unknown model, effort or role is refused with the choices.",
    source: reference,
  },
  {
    id: "B11",
    behaviour: "A full fork takes another model or effort; a model without the tools makes a leaf.",
    source: reference,
  },
  {
    id: "B12",
    behaviour: "Eight malformed or foreign references get their refusals.",
    source: reference,
  },
  {
    id: "B13",
    behaviour: "A bare name means a child of the caller, even if it is the caller's own.",
    source: reference,
  },
  {
    id: "B14",
    behaviour: "A child's message to a running root is in the root's next request.",
    source: reference,
  },
  {
    id: "B15",
    behaviour: "A follow-up to the root is refused and leaves it untouched.",
    source: reference,
  },
  {
    id: "B16",
    behaviour: "A message to oneself arrives in the same run.",
    source: reference,
  },
  {
    id: "B17",
    behaviour: "Queue-only mail and the follow-up after it go into one run, in order.",
    source: reference,
  },
  {
    id: "B18",
    behaviour: "Messages that arrive with the final answer make one further run and one result.",
    source: reference,
  },
  {
    id: "B19",
    behaviour: "A follow-up during a tool joins the run after the tool's output.",
    source: reference,
  },
  {
    id: "B20",
    behaviour: "A wait below the minimum is clamped and says so; the configured default is kept.",
    source: reference,
  },
  {
    id: "B21",
    behaviour: "A wait above the maximum, of the wrong type, or with targets is refused.",
    source: reference,
  },
  {
    id: "B22",
    behaviour: "A steer ends a wait soon, as new input and not as a time-out.",
    source: reference,
  },
  {
    id: "B23",
    behaviour: "A wait returns at once when mail is already there.",
    source: reference,
  },
  {
    id: "B24",
    behaviour: "Two waits over the same message both report activity.",
    source: reference,
  },
  {
    id: "B25",
    behaviour: "An interrupted child keeps history and mail, tells its parent nothing, and resumes in order.",
    source: reference,
  },
  {
    id: "B26",
    behaviour:
      "Root, self and unknown agents cannot be interrupted; idle and unloaded ones answer their status.",
    source: reference,
  },
  {
    id: "B27",
    behaviour: "A process started by an interrupted child lives until the child is unloaded.",
    source: reference,
  },
  {
    id: "B28",
    behaviour: "The spawn over the limit is refused, and takes the place of a finished child later.",
    source: reference,
  },
  {
    id: "B29",
    behaviour: "A follow-up that finds no room is refused and its text is dropped.",
    source: reference,
  },
  {
    id: "B30",
    behaviour: "A message to an unloaded agent is kept while all slots are busy, and delivered in order.",
    source: reference,
  },
  {
    id: "B31",
    behaviour: "An idle child with queued mail gives up its slot to a new one.",
    source: reference,
  },
  {
    id: "B32",
    behaviour: "An interrupted child that was unloaded reloads with history and marker.",
    source: reference,
  },
  {
    id: "B33",
    behaviour: "By default three of five parallel spawns succeed.",
    source: reference,
  },
  {
    id: "B34",
    behaviour: "The two settings of the limit are read with the documented precedence.",
    source: reference,
  },
  {
    id: "B35",
    behaviour:
      "A result that reached an idle root is absent from a turn that answers at once, present in the next.",
    source: reference,
  },
  {
    id: "B36",
    behaviour: "A result that reached an idle root is in the second request of its next turn.",
    source: reference,
  },
  {
    id: "B37",
    behaviour: "A grandchild's result to a finished parent wakes nobody.",
    source: reference,
  },
  {
    id: "B38",
    behaviour: "A sibling's follow-up sends the result to the parent and the activity to the requester.",
    source: reference,
  },
  {
    id: "B39",
    behaviour: "Errors, empty answers, long answers and long errors have their forms of result.",
    source: reference,
  },
  {
    id: "B40",
    behaviour: "A child that failed takes a follow-up and runs.",
    source: reference,
  },
  {
    id: "B41",
    behaviour: "A killed process loses queued mail and waiting results.",
    source: reference,
    leftOut: "its contrary is guaranteed: MBX-1 and REC-1",
  },
  {
    id: "B42",
    behaviour: "An interrupted root leaves its children running.",
    source: reference,
  },
  {
    id: "B43",
    behaviour: "A client's direct input to a child is refused.",
    source: reference,
    leftOut: "tests an app server, which this package does not have",
  },
  {
    id: "B44",
    behaviour: "A client may fork, archive, interrupt, read and resume a child.",
    source: reference,
    leftOut: "tests an app server, which this package does not have",
  },
  {
    id: "B45",
    behaviour: "A child's request for approval names the child, and the parent is not told.",
    source: reference,
    leftOut: "tests an app server, which this package does not have",
  },
  {
    id: "B46",
    behaviour:
      "A role sets model, effort, instructions and switches tools off; it cannot touch sandbox, approval or servers.",
    source: reference,
  },
  {
    id: "B47",
    behaviour: "A fork of the root by a client is cut at a turn, or refused.",
    source: reference,
    leftOut: "tests an app server, which this package does not have",
  },
  {
    id: "B48",
    behaviour: "A client's revert leaves agents of the cut part alive.",
    source: reference,
    leftOut: "tests an app server, which this package does not have",
  },
  {
    id: "B49",
    behaviour: "With the setting on, a message to an idle root starts its turn.",
    source: reference,
  },
  {
    id: "B50",
    behaviour: "A spawn with several faults reports the first in order.",
    source: reference,
  },
  {
    id: "B51",
    behaviour: "A dynamic namespace of the same name is shadowed.",
    source: reference,
    leftOut: "tests an app server, which this package does not have",
  },
];
