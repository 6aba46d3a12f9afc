/** Making a thread without a run (lineage C3.1): a tree with a root and nothing under way, given back at once. */
import { CoppiceError, RejectedError } from "../protocol/errors.ts";
import { isThreadId, type ThreadId } from "../protocol/ids.ts";
import type { Continuity, Lineage } from "../protocol/thread.ts";
import type { StoreView } from "../store/port.ts";
import { noteAt, placeOfCommand, recallAt } from "../control/idempotency.ts";
import { requireTitle } from "./fork.ts";
import type { ThreadPorts } from "./ports.ts";
import { requireThread } from "./thread-view.ts";

/** A command on threads that may be given again. */
export interface Identified {
  /**
   * 1 to 128 characters, one command in the whole store: the same id and arguments again are no second effect and the same answer,
   * after a restart too; with other arguments they are refused (C3.12).
   */
  readonly commandId?: string | undefined;
}

/** What `threads.create` takes; what is left out comes from defaults. */
export interface ThreadOptions extends Identified {
  /** An id of one's own, free and of the form of ours; default: a new one. Nothing is ever joined (S1-17). */
  readonly id?: string;
  readonly title?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  readonly instructions?: string;
  readonly workspace?: string;
  readonly continuity?: Continuity;
  /** The thread below which it is listed. That gives it nothing: no context and no rights. */
  readonly parent?: string;
}

/** @throws RejectedError `THREAD_EXISTS`, `THREAD_NOT_FOUND` for the parent, `INVALID_ARGUMENT`. */
export async function createThread(
  ports: ThreadPorts,
  { commandId, ...options }: ThreadOptions,
): Promise<ThreadId> {
  const place = commandId === undefined ? null : placeOfCommand(commandId);
  const asked = { verb: "create", ...options };
  const made = (view: StoreView): ThreadId | undefined =>
    place === null ? undefined : recallAt<ThreadId>(view, place, asked);
  const before = await ports.store.read(made);
  if (before !== undefined) return before;
  const id = options.id ?? ports.ids.mint("thread");
  if (!isThreadId(id)) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      "the id is not one of a thread: `thread_` and 21 letters or digits; or leave it out.",
      { argument: "id" },
    );
  }
  if (options.title !== undefined) requireTitle(options.title);
  const lineage = await ports.store.read((view): Lineage => {
    requireFree(view, id);
    const parent = options.parent === undefined ? null : requireThread(view, options.parent);
    return {
      parentThreadId: parent?.threadId ?? null,
      relationshipToParent: null,
      rootThreadId: parent?.thread?.lineage.rootThreadId ?? parent?.threadId ?? id,
    };
  });
  try {
    await ports.make(id, options, lineage, (tx) => {
      if (place === null) return;
      // Whoever was faster has made it, and its answer is read below.
      const other = made(tx);
      if (other !== undefined) requireFree(tx, other);
      noteAt(tx, place, asked, id);
    });
  } catch (error) {
    const faster = await ports.store.read(made);
    if (faster !== undefined) return faster;
    // Whoever was faster has it, or had it.
    if (CoppiceError.is(error) && error.code === "NOT_OWNER")
      await ports.store.read((view) => requireFree(view, id));
    throw error;
  }
  return id;
}

export function requireFree(view: StoreView, id: ThreadId): void {
  if (view.agent(id) === undefined && view.tree(id) === undefined) return;
  throw new RejectedError(
    "THREAD_EXISTS",
    `a thread ${id} is in this store already; continue it, or leave the id out.`,
    { threadId: id },
  );
}
