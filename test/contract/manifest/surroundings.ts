/** Between trees, policy, security, errors, observing: XTR, POL, SEC, ERR, OBS. */
import { type Contract, guarantee } from "./entry.ts";

export const surroundings: readonly Contract[] = [
  {
    id: "XTR-1",
    behaviour: "The six tools stay inside the tree; thread tools address roots by id, without authority.",
    source: guarantee,
  },
  {
    id: "XTR-2",
    behaviour: "Mail from another tree joins a live run, starts an idle root, or waits.",
    source: guarantee,
  },
  {
    id: "XTR-3",
    behaviour: "Input from outside the tree to an agent below its root is refused.",
    source: guarantee,
  },
  {
    id: "XTR-4",
    behaviour:
      "Waiting for threads is bounded and consumes no mail; sending needs approval where policy says so.",
    source: guarantee,
  },
  {
    id: "POL-1",
    behaviour: "Roles and arguments only narrow effects; widening is refused or clipped in sight.",
    source: guarantee,
  },
  {
    id: "POL-2",
    behaviour: "What is reported as effective is enforced, or the spawn is refused.",
    source: guarantee,
  },
  {
    id: "POL-3",
    behaviour: "Policy code knows nothing of threads, lineage or mail.",
    source: guarantee,
  },
  {
    id: "POL-4",
    behaviour: "Mode hints are sent when they change, in a fixed order of sources.",
    source: guarantee,
  },
  {
    id: "SEC-1",
    behaviour: "A caller is who its token says, never who a parameter says.",
    source: guarantee,
  },
  {
    id: "SEC-2",
    behaviour:
      "Network surfaces bind loopback, want a token, check where a request comes from, and bound its body.",
    source: guarantee,
    partly: "the daemon",
  },
  {
    id: "SEC-3",
    behaviour: "Files are private, and secrets are redacted wherever text leaves the store.",
    source: guarantee,
  },
  {
    id: "ERR-1",
    behaviour: "Errors stand in one list with codes, retryability and two texts each.",
    source: guarantee,
  },
  {
    id: "OBS-1",
    behaviour: "Each tree has one ordered durable event log; subscribers get a snapshot, then events.",
    source: guarantee,
  },
  {
    id: "OBS-2",
    behaviour: "Spans follow the GenAI conventions and link a background run to whoever asked.",
    source: guarantee,
  },
  {
    id: "OBS-3",
    behaviour: "The question why is answered from the log.",
    source: guarantee,
  },
  {
    id: "OBS-4",
    behaviour: "A slow or throwing observer disturbs nobody.",
    source: guarantee,
  },
  {
    id: "OBS-5",
    behaviour: "Activities carry the work's id, attach to the asking run, and prove nothing.",
    source: guarantee,
  },
  {
    id: "OBS-6",
    behaviour: "A run's context names its direct children, bounded, loaded ones first.",
    source: guarantee,
  },
];
