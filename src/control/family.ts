/** Ways through a tree: up from an agent to the root, and over everything at or below one. */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { Page, PageRequest, StoreView } from "../store/port.ts";

const PAGE = 500;

/** The agent itself, then each above it, the root last. */
export function* lineOf(view: StoreView, from: AgentRecord): Generator<AgentRecord> {
  for (let at: AgentRecord | undefined = from; at !== undefined;) {
    yield at;
    at = at.parent === null ? undefined : view.agent(at.parent);
  }
}

/**
 * Every agent at or below a path, sorted by path; closed ones only when asked for.
 * @throws as `wholePage`.
 */
export function* agentsUnder(
  view: StoreView,
  tree: TreeId,
  under: AgentPath,
  closed = false,
): Generator<AgentRecord> {
  yield* allOf((page) =>
    wholePage(view.agents(tree, under, { ...page, closed }), (path) => view.agentAt(tree, path as AgentPath)),
  );
}

/**
 * A page that leaves nothing out; `read` reads one that it has passed over.
 * @throws RejectedError `STORE_CORRUPT` at that one: who owns the tree mends it, and looks again (REC-1).
 */
export function wholePage<T>(page: Page<T>, read: (name: string) => unknown): Page<T> {
  for (const name of page.unreadable ?? []) read(name);
  return page;
}

/** The rows of all pages of a list. */
export function* allOf<T>(read: (page: PageRequest) => Page<T>): Generator<T> {
  for (let after: string | null = null; ;) {
    const page: Page<T> = read({ limit: PAGE, after });
    yield* page.rows;
    after = page.next;
    if (after === null) return;
  }
}
