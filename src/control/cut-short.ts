/**
 * A response that was cut off at the model's limit of output, or by a filter. Neither is an answer: what was being written may
 * be half of one, or a call that was never made. The model is told so once; then the run fails with what it has said (WRK-3).
 */
import type { RunId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import type { Usage } from "../protocol/usage.ts";
import type { AssistantBody } from "../session/ports.ts";
import type { Answered } from "./answer.ts";
import { appendItems, currentRun, itemsOfRun } from "./runs.ts";
import { settleRun } from "./settle.ts";
import { recordStep } from "./steps.ts";
import type { Transaction } from "./transaction.ts";

type Cut = "length" | "content_filter";

const GO_ON: ItemBody = {
  kind: "context",
  topic: "cut_short",
  text: "Your response was cut off: it reached the most that you may write at once. A call that you were writing was not made, and what you said was handed to nobody. Go on with a shorter response: split a long call into several, and if it was your answer, give it again, whole and shorter.",
};

const ERRORS = {
  length: {
    code: "RESPONSE_TOO_LONG",
    message: "the model reached its limit of output, and again when it was asked to be shorter.",
    status: null,
  },
  content_filter: {
    code: "RESPONSE_FILTERED",
    message: "the provider's filter cut the response off.",
    status: null,
  },
} as const satisfies Record<Cut, RunRecord["error"]>;

export function cutRunShort(
  tx: Transaction,
  runId: RunId,
  body: AssistantBody,
  usage: Usage,
  about: {
    readonly cut: Cut;
    readonly text: string;
    readonly wrapUp: "turn_limit" | "time_limit" | null;
  },
): Answered {
  const run = currentRun(tx, runId);
  if (about.cut === "length" && about.wrapUp === null && !wasToldSo(tx, run)) {
    const stored = recordStep(tx, runId, { ...body, phase: "intermediate" }, usage);
    const { agent, items } = appendItems(tx, stored.agent, stored.run, [GO_ON]);
    return { run: stored.run, agent, items: [...stored.items, ...items], outcome: "continues" };
  }
  const stored = recordStep(tx, runId, body, usage);
  // A limit that has been reached is why there was no time for more.
  const why =
    about.wrapUp === null
      ? ({ reason: "failed", error: ERRORS[about.cut] } as const)
      : { reason: about.wrapUp };
  settleRun(tx, runId, { status: "failed", ...why, text: about.text });
  return { ...stored, outcome: "settled" };
}

/** Since its last response: a run that made calls meanwhile has gone on, and is told again. */
function wasToldSo(tx: Transaction, run: RunRecord): boolean {
  const items = itemsOfRun(tx, run);
  const since = items.slice(items.findLastIndex((item) => item.kind === "assistant") + 1);
  return since.some((item) => item.kind === "context" && item.topic === "cut_short");
}
