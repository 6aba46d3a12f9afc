/** A thread for the pure decisions of `lineage/`, laid over the store. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadReader } from "../lineage/thread-reader.ts";
import type { StoreView } from "../store/port.ts";

export function readerOf(view: StoreView, agent: AgentRecord): ThreadReader {
  const { threadId, thread, runs, items } = agent;
  const own = <R extends { readonly threadId: string }>(record: R | undefined): R | undefined =>
    record?.threadId === threadId ? record : undefined;
  return {
    threadId,
    runs,
    items,
    rolledBack: thread?.rolledBack ?? [],
    voided: thread?.voided ?? [],
    inherits: (thread?.forkedFrom ?? null) !== null,
    run: (id) => own(view.run(id)),
    runAt: (ordinal) => view.runAt(threadId, ordinal),
    // A checkpoint is named after its run.
    runOfCheckpoint(id) {
      const run = own(view.run(`run_${id.slice("ckp_".length)}`));
      return run?.checkpoint?.id === id ? run : undefined;
    },
    // A page that begins before the first item begins with it.
    item: (index) => (index < 0 ? undefined : view.items(threadId, index, 1)[0]),
    providerThread: (id) => {
      const record = view.providerThread(id);
      return record?.appThreadId === threadId ? record : undefined;
    },
  };
}
