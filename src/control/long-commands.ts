/**
 * Commands that ask a provider, or take several commits, as the owner of a tree finds them in its inbox (REC-2, lineage C3): they
 * go on beside all else, and nothing waits for them.
 *
 * - L1 The commit that ends one answers its row, so that it is done and answered or neither.
 * - L2 What an owner leaves under way stays in the inbox, for the next one.
 */
import type { CommandRecord, CommandVerb } from "../protocol/command.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Begin } from "../platform/abortable.ts";
import { answerCommand, answerOf, givenBy, noteAnswer, refuseCommand } from "./inbox.ts";
import type { Transaction } from "./transaction.ts";
import type { Tree } from "./tree.ts";

/** A part of the commit that ends a command. */
export type Done = (tx: Transaction, answer: JsonObject) => void;

type LongVerb = (tree: Tree, given: JsonObject, done: Done, begin: Begin) => Promise<JsonObject>;

/** By name; each calls `begin` before its first effect and `done` in its last commit, and answers the same. */
export type LongVerbs = Readonly<Partial<Record<CommandVerb, LongVerb>>>;

/** False for a command of one commit. */
export function beginLong(tree: Tree, command: CommandRecord): boolean {
  const act = command.verb === null ? undefined : tree.shared.longVerbs[command.verb];
  if (act === undefined) return false;
  if (tree.commands.has(command.id)) return true;
  tree.commands.add(command.id);
  carryOutLong(tree, command, act)
    .catch((error: unknown) => {
      const { treeId, shared } = tree;
      shared.logger.warn({ treeId, commandId: command.id, err: error }, "a command could not be answered");
    })
    .finally(() => tree.commands.delete(command.id));
  return true;
}

async function carryOutLong(tree: Tree, command: CommandRecord, act: LongVerb): Promise<void> {
  try {
    const given = givenBy(command);
    const known = await tree.read((view) => answerOf(view, given));
    if (known !== undefined) return await tree.transact((tx) => answerCommand(tx, command, known));
    const done: Done = (tx, answer) => {
      noteAnswer(tx, given, answer);
      answerCommand(tx, command, answer);
    };
    // Whoever has left it in the inbox waits for nothing any more.
    await act(tree, given.arguments, done, () => undefined);
  } catch (error) {
    if (tree.state !== "owned") return;
    await tree.transact((tx) => refuseCommand(tx, command, error));
  }
}
