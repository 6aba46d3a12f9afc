/**
 * A fork at a user's wish: planned from one look at the store, then made in the commit of a tree of its own. The same request
 * id gives the same fork (lineage C5.6).
 */
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { ForkDraft } from "../protocol/thread.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { untilMended } from "../control/until-mended.ts";
import { noteAt, type Place, placeOfCommand, recallAt } from "../control/idempotency.ts";
import { sha256 } from "../platform/digest.ts";
import type { StoreView } from "../store/port.ts";
import { type CapabilitiesOf, type ForkPlan, type ForkRequest, planFork, writeFork } from "./fork.ts";
import { capabilitiesOf, type ThreadPorts } from "./ports.ts";
import { documentOf, requireThread, type ThreadDocument } from "./thread-view.ts";

/** A fork that was made. */
export interface ForkedThread {
  readonly thread: ThreadDocument;
  /** Pending until the first run gets its context. */
  readonly transfer: TransferRecord;
  /** The message of the user that it was cut before. */
  readonly draft: ForkDraft | null;
}

/** What a fork would be. @throws RejectedError of the codes of C5. */
export async function planOf(ports: ThreadPorts, request: ForkRequest): Promise<ForkPlan> {
  const capabilities = await capabilitiesOf(ports.providers);
  return mendingSource(ports, request, () =>
    ports.store.read((view) => planFork(view, request, capabilities, ports.lineage)),
  );
}

/** A row of the source that cannot be read is set aside in its own tree, as for whoever needs it there. */
async function mendingSource<T>(
  ports: ThreadPorts,
  { source }: ForkRequest,
  attempt: () => Promise<T>,
): Promise<T> {
  const { treeId } = await ports.store.read((view) => requireThread(view, source));
  return untilMended(attempt, {
    treeId,
    shared: ports,
    commit: (plan) => ports.apply(treeId, plan),
  });
}

/** @throws RejectedError of the codes of C5; `COMMAND_ID_CONFLICT` for an id of another fork. */
export async function makeFork(
  ports: ThreadPorts,
  request: ForkRequest,
  commandId: string | undefined,
): Promise<ForkedThread> {
  if (request.policy.strategy === "new_session") {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      "a new session is no fork: create a thread, with the source's reference as its context where that is wanted.",
      { argument: "strategy", value: request.policy.strategy },
    );
  }
  const { store, provenDead } = ports;
  const capabilities = await capabilitiesOf(ports.providers);
  const threadId = await mendingSource(
    ports,
    request,
    async () =>
      (await store.read((view) => forkOf(view, ports, request, capabilities, commandId))) ??
      (await commitFork(ports, request, capabilities, commandId)),
  );
  return store.read((view) => {
    const agent = requireThread(view, threadId);
    return {
      thread: documentOf(view, agent, provenDead),
      transfer: view.transfer(agent.thread!.forkedFrom!.transferId)!,
      draft: view.draft(threadId) ?? null,
    };
  });
}

/** The fork that was made for its ids; null where it is still to be made, and can be. */
function forkOf(
  view: StoreView,
  { lineage }: ThreadPorts,
  request: ForkRequest,
  capabilities: CapabilitiesOf,
  commandId: string | undefined,
): ThreadId | null {
  for (const place of placesOf(view, request, commandId)) {
    const known = recallAt<ThreadId>(view, place, request);
    if (known !== undefined) return known;
  }
  planFork(view, request, capabilities, lineage);
  return null;
}

function placesOf(view: StoreView, request: ForkRequest, commandId: string | undefined): Place[] {
  const { requestId } = request.policy;
  const { treeId } = requireThread(view, request.source);
  return [
    ...(commandId === undefined ? [] : [placeOfCommand(commandId)]),
    ...(requestId === null ? [] : [{ treeId, key: `fork:${requestId}` }]),
  ];
}

function commitFork(
  ports: ThreadPorts,
  request: ForkRequest,
  capabilities: CapabilitiesOf,
  commandId: string | undefined,
): Promise<ThreadId> {
  const { store, ids, lineage } = ports;
  const threadId = ids.mint("thread");
  return ports.withNewTree(threadId, (lease) =>
    store.commit(lease, (tx) => {
      // Whoever was faster has made it.
      const made = forkOf(tx, ports, request, capabilities, commandId);
      if (made !== null) return made;
      const plan = planFork(tx, request, capabilities, lineage);
      for (const place of placesOf(tx, request, commandId)) noteAt(tx, place, request, threadId);
      const tokenDigest = sha256(ids.mint("tok"));
      writeFork(tx, plan, request, {
        threadId,
        transferId: ids.mint("xfr"),
        eventId: ids.mint("evt"),
        tokenDigest,
      });
      return threadId;
    }),
  );
}
