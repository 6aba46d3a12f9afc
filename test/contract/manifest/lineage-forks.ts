/** Forks and replay: rows S2-* of the lineage contract. */
import { type Contract, lineageRow } from "./entry.ts";

export const lineageForks: readonly Contract[] = [
  {
    id: "S2-1",
    behaviour:
      "A committed message; fork there: new session; uncommitted message to FORK_UNCOMMITTED_MESSAGE.",
    source: lineageRow,
  },
  {
    id: "S2-2",
    behaviour:
      "A session; session-level fork from any entry point: branch from the current tip, same result everywhere.",
    source: lineageRow,
  },
  {
    id: "S2-3",
    behaviour:
      "Replay fork; first user message sent: provider sees seed then message; transcript shows the message only.",
    source: lineageRow,
  },
  {
    id: "S2-4",
    behaviour: "Replay fork; second message sent: no seed.",
    source: lineageRow,
  },
  {
    id: "S2-5",
    behaviour: "Fork with ancestors; child transcript read: ancestors inline and read-only.",
    source: lineageRow,
  },
  {
    id: "S2-6",
    behaviour: "Long parent; scroll up: parent pages load by themselves.",
    source: lineageRow,
  },
  {
    id: "S2-7",
    behaviour: "Fork on a user message; child opens: composer holds that message.",
    source: lineageRow,
  },
  {
    id: "S2-8",
    behaviour: "Parent titled T; fork: T (fork 1); untitled stays untitled.",
    source: lineageRow,
  },
  {
    id: "S2-9",
    behaviour: "Child T (fork 1); fork it: T (fork 2), never T (fork 1) (fork 1).",
    source: lineageRow,
  },
  {
    id: "S2-10",
    behaviour: "ExclusiveFork fake; fork at a message: native fork at that point.",
    source: lineageRow,
  },
  {
    id: "S2-11",
    behaviour: "Codex-like fake; session-level fork / rollback to a point: both native.",
    source: lineageRow,
  },
  {
    id: "S2-12",
    behaviour: "ACP fake with / without fork; latest fork, auto: native / replay.",
    source: lineageRow,
  },
  {
    id: "S2-13",
    behaviour: "No native path, auto; fork: replay is used.",
    source: lineageRow,
  },
  {
    id: "S2-14",
    behaviour:
      "Any interactive fork entry; it is used: a strategy choice is requested before any work starts.",
    source: lineageRow,
  },
  {
    id: "S2-15",
    behaviour:
      "Agent + point support native; availability: native offered; not offered when either lacks support.",
    source: lineageRow,
  },
  {
    id: "S2-16",
    behaviour: "Replay chosen; child starts: seed within the size limit, fresh provider session.",
    source: lineageRow,
  },
  {
    id: "S2-17",
    behaviour:
      "New-session chosen; flow: ordinary creation with the conversation as removable source; no child created yet.",
    source: lineageRow,
  },
  {
    id: "S2-18",
    behaviour: "Explicit native, not available; fork: error; no child seeded by replay.",
    source: lineageRow,
  },
  {
    id: "S2-19",
    behaviour: "Explicit native, provider fails; fork: error returned; transfer failed; no replay child.",
    source: lineageRow,
  },
  {
    id: "S2-20",
    behaviour: "Explicit auto, provider fails; fork: daemon falls back by its rule.",
    source: lineageRow,
  },
  {
    id: "S2-21",
    behaviour: "Native fork takes an hour; wait: still in progress; no timeout of ours fires.",
    source: lineageRow,
  },
  {
    id: "S2-22",
    behaviour: "Native fork pending; adapter log: no readiness polling.",
    source: lineageRow,
  },
  {
    id: "S2-23",
    behaviour:
      "Fork at message k / session-level; seed built: contains transcript up to the cut / up to the tip, nothing later.",
    source: lineageRow,
  },
  {
    id: "S2-24",
    behaviour: "Summary mode on; seed built: summary first, then recent messages.",
    source: lineageRow,
  },
  {
    id: "S2-25",
    behaviour: "Replay fork; draft and transcript inspected: seed in neither.",
    source: lineageRow,
  },
  {
    id: "S2-26",
    behaviour:
      "First turn refused by the provider; user sends again: seed is sent again, exactly one delivery counted.",
    source: lineageRow,
  },
  {
    id: "S2-27",
    behaviour: "Parent with wide tools; child runs: child's own tools and policy apply.",
    source: lineageRow,
  },
  {
    id: "S2-28",
    behaviour: "Default settings; seed built: recent window only.",
    source: lineageRow,
  },
  {
    id: "S2-29",
    behaviour:
      "Summary mode + runs available: summary has goal, instructions, discoveries, accomplished, relevant files, then recent.",
    source: lineageRow,
  },
  {
    id: "S2-30",
    behaviour: "Summary mode, runs disabled; seed built: recent only, no error.",
    source: lineageRow,
  },
  {
    id: "S2-31",
    behaviour:
      "Limit set to N chars; seed built: total length incl. framing at most N; oldest dropped first.",
    source: lineageRow,
  },
  {
    id: "S2-32",
    behaviour:
      "Adapter with head granularity only; fork an older message with replay off: unavailable; with replay on to replay.",
    source: lineageRow,
  },
  {
    id: "S2-33",
    behaviour: "Fork view; rendered: own messages, ancestors, and a 'forked from' divider.",
    source: lineageRow,
  },
  {
    id: "S2-34",
    behaviour:
      "Pages loaded repeatedly; storage counted: no duplicate entries, nothing copied into the child.",
    source: lineageRow,
  },
  {
    id: "S2-35",
    behaviour: "Ancestor entry with an approval or tool action; used: refused; copy and deep link work.",
    source: lineageRow,
  },
  {
    id: "S2-36",
    behaviour:
      "Fork on a user message; cut computed: strictly before it; draft equals the original text exactly.",
    source: lineageRow,
  },
  {
    id: "S2-37",
    behaviour: "Fork on assistant / tool message; cut computed: includes it; no draft.",
    source: lineageRow,
  },
  {
    id: "S2-38",
    behaviour: "Fork on the first user message; fork: empty inheritance, draft filled, workspace kept.",
    source: lineageRow,
  },
  {
    id: "S2-39",
    behaviour:
      "Codex-like, latest committed state; session fork: native from that state, uncommitted tail excluded.",
    source: lineageRow,
  },
  {
    id: "S2-40",
    behaviour:
      "Active conversation; rollback to before a committed user message: later part removed natively.",
    source: lineageRow,
  },
  {
    id: "S2-41",
    behaviour: "That rollback; composer: holds that user message.",
    source: lineageRow,
  },
  {
    id: "S2-42",
    behaviour: "That rollback; transcript: removed messages stay, marked historical.",
    source: lineageRow,
  },
  {
    id: "S2-43",
    behaviour: "Metadata says an old alias (openai, gpt); capabilities resolved: treated as Codex.",
    source: lineageRow,
  },
  {
    id: "S2-44",
    behaviour: "OpenCode settings; no URL given / URL given: managed local server / that server.",
    source: lineageRow,
  },
  {
    id: "S2-45",
    behaviour: "OpenCode over ACP; latest fork with / without session/fork: native best effort / replay.",
    source: lineageRow,
  },
  {
    id: "S2-46",
    behaviour: "Saved: EXTERNAL_SERVER_URL_INVALID; loopback http/https origin accepted.",
    source: lineageRow,
  },
  {
    id: "S2-47",
    behaviour: "Explicit URL / managed server; session persisted: URL stored per session / nothing stored.",
    source: lineageRow,
  },
  {
    id: "S2-48",
    behaviour:
      "Managed server; second session on the machine; server killed: shared; restarted, new session not blocked.",
    source: lineageRow,
  },
  {
    id: "S2-49",
    behaviour: "Provider question event; ingested: structured user-question request, not a permission.",
    source: lineageRow,
  },
  {
    id: "S2-50",
    behaviour: "Pending question; answered: run resumes.",
    source: lineageRow,
  },
  {
    id: "S2-51",
    behaviour:
      "Old question after restart; opened / answered: read-only / REQUEST_NOT_RESUMABLE; run not stuck.",
    source: lineageRow,
  },
  {
    id: "S2-52",
    behaviour:
      "Fork seems to lack context; diagnostics read: resolved cut, strategy used, seed size and omissions are reported.",
    source: lineageRow,
  },
  {
    id: "S2-53",
    behaviour: "Explicit native failed; user re-forks with replay: works; nothing was downgraded before.",
    source: lineageRow,
  },
];
