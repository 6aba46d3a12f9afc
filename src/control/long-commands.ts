/**
 * Commands that ask a provider, or take several commits, as the owner of a tree finds them in its inbox (REC-2, lineage C3): they
 * go on beside all else. What waits for one stands in `inbox-order.ts`.
 *
 * - L1 The commit that ends one answers its row: what is rows alone is done and answered, or neither. A sync does the better part
 *   before it, the history of each run; after a crash in between the next owner does that again, to the same end. A restore writes
 *   files, and is not done again: that it was begun is stored before (`begun.ts`).
 * - L2 What an owner leaves under way stays in the inbox, for the next one. So does what failed because of the store, for another look.
 */
import { type CommandRecord, isLong, type LongCommandVerb } from "../protocol/command.ts";
import { CoppiceError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Begin } from "../platform/abortable.ts";
import { type Mark, markOf } from "./begun.ts";
import {
  answerCommand,
  answerOf,
  answerRefused,
  comesAgain,
  type Given,
  givenBy,
  noteAnswer,
  refuseCommand,
} from "./inbox.ts";
import { requireOfItsTree } from "./inbox-order.ts";
import type { Transaction } from "./transaction.ts";
import type { Tree } from "./tree.ts";

/** What a command calls on its way; all it is noted by. */
export interface Stages<Answer> {
  /** In the commit before its first effect. */
  readonly begin: Begin;
  /** For one whose effect is in no commit; null where nobody can ask for it again. */
  readonly mark: Mark | null;
  /** A part of the commit that ends it. */
  readonly done: (tx: Transaction, answer: Answer) => void;
  /** As `done`, of one that has had no effect: its id is free again. */
  readonly refused: (tx: Transaction, answer: Answer) => void;
}

type LongVerb = (tree: Tree, given: JsonObject, stages: Stages<JsonObject>) => Promise<JsonObject>;

/** By name; each answers what it has called `done` with. */
export type LongVerbs = Readonly<Record<LongCommandVerb, LongVerb>>;

/** False for a command of one commit. `ended` is told whether it is left in the inbox, for another look. */
export function beginLong(tree: Tree, command: CommandRecord, ended: (left: boolean) => void): boolean {
  const { verb } = command;
  if (verb === null || !isLong(verb)) return false;
  const act = tree.shared.longVerbs[verb];
  tree.commands.add(command.id);
  void answerLong(tree, command, act)
    .catch((error: unknown) => {
      // Not even its refusal could be stored.
      const { treeId, shared } = tree;
      shared.logger.warn({ treeId, commandId: command.id, err: error }, "a command could not be answered");
      return true;
    })
    .then((left) => {
      tree.commands.delete(command.id);
      ended(left);
    });
  return true;
}

/** True when it is left in the inbox. */
async function answerLong(tree: Tree, command: CommandRecord, act: LongVerb): Promise<boolean> {
  try {
    if (await answerKnown(tree, command)) return false;
    await tree.read((view) => requireOfItsTree(view, command));
    const given = givenBy(command);
    await act(tree, given.arguments, {
      // Whoever has left it in the inbox waits for nothing any more.
      begin: () => undefined,
      mark: markOf({ ...given, commandId: given.commandId ?? command.id }),
      done(tx, answer) {
        noteAnswer(tx, given, answer);
        answerCommand(tx, command, answer);
      },
      refused: (tx, answer) => answerRefused(tx, command, answer),
    });
    return false;
  } catch (error) {
    if (tree.state !== "owned" || isOfStore(error)) return true;
    try {
      // Somebody else may have done it meanwhile, under the same id.
      if (await answerKnown(tree, command)) return false;
      await tree.transact((tx) => refuseCommand(tx, command, error));
    } catch (conflict) {
      if (isOfStore(conflict)) throw conflict;
      await tree.transact((tx) => refuseCommand(tx, command, conflict));
    }
  }
  return false;
}

/** For somebody here, who waits for it. @throws as the verb. */
export async function doLong(
  tree: Tree,
  given: Given & { readonly verb: LongCommandVerb },
  begin: Begin,
): Promise<JsonObject> {
  const act = tree.shared.longVerbs[given.verb];
  try {
    return await act(tree, given.arguments, {
      begin,
      mark: markOf(given),
      done: (tx, answer) => noteAnswer(tx, given, answer),
      refused: () => undefined,
    });
  } catch (error) {
    return doneMeanwhile(tree, given, error);
  }
}

/**
 * The answer that was noted under its id by another one of the same command, while this one came to `error`.
 * @throws `error` where there is none; RejectedError `COMMAND_ID_CONFLICT`.
 */
async function doneMeanwhile(tree: Tree, given: Given, error: unknown): Promise<JsonObject> {
  if (!CoppiceError.is(error) || error.family !== "rejected") throw error;
  const known = await tree.read((view) => answerOf(view, given));
  if (known === undefined) throw error;
  return known;
}

/** @throws RejectedError `COMMAND_ID_CONFLICT`. */
async function answerKnown(tree: Tree, command: CommandRecord): Promise<boolean> {
  const given = givenBy(command);
  const known = await tree.read((view) => answerOf(view, given));
  if (known === undefined) return false;
  await tree.transact((tx) => answerCommand(tx, command, known));
  return true;
}

/** What a provider has failed with, for now or for good, is its answer. */
function isOfStore(error: unknown): boolean {
  return comesAgain(error) && CoppiceError.is(error) && !error.code.startsWith("PROVIDER_");
}
