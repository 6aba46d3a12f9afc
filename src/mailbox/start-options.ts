/** How a run is started by the mail that starts it (MBX-14, agents.md 46). Pure; queue-only mail never has a say. */
import type { RunId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { RunCause } from "../protocol/run.ts";

export interface MergedStart {
  /** All trigger-turn mail of the batch, oldest first. */
  readonly causes: readonly RunCause[];
  /** Kept only where all causes name the same one. */
  readonly parentRunId: RunId | null;
  /** The first cause's, and only where that one names a parent. */
  readonly rootRunId: RunId | null;
  /** The latest cause's choice; absent when that one made none, whatever earlier ones chose. */
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
}

export type StartingMail = Pick<MailRecord, "id" | "trigger" | "workId" | "start">;

/** @param batch in order of delivery. */
export function mergeStartOptions(batch: readonly StartingMail[]): MergedStart {
  const triggers = batch.filter((mail) => mail.trigger);
  const first = triggers[0]?.start ?? null;
  const latest = triggers.at(-1)?.start ?? null;
  const parent = named(first?.parentRunId);
  return {
    causes: triggers.map((mail) => ({ mailId: mail.id, workId: mail.workId })),
    parentRunId: triggers.every((mail) => named(mail.start?.parentRunId) === parent) ? parent : null,
    rootRunId: parent === null ? null : named(first?.rootRunId),
    ...(latest?.provider === undefined ? {} : { provider: latest.provider }),
    ...(latest?.model === undefined ? {} : { model: latest.model }),
    ...(latest?.effort === undefined ? {} : { effort: latest.effort }),
  };
}

/** A blank id, such as one taken over from outside, names nothing. */
function named(id: RunId | null | undefined): RunId | null {
  return id === null || id === undefined || id.trim() === "" ? null : id;
}
