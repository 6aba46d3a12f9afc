/** A new tree: its record and its root, in one commit. */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { Limits } from "../protocol/limits.ts";
import type { Profile } from "../protocol/profile.ts";
import type { Lineage } from "../protocol/thread.ts";
import { NO_USAGE } from "../protocol/usage.ts";
import type { Shared } from "../control/shared.ts";
import { sha256 } from "../platform/digest.ts";
import type { Lease, Store, StoreTx } from "../store/port.ts";
import type { TreeOptions } from "./options.ts";
import { newAgent } from "../control/new-agent.ts";
import { newTreeRecord } from "../control/new-tree-record.ts";
import { requireFree } from "../threads/create.ts";

/** A tree that is made as a thread of a line. */
export interface NewThread {
  readonly lineage: Lineage;
  /** Written with it. */
  readonly within: (tx: StoreTx) => void;
}

export async function createTree(
  store: Store,
  lease: Lease,
  shared: Shared,
  defaults: { readonly limits: Limits; readonly profile: Profile },
  options: TreeOptions,
  config: AgentRecord["config"],
  made?: NewThread,
): Promise<void> {
  const { treeId } = lease;
  const token = shared.ids.mint("tok");
  await store.commit(lease, (tx) => {
    requireFree(tx, treeId);
    made?.within(tx);
    const now = tx.now();
    tx.putTree(
      newTreeRecord({
        treeId,
        title: options.title ?? null,
        profile: defaults.profile.name,
        limits: defaults.limits,
        createdAt: now,
        wakeOnAgentMessages: options.wakeOnAgentMessages ?? null,
      }),
    );
    const root = newAgent({
      threadId: treeId,
      treeId,
      path: ROOT_PATH,
      parent: null,
      depth: 0,
      config,
      hostDriven: options.hostDriven ?? false,
      tokenDigest: sha256(token),
      createdAt: now,
      createdBy: "user",
      thread: {
        title: options.title ?? null,
        continuity: options.continuity ?? "resume-native",
        lineage: made?.lineage ?? { parentThreadId: null, relationshipToParent: null, rootThreadId: treeId },
      },
    });
    // What a host uses in its own loop is not known until it says so (HDR-5).
    tx.putAgent(root.hostDriven ? { ...root, usage: { ...NO_USAGE, complete: false } } : root);
    tx.appendEvent(treeId, shared.ids.mint("evt"), now, {
      type: "tree.opened",
      path: ROOT_PATH,
      threadId: treeId,
      runId: null,
      workId: null,
      data: { profile: defaults.profile.name, provider: config.provider, model: config.model },
    });
  });
}
