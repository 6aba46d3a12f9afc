/** Records that stand in for broken rows of all kinds: what these have in common (REC-1, `broken-rows.ts`). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RuntimeEvent } from "../protocol/events.ts";
import type { WorkOutcome } from "../protocol/work.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { MendableTable } from "../store/port.ts";
import type { Transaction } from "./transaction.ts";

/** What is left to do once all stand-ins are stored: fill in what other rows tell, then let follow what follows. */
export interface StandIn {
  /** Of an agent: what stands above is completed before it. */
  readonly depth?: number;
  complete(): void;
  end(): void;
}

export const NOTHING: StandIn = { complete: () => undefined, end: () => undefined };

/** What the tree's log tells of a broken row, oldest first. */
export type Log = (id: string) => readonly RuntimeEvent[];

const PAGE = 500;

/** The log is read once for all rows, by the first that asks: few can be told from columns and neighbours alone. */
export function logOf(tx: Transaction, ids: ReadonlySet<string>): Log {
  let known: Map<string, RuntimeEvent[]> | null = null;
  const read = (): Map<string, RuntimeEvent[]> => {
    const found = new Map<string, RuntimeEvent[]>(Array.from(ids, (id) => [id, []]));
    for (let after = 0; ;) {
      const page = tx.store.events(tx.treeId, after, PAGE);
      for (const event of page) {
        found.get(event.workId ?? "")?.push(event);
        const { requestId } = event.data;
        if (typeof requestId === "string") found.get(requestId)?.push(event);
        if (event.type === "agent.spawned") found.get(event.threadId ?? "")?.push(event);
      }
      if (page.length < PAGE) return found;
      after = page.at(-1)!.seq;
    }
  };
  return (id) => (known ??= read()).get(id) ?? [];
}

/** Names the row in the log of the tree. */
export function tellAside(
  tx: Transaction,
  agent: Pick<AgentRecord, "path" | "threadId">,
  table: MendableTable,
  id: string,
  open: boolean,
): void {
  tx.emit("record.set_aside", agent, {}, { table, id, open });
}

export function itemsOf(tx: Transaction, { threadId, items }: AgentRecord): readonly TranscriptItem[] {
  return tx.store.items(threadId, 0, items);
}

/** What is said of a record that was set aside, to whoever waited for it. */
export function unreadableRecord(what: string): NonNullable<WorkOutcome["error"]> {
  return {
    code: "STORE_CORRUPT",
    message: `the stored record of the ${what} cannot be read; what it did is in the transcript of its agent`,
    status: null,
  };
}
