/**
 * The goals: which figure of which workload is compared with which, and how far it is to go. Each is a ratio within one round,
 * or, where it says so, a figure that is a ratio already. `because` says why a goal is missed, or what it does not say.
 */
export interface Figure {
  readonly workload: string;
  readonly contender: string;
  readonly metric: string;
}

export interface Goal {
  readonly id: string;
  readonly what: string;
  readonly figure: Figure;
  /** Null: the figure is compared with nothing. */
  readonly against: Figure | null;
  /** `speed`: the ratio is turned over, so that more is better. */
  readonly kind: "cost" | "speed";
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly because: string;
}

const of = (workload: string, contender: string, metric: string): Figure => ({ workload, contender, metric });

/** A cost of ours beside that of a baseline of the same workload, as a speed. */
function speed(
  id: string,
  what: string,
  workload: string,
  baseline: string,
  atLeast: number,
  because: string,
): Goal {
  return {
    id,
    what,
    figure: of(workload, "coppice", "ns"),
    against: of(workload, baseline, "ns"),
    kind: "speed",
    atLeast,
    because,
  };
}

interface Compared {
  readonly metric: string;
  readonly baseline: string;
  readonly contender?: string;
  readonly baselineMetric?: string;
}

function cost(
  id: string,
  what: string,
  workload: string,
  compared: Compared,
  bound: { readonly atMost: number } | { readonly atLeast: number },
  because: string,
): Goal {
  const { metric, baseline, contender = "coppice", baselineMetric = metric } = compared;
  return {
    id,
    what,
    figure: of(workload, contender, metric),
    against: of(workload, baseline, baselineMetric),
    kind: "cost",
    ...bound,
    because,
  };
}

function alone(
  id: string,
  what: string,
  figure: Figure,
  bound: { readonly atMost: number } | { readonly atLeast: number },
  because: string,
): Goal {
  return { id, what, figure, against: null, kind: "cost", ...bound, because };
}

const STORED =
  "every message is a commit: limits judged, a record and an event written, before it counts as sent";
const A_RUN =
  "a turn is a run: about ten commits from its reservation to its result, each in a tick of its own";

const WHOLE_CONVERSATION = "each request carries the whole conversation";

function onBothStores(
  id: string,
  what: string,
  workload: string,
  atMost: number,
  because = "",
): readonly Goal[] {
  const on = (contender: string, where: string): Goal =>
    alone(id, `${what}, ${where}`, of(workload, contender, "ratio"), { atMost }, because);
  return [on("coppice", "memory"), on("coppice sqlite", "file")];
}

export const GOALS: readonly Goal[] = [
  speed("M1", "queue-only, one to one", "tell 1-to-1", "ring buffer", 0.4, STORED),
  speed("M1", "queue-only, append to many", "tell fan-out", "ring buffer", 0.4, STORED),
  cost(
    "M1",
    "queue-only, one to one, durable",
    "tell 1-to-1",
    { metric: "ns", baseline: "bare rows", contender: "coppice sqlite" },
    { atMost: 2 },
    "beside the row: judging, the event, the mailbox's counters; no goal of the list, for orientation",
  ),
  speed("M2", "trigger-turn, one to one", "turn 1-to-1", "ring buffer", 0.4, A_RUN),
  speed("M2", "trigger-turn, fan-in", "turn fan-in", "ring buffer", 0.4, A_RUN),
  speed("M2", "trigger-turn, ring", "turn ring", "ring buffer", 0.12, A_RUN),
  speed("M2", "trigger-turn, fan-out", "turn fan-out", "ring buffer", 0.1, A_RUN),
  alone(
    "M4",
    "agents in a chain of the runtime",
    of("chain", "coppice", "length"),
    { atLeast: 10_000 },
    "the list asks for 100,000; this is as long as the budget of time allows",
  ),
  alone(
    "M4",
    "hops in a chain of the mechanisms",
    of("chain", "mechanisms", "length"),
    { atLeast: 100_000 },
    "",
  ),
  alone(
    "M4",
    "delay of a 1 ms timer in a flood, ms",
    of("flood", "coppice", "longestMs"),
    { atMost: 10 },
    "the mail of one request is taken in by one commit, 500 messages here; groups of commits are bounded at 5 ms",
  ),
  cost(
    "R1",
    "loaded idle agent, bytes",
    "idle",
    { metric: "bytes", baseline: "raw" },
    { atMost: 2 },
    "a session holds its record, its configuration and its transcript as objects",
  ),
  cost(
    "R2",
    "registered identity, bytes of the process",
    "identities",
    { metric: "bytes", baseline: "map of records" },
    { atMost: 0.2 },
    "rows alone; the database's cache is part of it",
  ),
  cost(
    "R2",
    "finding one by its path",
    "identities",
    { metric: "resolveUs", baseline: "map of records" },
    { atMost: 0.6 },
    "asked of the file; within 10 µs by the absolute form of the goal",
  ),
  alone(
    "R2",
    "taking over a tree, 50,000 identities to none",
    of("identities", "coppice", "startUp"),
    { atMost: 1.2 },
    "",
  ),
  cost(
    "R3",
    "touch among 10,000, uniform",
    "touch",
    { metric: "tenK_uniform", baseline: "map and list" },
    { atMost: 1 / 3 },
    "",
  ),
  cost(
    "R3",
    "touch among 100,000, uniform",
    "touch",
    { metric: "hundredK_uniform", baseline: "map and list" },
    { atMost: 1 / 3 },
    "",
  ),
  {
    id: "R3",
    what: "skewed to uniform among 100,000",
    figure: of("touch", "coppice", "hundredK_skewed"),
    against: of("touch", "coppice", "hundredK_uniform"),
    kind: "cost",
    atMost: 1.5,
    because: "",
  },
  cost(
    "R4",
    "reload of 20 KB, median",
    "reload",
    { metric: "loadUs", baseline: "bare rows" },
    { atMost: 1.5 },
    "items are rows and are parsed one by one; records of agent and run come beside them",
  ),
  cost(
    "R4",
    "unload, median",
    "reload",
    { metric: "unloadUs", baseline: "bare rows" },
    { atMost: 1.5 },
    "an unload writes its event alone; what was said is stored already",
  ),
  cost(
    "R4",
    "reload, 99th percentile to median",
    "reload",
    { metric: "loadP99Us", baseline: "coppice", baselineMetric: "loadUs" },
    { atMost: 6 },
    "",
  ),
  cost(
    "D1",
    "FULL, 256 producers, messages/s",
    "durable full",
    { metric: "perSecond_256", baseline: "a transaction each" },
    { atLeast: 12 },
    STORED,
  ),
  cost(
    "D1",
    "FULL, 16 producers, messages/s",
    "durable full",
    { metric: "perSecond_16", baseline: "a transaction each" },
    { atLeast: 6 },
    STORED,
  ),
  cost(
    "D1",
    "NORMAL, 256 producers, messages/s",
    "durable normal",
    { metric: "perSecond_256", baseline: "a transaction each" },
    { atLeast: 1.8 },
    STORED,
  ),
  cost(
    "D1",
    "NORMAL, 1 producer, messages/s",
    "durable normal",
    { metric: "perSecond_1", baseline: "a transaction each" },
    { atLeast: 0.85 },
    STORED,
  ),
  cost(
    "D1",
    "FULL, 256 producers, store.send",
    "durable full",
    { metric: "perSecond_256", baseline: "a transaction each", contender: "coppice store.send" },
    { atLeast: 12 },
    "the port alone",
  ),
  cost(
    "D2",
    "CPU a message at 256 producers",
    "durable normal",
    { metric: "cpuUs_256", baseline: "bare rows" },
    { atMost: 1.5 },
    STORED,
  ),
  cost(
    "D2",
    "the same, store.send",
    "durable normal",
    { metric: "cpuUs_256", baseline: "bare rows", contender: "coppice store.send" },
    { atMost: 1.5 },
    "three more columns and two more indexes a row, and the mailbox's counters",
  ),
  cost(
    "D3",
    "loop delay p99, 1000 producers, FULL",
    "durable full",
    { metric: "delayP99Ms_1000", baseline: "a transaction each" },
    { atMost: 0.3 },
    "groups are bounded by time, not by a writer thread",
  ),
  {
    id: "D4",
    what: "messages/s, our setting to the default",
    figure: of("checkpoint", "bare rows, 10000 pages", "perSecond"),
    against: of("checkpoint", "bare rows, 1000 pages", "perSecond"),
    kind: "cost",
    atLeast: 1.2,
    because: "",
  },
  {
    id: "D4",
    what: "transaction p99, our setting to the default",
    figure: of("checkpoint", "bare rows, 10000 pages", "p99Ms"),
    against: of("checkpoint", "bare rows, 1000 pages", "p99Ms"),
    kind: "cost",
    atMost: 0.5,
    because: "",
  },
  cost(
    "S1",
    "spawn, answer, return, in memory",
    "spawn",
    { metric: "us", baseline: "raw" },
    { atMost: 5 },
    `${A_RUN}; a spawn writes a thread, a work, a transfer, a mail and their events`,
  ),
  cost(
    "S2",
    "the same, durable (NORMAL)",
    "durable spawn",
    { metric: "us", baseline: "bare rows" },
    { atMost: 2 },
    `${A_RUN}; about thirty rows and as many events where the floor has six rows`,
  ),
  cost(
    "S3",
    "live child in its model call, bytes",
    "live",
    { metric: "bytes", baseline: "raw" },
    { atMost: 2 },
    "session, run, request and the stream of the provider",
  ),
  alone("S4", "µs a spawn, 10,000 to 100", of("linearity", "coppice", "growth"), { atMost: 1.5 }, ""),
  alone(
    "S4",
    "one after the other (200) to together (1000)",
    of("linearity", "coppice", "sequence"),
    { atMost: 2 },
    "each step of the root builds the whole conversation anew",
  ),
  ...onBothStores("T1", "fork of 10,000 items to one of ten", "fork", 3),
  alone(
    "T2",
    "start after 1,000 runs on five providers to ten",
    of("start of a run", "coppice", "ratio"),
    { atMost: 3 },
    "",
  ),
  alone(
    "T3",
    "text of a handoff, 10,000 items to 1,000",
    of("handoff", "coppice", "ratio"),
    { atMost: 13 },
    "",
  ),
  ...onBothStores(
    "T4",
    "transcript, first page, 25 ancestors to one",
    "transcript page",
    3,
    "each page reads the line of forks anew",
  ),
  ...onBothStores("T4", "transcript, a page of all, 25 ancestors to one", "transcript walk", 3),
  alone(
    "T5",
    "snapshot at its cap to a small one, a line",
    of("snapshot", "coppice", "ratio"),
    { atMost: 3 },
    "",
  ),
  ...onBothStores("T6", "first page of 100,000 threads to 1,000", "thread list", 3),
  alone(
    "T7",
    "last 100 of 1,000 runs of a thread to the first",
    of("long thread", "coppice", "ratio"),
    { atMost: 3 },
    WHOLE_CONVERSATION,
  ),
  alone(
    "T7",
    "last 50 of 500 runs in turn on five providers to the first",
    of("switches", "coppice", "ratio"),
    { atMost: 3 },
    "past a few texts a provider is told the whole thread again",
  ),
  cost(
    "W1",
    "arm and satisfy a wait",
    "waits",
    { metric: "us", baseline: "promise race" },
    { atMost: 0.3 },
    "a wait is stored, its run suspended and resumed: four commits",
  ),
  cost(
    "W1",
    "bytes of a wait",
    "waits",
    { metric: "bytes", baseline: "promise race" },
    { atMost: 0.5 },
    "the store in memory keeps the run, the wait, the mail and the events of each",
  ),
  alone(
    "W1",
    "longest stall while 1000 expire within 100 ms, ms",
    of("waits", "coppice", "stallMs"),
    { atMost: 25 },
    "waits end in portions of a hundred",
  ),
  alone(
    "W1",
    "CPU while all wait, ms a second",
    of("waits", "coppice", "idleMsPerSecond"),
    { atMost: 10 },
    "the owner of a tree polls ten times a second",
  ),
  {
    id: "C1",
    what: "cancel idle agents, faster than abort signals",
    figure: of("cancel", "coppice", "us"),
    against: of("cancel", "abort signals", "us"),
    kind: "speed",
    atLeast: 50,
    because: "an interrupt reads the record and the state of each agent and tells of none",
  },
];
