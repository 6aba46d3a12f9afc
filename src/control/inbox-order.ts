/**
 * Which of the commands in a tree's inbox are to be carried out now (REC-2, lineage C3).
 *
 * - Q1 Commands of one thread are carried out in the order in which they were left. One that takes its time goes on beside the
 *   commands of other threads; the next one of its own thread waits for its end, if it takes its time too.
 * - Q2 What changes with its end what a run would go by keeps back every later command of its thread, save what stops somebody,
 *   answers somebody, or changes nothing that it looks at.
 * - Q3 No more than `LONG_AT_ONCE` are under way in a tree. The others stay in the inbox.
 */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import { type CommandRecord, type CommandVerb, isLong } from "../protocol/command.ts";
import type { CommandId, HandoffId, ThreadId, TransferId, TreeId } from "../protocol/ids.ts";
import type { Json } from "../protocol/json.ts";
import { CoppiceError, RejectedError } from "../protocol/errors.ts";
import type { StoreView } from "../store/port.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";
import { resolveTarget } from "./resolve-target.ts";

export const LONG_AT_ONCE = 4;

/** In their order. `underWay` was looked at before the store: one that has ended since is not begun again. */
export function dueCommands(
  view: StoreView,
  tree: TreeId,
  underWay: ReadonlySet<CommandId>,
): readonly CommandRecord[] {
  const busy = new Set<string | null>();
  const kept = new Set<string | null>();
  let places = LONG_AT_ONCE - underWay.size;
  return view.pendingCommands(tree).filter((command) => {
    const { id, verb } = command;
    // What could not be read is refused by whoever carries it out.
    if (verb === null) return true;
    const thread = threadOf(view, command);
    if (!isLong(verb)) return !kept.has(thread) || passes(verb, command);
    const begins = !underWay.has(id) && places > 0 && !busy.has(thread);
    if (begins) places -= 1;
    busy.add(thread);
    if (KEEPS.has(verb)) kept.add(thread);
    return begins;
  });
}

/** The conversation, the text or the files that the next run begins with are others afterwards. */
const KEEPS: ReadonlySet<CommandVerb> = new Set(["rollback", "regenerate_handoff", "restore_checkpoint"]);

const PASSES: ReadonlySet<CommandVerb> = new Set(["interrupt", "close", "answer", "raise_budget", "rename"]);

function passes(verb: CommandVerb, { arguments: given }: CommandRecord): boolean {
  return PASSES.has(verb) && given["politely"] !== true;
}

/** The thread that a command is about; null where none is named, or none is there. */
function threadOf(view: StoreView, { treeId, arguments: given }: CommandRecord): string | null {
  const { thread, handoff, transfer, fork, into, target } = given;
  if (isText(thread)) return thread;
  // One that cannot be read is refused by whoever carries the command out.
  if (isText(handoff)) return unlessCorrupt(() => view.handoff(handoff as HandoffId), null)?.threadId ?? null;
  if (isText(transfer))
    return unlessCorrupt(() => view.transfer(transfer as TransferId), null)?.targetThreadId ?? null;
  if (isText(fork)) return isText(into) ? into : treeId;
  if (!isText(target)) return null;
  try {
    return resolveTarget(view, treeId, ROOT_PATH, target).threadId;
  } catch (error) {
    // Its answer, when it is carried out.
    if (CoppiceError.is(error) && error.family === "rejected") return null;
    throw error;
  }
}

/** @throws RejectedError `INVALID_ARGUMENT` for a command about a thread of another tree: whoever owns that is to carry it out. */
export function requireOfItsTree(view: StoreView, command: CommandRecord): void {
  const thread = threadOf(view, command) as ThreadId | null;
  const treeId = thread === null ? undefined : view.agent(thread)?.treeId;
  if (treeId === undefined || treeId === command.treeId) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `${thread} is a thread of ${treeId}; leave the command in the inbox of that tree.`,
    { thread, tree: treeId },
  );
}

function isText(given: Json | undefined): given is string {
  return typeof given === "string";
}
