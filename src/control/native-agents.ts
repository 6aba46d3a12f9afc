/** Agents of providers' own as they stand below agents of the tree: shown, and never gone on with here (lineage C8.1). */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { NativeChild } from "../protocol/provider-thread.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";
import type { StoreView } from "../store/port.ts";
import type { AgentSummary } from "./listing.ts";

export interface NativeAgent extends NativeChild {
  /** The agent in whose run it is. */
  readonly under: AgentPath;
}

/** Those of the newest run of each agent that had any, in the order of their start. */
export function nativeAgents(
  view: StoreView,
  agents: readonly Pick<AgentSummary, "path" | "threadId">[],
): readonly NativeAgent[] {
  return agents.flatMap(({ path, threadId }) => {
    const nodes = unlessCorrupt(() => view.providerThreadsOf(threadId), []).flatMap((record) =>
      record.child === undefined
        ? []
        : [{ run: record.nativeRunOrdinals.at(-1)?.[1] ?? 0, child: record.child }],
    );
    const newest = Math.max(...nodes.map(({ run }) => run));
    return nodes.filter(({ run }) => run === newest).map(({ child }) => ({ ...child, under: path }));
  });
}
