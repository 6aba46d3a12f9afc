/** What can be done to threads in one commit, by name, as another process leaves it in a tree's inbox (REC-2). */
import { COMMAND_ARGUMENTS } from "../protocol/command.ts";
import { check } from "../platform/check.ts";
import type { Verbs } from "../control/transaction.ts";
import { editHandoff } from "./handoffs.ts";
import { inject } from "./inject.ts";
import { mergeBack } from "./merge-back.ts";
import { undoRollback } from "./rollback-undo.ts";
import { continueThread, discardDraft, pin, rename, select, selectionOf } from "./verbs.ts";

export const THREAD_VERBS: Verbs = {
  continue(tx, given, by) {
    const { thread, ...input } = check("continue", COMMAND_ARGUMENTS.continue, given);
    const work = continueThread(tx, thread, by, input);
    return { work_id: work.id };
  },
  select(tx, given) {
    const { thread, provider, ...rest } = check("select", COMMAND_ARGUMENTS.select, given);
    const choice = provider === null ? null : selectionOf({ provider, ...rest });
    return { revision: select(tx, thread, choice).revision };
  },
  rename(tx, given) {
    const { thread, title } = check("rename", COMMAND_ARGUMENTS.rename, given);
    return { revision: rename(tx, thread, title).revision };
  },
  pin(tx, given) {
    const { thread, section, text } = check("pin", COMMAND_ARGUMENTS.pin, given);
    return { pin_id: pin(tx, thread, section, text).pinId };
  },
  merge_back(tx, given) {
    const { fork, into, run = null } = check("merge_back", COMMAND_ARGUMENTS.merge_back, given);
    const made = mergeBack(tx, { fork, target: into, run, createdBy: "user" });
    return { transfer_id: made.id, nothing_new: made.nothingNew };
  },
  discard_draft(tx, given) {
    const { thread } = check("discard_draft", COMMAND_ARGUMENTS.discard_draft, given);
    discardDraft(tx, thread);
    return {};
  },
  undo_rollback(tx, given) {
    const { thread } = check("undo_rollback", COMMAND_ARGUMENTS.undo_rollback, given);
    return { revision: undoRollback(tx, thread).revision };
  },
  edit_handoff(tx, given) {
    const { handoff, text } = check("edit_handoff", COMMAND_ARGUMENTS.edit_handoff, given);
    return { handoff_id: editHandoff(tx, handoff, text).id };
  },
  inject(tx, given) {
    return { transfer_id: inject(tx, check("inject", COMMAND_ARGUMENTS.inject, given).transfer).id };
  },
};
