/** What the commands on threads are given, for as long as their caller waits. */
import { abortable, type Begin, type CallOptions } from "../platform/abortable.ts";
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
  });
}
