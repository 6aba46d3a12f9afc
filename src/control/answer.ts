/**
 * A response without calls: the run's answer, or an intermediate one (MBX-4, MBX-5, WRK-8). What is due decides, in the
 * commit that stores the answer.
 */
import type { RunId, WorkId } from "../protocol/ids.ts";
import type { Json } from "../protocol/json.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import type { Usage } from "../protocol/usage.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { joining } from "../mailbox/drain.ts";
import type { AssistantBody } from "../session/ports.ts";
import { type Accepted, appendItems, currentRun } from "./runs.ts";
import { recordStep } from "./steps.ts";
import type { Verdicts } from "./schema-checks.ts";
import { settleRun, type Settlement } from "./settle.ts";
import { must, type Transaction } from "./transaction.ts";
import { unreadOf } from "./unread.ts";

export interface Answered extends Accepted {
  readonly outcome: "settled" | "continues";
}

export function answerRun(
  tx: Transaction,
  runId: RunId,
  body: AssistantBody,
  usage: Usage,
  about: {
    readonly text: string;
    readonly wrapUp: "turn_limit" | "time_limit" | null;
    readonly verdicts: Verdicts;
  },
): Answered {
  const run = currentRun(tx, runId);
  if (about.wrapUp === null && moreIsDue(tx, run)) {
    return { ...recordStep(tx, runId, { ...body, phase: "intermediate" }, usage), outcome: "continues" };
  }
  const judged = judge(tx, run, about.verdicts);
  if (judged.repair.length > 0 && about.wrapUp === null) return repair(tx, runId, body, usage, judged.repair);
  const stored = recordStep(tx, runId, body, usage);
  settleRun(tx, runId, { ...outcomeOf(tx, run, about, judged), text: about.text });
  return { ...stored, outcome: "settled" };
}

/** The run's own word for its end (WRK-10): what its works end with, where they all end alike. */
function outcomeOf(
  tx: Transaction,
  run: RunRecord,
  about: { readonly text: string; readonly wrapUp: "turn_limit" | "time_limit" | null },
  { endings }: Judgement,
): Omit<Settlement, "text"> {
  if (about.wrapUp !== null) return { status: "failed", reason: about.wrapUp };
  const perWork = (id: WorkId) => endings.get(id);
  const open = run.serves.filter((id) => tx.store.work(id)?.state !== "ended");
  const error = open.length === 0 ? undefined : endings.get(open[0]!)?.error;
  if (error !== undefined && open.every((id) => endings.get(id)?.ending === "schema_failed")) {
    return { status: "failed", reason: "schema_failed", error, perWork };
  }
  return { status: "completed", reason: about.text.trim() === "" ? "empty_result" : "completed", perWork };
}

/**
 * Input that reopens the run after its answer (MBX-5; agents.md 47, 48): a steer, or trigger-turn mail that it was reserved
 * for and has not taken. With it the next request takes all that is there; other mail waits for the next run.
 */
function moreIsDue(tx: Transaction, run: RunRecord): boolean {
  return joining(unreadOf(tx.store, run.threadId), run).some(
    (mail) => mail.steer || (mail.trigger && mail.seq <= run.reservedSeq),
  );
}

interface Fault {
  readonly work: WorkRecord;
  readonly text: string;
}

interface Judgement {
  readonly endings: ReadonlyMap<WorkId, NonNullable<ReturnType<NonNullable<Settlement["perWork"]>>>>;
  readonly repair: readonly Fault[];
}

/** What is to follow from the verdicts of the served works that declare a schema. */
function judge(tx: Transaction, run: RunRecord, verdicts: Verdicts): Judgement {
  const endings = new Map<
    WorkId,
    { ending: "schema_failed" | "completed"; value?: Json; error?: WorkErrorOf }
  >();
  const repair: Fault[] = [];
  const works = run.serves
    .map((id) => must(tx.store.work(id), "work", id))
    .filter((work) => work.state !== "ended" && work.openUnder === 0)
    .filter((work) => work.outputSchema !== null);
  for (const work of works) {
    const checked = must(verdicts.get(work.id), "a verdict on the work", work.id);
    if (checked.ok) {
      endings.set(work.id, { ending: "completed", value: checked.value });
    } else if (work.schemaRepairs < tx.limits.schemaRepairs) {
      repair.push({ work, text: checked.fault });
    } else {
      const error = {
        code: "INVALID_ARGUMENT",
        message: `the answer does not satisfy the schema: ${checked.fault}`,
        status: null,
      };
      endings.set(work.id, { ending: "schema_failed", error });
    }
  }
  return { endings, repair };
}

type WorkErrorOf = { readonly code: string; readonly message: string; readonly status: null };

function repair(
  tx: Transaction,
  runId: RunId,
  body: AssistantBody,
  usage: Usage,
  faults: readonly Fault[],
): Answered {
  const stored = recordStep(tx, runId, { ...body, phase: "intermediate" }, usage);
  for (const { work } of faults) {
    tx.store.putWork({
      ...must(tx.store.work(work.id), "work", work.id),
      schemaRepairs: work.schemaRepairs + 1,
    });
  }
  const note: ItemBody = {
    kind: "context",
    topic: "schema_repair",
    text: faults
      .map(
        ({ work, text }) =>
          `The answer to ${work.id} does not satisfy its JSON Schema: ${text}. Answer again, with JSON alone.`,
      )
      .join("\n"),
  };
  const appended = appendItems(tx, stored.agent, stored.run, [note]);
  return {
    run: stored.run,
    agent: appended.agent,
    items: [...stored.items, ...appended.items],
    outcome: "continues",
  };
}
