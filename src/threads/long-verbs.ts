/** What can be done to threads by the owner of their tree alone, for it asks a provider or takes several commits (C3, REC-2). */
import { COMMAND_ARGUMENTS } from "../protocol/command.ts";
import type { JsonObject } from "../protocol/json.ts";
import { check } from "../platform/check.ts";
import type { HandoffRecord } from "../protocol/transfer.ts";
import type { LongVerbs } from "../control/long-commands.ts";
import type { Transaction } from "../control/transaction.ts";
import { removeCheckpoint, restoreCheckpoint } from "./checkpoints.ts";
import { regenerateHandoff } from "./handoffs.ts";
import { IN_PARTS } from "./in-parts.ts";
import type { ThreadPorts } from "./ports.ts";
import { rollBack, type RolledBack } from "./rollback.ts";
import { requireThread } from "./thread-view.ts";

/** The ports are asked for late: what stands behind them is made of what this is a part of. */
export function longVerbs(ports: () => ThreadPorts): LongVerbs {
  return {
    async rollback(tree, given, done, begin, mark) {
      const { thread, ...options } = check("rollback", COMMAND_ARGUMENTS.rollback, given);
      const { threadId } = await tree.read((view) => requireThread(view, thread));
      const ended = (tx: Transaction, answer: RolledBack): void => done(tx, asJson(answer));
      return asJson(await rollBack(tree, threadId, options, ended, begin, mark));
    },
    async regenerate_handoff(tree, given, done, begin) {
      const { handoff } = check("regenerate_handoff", COMMAND_ARGUMENTS.regenerate_handoff, given);
      const ended = (tx: Transaction, { id }: HandoffRecord): void => done(tx, { handoff_id: id });
      const made = await regenerateHandoff(tree, handoff, ended, begin);
      return { handoff_id: made.id };
    },
    archive: (_, given, done) => IN_PARTS.archive(ports(), given, done),
    sync: (_, given, done) => IN_PARTS.sync(ports(), given, done),
    async restore_checkpoint(tree, given, done, begin, mark) {
      const asked = check("restore_checkpoint", COMMAND_ARGUMENTS.restore_checkpoint, given);
      const ended = (tx: Transaction, answer: object): void => done(tx, asJson(answer));
      return asJson(await restoreCheckpoint(ports(), tree, asked, ended, begin, mark));
    },
    async remove_checkpoint(tree, given, done, begin) {
      const asked = check("remove_checkpoint", COMMAND_ARGUMENTS.remove_checkpoint, given);
      const ended = (tx: Transaction, answer: object): void => done(tx, asJson(answer));
      return asJson(await removeCheckpoint(ports(), tree, asked, ended, begin));
    },
  };
}

function asJson(answer: object): JsonObject {
  return answer as unknown as JsonObject;
}
