/** What the commands on threads are given, for as long as their caller waits. */
import { CoppiceError, RejectedError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { abortable, type Begin, type CallOptions } from "../platform/abortable.ts";
import type { AgentControl } from "../control/agent-control.ts";
import type { ThreadPorts } from "../threads/ports.ts";

/** Does something with ports whose first commit is none when the caller has left before it. */
export function portsWhile<T>(
  ports: ThreadPorts,
  { signal }: CallOptions,
  act: (ports: ThreadPorts, begin: Begin) => Promise<T>,
): Promise<T> {
  return abortable(signal, (begin) => {
    const waited: ThreadPorts = {
      ...ports,
      open: (tree) => ports.open(tree, { signal }),
      apply: (tree, plan) =>
        ports.apply(tree, (tx) => {
          begin();
          return plan(tx);
        }),
      make: (tree, options, lineage, within) =>
        ports.make(tree, options, lineage, (tx) => {
          begin();
          within(tx);
        }),
      withNewTree: (tree, act) =>
        ports.withNewTree(tree, (lease) => {
          begin();
          return act(lease);
        }),
    };
    return act(waited, begin);
  }).catch((error: unknown) => {
    throw leftToOwner(error);
  });
}

/** What a program can do about a tree of another process (REC-2); any other failure is as it was. */
function leftToOwner(error: unknown): unknown {
  if (!CoppiceError.is(error) || error.code !== "NOT_OWNER") return error;
  const { treeId, owner } = error.details as { treeId?: string; owner?: { pid: number; host: string } };
  if (treeId === undefined || owner === undefined) return error;
  return new RejectedError(
    "NOT_OWNER",
    `process ${owner.pid} on ${owner.host} owns the tree ${treeId}; leave the command in its inbox, by ` +
      `commandTree(store, "${treeId}", verb, arguments), or ask again when it has given the tree back.`,
    error.details,
    error,
  );
}

/** Where it is another process's, the refusal names the work that was asked for before, and is the answer to `known`. */
export function openFor(
  ports: ThreadPorts,
  treeId: TreeId,
  known: JsonObject | undefined,
): Promise<AgentControl> {
  return ports.open(treeId).catch((error: unknown) => {
    if (known === undefined || !CoppiceError.is(error) || error.code !== "NOT_OWNER") throw error;
    const details = { ...error.details, workId: known["work_id"]! };
    throw new RejectedError("NOT_OWNER", error.message, details, error);
  });
}

/** What a look after a command is given of its options. */
export function callOf({ signal }: CallOptions): CallOptions {
  return { signal };
}
