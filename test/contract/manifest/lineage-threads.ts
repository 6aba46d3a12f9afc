/** The life of a thread: rows S1-* of the lineage contract. */
import { type Contract, lineageRow } from "./entry.ts";

export const lineageThreads: readonly Contract[] = [
  {
    id: "S1-1",
    behaviour:
      "One thread; three continues across three providers and processes: same thread id; three executions, three process ids.",
    source: lineageRow,
  },
  {
    id: "S1-2",
    behaviour:
      "Two executions of a thread; their policies are compared: own policy, own hash each; nothing inherited from the thread.",
    source: lineageRow,
  },
  {
    id: "S1-3",
    behaviour:
      "Run 1 on Claude-like with pins: run 2 opens with run 1's pinned context, none of its transcript (projected-only).",
    source: lineageRow,
  },
  {
    id: "S1-4",
    behaviour: "An authorised execution; anyone rewrites its policy: impossible/immutable; hash check fails.",
    source: lineageRow,
  },
  {
    id: "S1-5",
    behaviour:
      "Root delegates to a child; thread and tree are read: child in the parent's tree, not in thread.executions.",
    source: lineageRow,
  },
  {
    id: "S1-6",
    behaviour:
      "That child; its binding is read: equal to the parent node's binding, also after the thread moved on.",
    source: lineageRow,
  },
  {
    id: "S1-7",
    behaviour: "A memory store; thread is closed: nothing written to memory.",
    source: lineageRow,
  },
  {
    id: "S1-8",
    behaviour:
      "Source tree; import scan: policy, tree, delegation, backend modules import nothing from thread modules.",
    source: lineageRow,
  },
  {
    id: "S1-9",
    behaviour:
      "A root policy; hash is recomputed with another binding: hash differs; binding has id, contextRevision, contextDigest.",
    source: lineageRow,
  },
  {
    id: "S1-10",
    behaviour: "A running root; thread record changes: the root's binding stays what reserve returned.",
    source: lineageRow,
  },
  {
    id: "S1-11",
    behaviour:
      "Thread record edited to ask for tools or wider workspace; next root opens: same permissions as before.",
    source: lineageRow,
  },
  {
    id: "S1-12",
    behaviour: "ParentThreadId pointed at a privileged thread; next root opens: same permissions.",
    source: lineageRow,
  },
  {
    id: "S1-13",
    behaviour:
      "A pin that reads like a policy; next root opens: same permissions; text appears only under the not-authority heading.",
    source: lineageRow,
  },
  {
    id: "S1-14",
    behaviour:
      "Env label set by hand; start / show: start opens a new thread with its own id; only show without argument uses the label.",
    source: lineageRow,
  },
  {
    id: "S1-15",
    behaviour: "Label present; show without argument: that thread is shown.",
    source: lineageRow,
  },
  {
    id: "S1-16",
    behaviour:
      "Execution of thread A; settle / collect history / project on thread B: THREAD_EXECUTION_BINDING_MISMATCH, B unchanged.",
    source: lineageRow,
  },
  {
    id: "S1-17",
    behaviour: "Existing open threads; a plain start: always a new thread.",
    source: lineageRow,
  },
  {
    id: "S1-18",
    behaviour:
      "A start; lifecycle is traced: reserve to run to settle to project, ending at context revision 1.",
    source: lineageRow,
  },
  {
    id: "S1-19",
    behaviour:
      "Thread at rev 1 / rev 2; continue: root 2 opens on rev 1 and yields rev 2; root 3 opens on rev 2.",
    source: lineageRow,
  },
  {
    id: "S1-20",
    behaviour:
      "Idle thread; close, then continue or reopen: closed; continue to THREAD_CLOSED; no reopen exists.",
    source: lineageRow,
  },
  {
    id: "S1-21",
    behaviour: "Open thread / closed thread; archive: refused / archived.",
    source: lineageRow,
  },
  {
    id: "S1-22",
    behaviour:
      "N roots; refs are read: sequence 1..n contiguous, each with the revision it opened on and, once ended, its outcome.",
    source: lineageRow,
  },
  {
    id: "S1-23",
    behaviour: "A running root; continue: THREAD_BUSY with the running execution id.",
    source: lineageRow,
  },
  {
    id: "S1-24",
    behaviour:
      "Two continues planned on the same revision: exactly one root opens; the other gets THREAD_REVISION_CONFLICT; no update lost.",
    source: lineageRow,
  },
  {
    id: "S1-25",
    behaviour:
      "Continue; new execution inspected: new id, policy, hash, process; provider as chosen now, possibly different.",
    source: lineageRow,
  },
  {
    id: "S1-26",
    behaviour:
      "Projected-only; continue: no attach, no resume flag or call, no native session id in argv, env or request.",
    source: lineageRow,
  },
  {
    id: "S1-27",
    behaviour:
      "Continue: only the snapshot, under a heading marking it as work state and not authority, plus seeded checkpoint pins.",
    source: lineageRow,
  },
  {
    id: "S1-28",
    behaviour:
      "Dead interactive session; reconnect attempt: there is nothing to attach to; the only way on is a new execution.",
    source: lineageRow,
  },
  {
    id: "S1-29",
    behaviour: "Root settles; to: a new snapshot is projected from its checkpoint.",
    source: lineageRow,
  },
  {
    id: "S1-30",
    behaviour:
      "Snapshot n, checkpoint, outcome; projection: file for n+1 with sha256 canonical digest; repeatable bit for bit.",
    source: lineageRow,
  },
  {
    id: "S1-31",
    behaviour:
      "A snapshot: objective, decisions, constraints, openItems, nextActions, outcomes; each line names its source execution.",
    source: lineageRow,
  },
  {
    id: "S1-32",
    behaviour: "Pins exceeding 32 KiB; projection: at most 32 768 bytes, same cut every time.",
    source: lineageRow,
  },
  {
    id: "S1-33",
    behaviour:
      "A cut happened; compaction record is read: from/to revision, dropped count, message range, input and output digests.",
    source: lineageRow,
  },
  {
    id: "S1-34",
    behaviour:
      "Checkpoint missing / hash wrong: degraded: true; only the outcome is added; that run's pins never arrive; older lines stay.",
    source: lineageRow,
  },
  {
    id: "S1-35",
    behaviour: "A run with chat but no pins; next run opens: it knows only the outcome of that run.",
    source: lineageRow,
  },
  {
    id: "S1-36",
    behaviour: "A decision pinned in run 1; run 2 opens: the decision is there.",
    source: lineageRow,
  },
  {
    id: "S1-37",
    behaviour:
      "Roots 1to3; policies are read: digests of rev 0, 1, 2 respectively; policy 3 alone proves its snapshot.",
    source: lineageRow,
  },
  {
    id: "S1-38",
    behaviour:
      "Snapshot file edited after writing; read / continue: THREAD_CONTEXT_TAMPERED, nothing opened, nothing rebuilt.",
    source: lineageRow,
  },
  {
    id: "S1-39",
    behaviour:
      "Root settled, transcript readable; history runs: entries messages/<seq> plus a completeness level.",
    source: lineageRow,
  },
  {
    id: "S1-40",
    behaviour: "Readable, known format; collect: complete.",
    source: lineageRow,
  },
  {
    id: "S1-41",
    behaviour: "Rotated file or broken lines; collect: partial, skipped = number of bad lines.",
    source: lineageRow,
  },
  {
    id: "S1-42",
    behaviour: "Transcript unreadable; collect: final-only, outcome kept.",
    source: lineageRow,
  },
  {
    id: "S1-43",
    behaviour: "Runtime without bridge; collect: unsupported; thread can still continue.",
    source: lineageRow,
  },
  {
    id: "S1-44",
    behaviour: "Roots complete, partial, unsupported; thread level: the worst.",
    source: lineageRow,
  },
  {
    id: "S1-45",
    behaviour: "Several settled roots; sync: collection repeated for all of them.",
    source: lineageRow,
  },
  {
    id: "S1-46",
    behaviour: "Sync done; sync again: no entry added; ids derive from native ids.",
    source: lineageRow,
  },
  {
    id: "S1-47",
    behaviour:
      "Tool input with a token, output of 10 KB: token redacted; 2 KiB tail kept with digest of the whole output, both after the filter.",
    source: lineageRow,
  },
  {
    id: "S1-48",
    behaviour: "History entries exist, no pins; projection: unchanged by them.",
    source: lineageRow,
  },
  {
    id: "S1-49",
    behaviour:
      "Index (status, revision, executions, currentContext, messages, compactions), context/, messages/, compactions/, lock.",
    source: lineageRow,
    leftOut: "the store is one file of SQLite, and its rows stand for such a folder",
  },
  {
    id: "S1-50",
    behaviour: "An entry file edited; it is read: digest mismatch error.",
    source: lineageRow,
  },
  {
    id: "S1-51",
    behaviour: "Any write; modes and method: dirs 0700, files 0600, temp file then rename then chmod.",
    source: lineageRow,
    provedBy: ["SEC-3"],
  },
  {
    id: "S1-52",
    behaviour: "Index write with revision other than previous + 1; commit: THREAD_REVISION_CONFLICT.",
    source: lineageRow,
  },
  {
    id: "S1-53",
    behaviour: "20 processes writing one thread; all finish: every update present, revisions contiguous.",
    source: lineageRow,
  },
  {
    id: "S1-54",
    behaviour:
      "Continue and delegate at once; run under lease tracing: a thread lease and a graph lease are never held together; no deadlock.",
    source: lineageRow,
  },
  {
    id: "S1-55",
    behaviour: "10 000 threads; get(id) / list: direct open without scanning / scan.",
    source: lineageRow,
  },
  {
    id: "S1-56",
    behaviour: "Several threads; any command without id and label: error; never 'the newest one'.",
    source: lineageRow,
  },
  {
    id: "S1-57",
    behaviour: "Records from before threads; read: thread is null, tree view says legacy-unthreaded.",
    source: lineageRow,
  },
  {
    id: "S1-58",
    behaviour: "Same; migration runs: no invented thread.",
    source: lineageRow,
  },
  {
    id: "S1-59",
    behaviour: "Any new root / child; read: every root has a thread; child has the parent's exact binding.",
    source: lineageRow,
  },
  {
    id: "S1-60",
    behaviour: "Threads in two workspaces; list: open ones of this workspace only.",
    source: lineageRow,
  },
  {
    id: "S1-61",
    behaviour:
      "Thread with a dead root; show: reconciled first, then executions, context and history printed.",
    source: lineageRow,
  },
  {
    id: "S1-62",
    behaviour: "Thread at rev n; context: current snapshot, each line with its source execution.",
    source: lineageRow,
  },
  {
    id: "S1-63",
    behaviour: "Stale ref says running, backend says gone; show: answer follows graph and backend.",
    source: lineageRow,
  },
  {
    id: "S1-64",
    behaviour: "Process vanished before settle; reconcile: closed as interrupted.",
    source: lineageRow,
  },
  {
    id: "S1-65",
    behaviour:
      "Reservation without graph, younger / older than the TTL; reconcile: left alone / interrupted.",
    source: lineageRow,
  },
  {
    id: "S1-66",
    behaviour:
      "Seed 1-64 happened; continue: that root's context is projected first, then the new root opens on it; no revision missing.",
    source: lineageRow,
  },
  {
    id: "S1-67",
    behaviour: "Settle lands while reconcile probes; both finish: the real outcome wins.",
    source: lineageRow,
  },
  {
    id: "S1-68",
    behaviour:
      "Crash between payload and index; next projection: orphan quarantined, projection repeated, same digest.",
    source: lineageRow,
  },
  {
    id: "S1-69",
    behaviour: "Snapshot rev k exists; a second write of rev k: refused; the file is immutable.",
    source: lineageRow,
  },
  {
    id: "S1-70",
    behaviour: "Start with a title; thread and first snapshot read: title stored; objective equals it.",
    source: lineageRow,
  },
];
