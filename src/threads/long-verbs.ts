/** What can be done to threads by the owner of their tree alone, for it asks a provider or takes several commits (C3, REC-2). */
import { COMMAND_ARGUMENTS } from "../protocol/command.ts";
import type { JsonObject } from "../protocol/json.ts";
import { check } from "../platform/check.ts";
import type { HandoffRecord } from "../protocol/transfer.ts";
import type { LongVerbs, Stages } from "../control/long-commands.ts";
import { removeCheckpoint, restoreCheckpoint } from "./checkpoints.ts";
import { regenerateHandoff } from "./handoffs.ts";
import { IN_PARTS } from "./in-parts.ts";
import type { ThreadPorts } from "./ports.ts";
import { rollBack } from "./rollback.ts";
import { requireThread } from "./thread-view.ts";

/** The ports are asked for late: what stands behind them is made of what this is a part of. */
export function longVerbs(ports: () => ThreadPorts): LongVerbs {
  return {
    async rollback(tree, given, stages) {
      const { thread, ...options } = check("rollback", COMMAND_ARGUMENTS.rollback, given);
      const { threadId } = await tree.read((view) => requireThread(view, thread));
      return asJson(await rollBack(tree, threadId, options, answering(stages, asJson)));
    },
    async regenerate_handoff(tree, given, stages) {
      const { handoff } = check("regenerate_handoff", COMMAND_ARGUMENTS.regenerate_handoff, given);
      return named(await regenerateHandoff(tree, handoff, answering(stages, named)));
    },
    archive: (_, given, { done }) => IN_PARTS.archive(ports(), given, done),
    sync: (_, given, { done }) => IN_PARTS.sync(ports(), given, done),
    async restore_checkpoint(tree, given, stages) {
      const asked = check("restore_checkpoint", COMMAND_ARGUMENTS.restore_checkpoint, given);
      return asJson(await restoreCheckpoint(ports(), tree, asked, answering(stages, asJson)));
    },
    async remove_checkpoint(tree, given, stages) {
      const asked = check("remove_checkpoint", COMMAND_ARGUMENTS.remove_checkpoint, given);
      return asJson(await removeCheckpoint(ports(), tree, asked, answering(stages, asJson)));
    },
  };
}

/** The same, with the answer in the verb's own terms. */
function answering<Answer>(
  stages: Stages<JsonObject>,
  wordsOf: (answer: Answer) => JsonObject,
): Stages<Answer> {
  return {
    ...stages,
    done: (tx, answer) => stages.done(tx, wordsOf(answer)),
    refused: (tx, answer) => stages.refused(tx, wordsOf(answer)),
  };
}

function named({ id }: HandoffRecord): JsonObject {
  return { handoff_id: id };
}

function asJson(answer: object): JsonObject {
  return answer as unknown as JsonObject;
}
