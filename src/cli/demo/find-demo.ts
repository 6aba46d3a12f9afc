/** Demos of a store: the newest tree that one has made, and how far its job is. */
import type { TreeRecord } from "../../protocol/agent.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { Store } from "../../store/port.ts";
import { allPages } from "../all-pages.ts";
import { DEMO_ASK, DEMO_TITLE } from "./job.ts";

export interface FoundDemo {
  readonly tree: TreeRecord;
  readonly dir: string | null;
  /** The newest time that the job was asked for; null when it was never. */
  readonly asked: WorkRecord | null;
  /** How often it was asked for. */
  readonly times: number;
}

const PAGE = 100;

export async function newestDemo(store: Store): Promise<FoundDemo | null> {
  const pages = allPages((after) => store.read((view) => view.trees({ limit: PAGE, after })));
  for await (const { rows } of pages) {
    const tree = rows.find((row) => row.title === DEMO_TITLE);
    if (tree !== undefined) return demoOf(store, tree);
  }
  return null;
}

export async function demoOf(store: Store, tree: TreeRecord): Promise<FoundDemo> {
  let asked: WorkRecord | null = null;
  let times = 0;
  const pages = allPages((after) => store.read((view) => view.works(tree.treeId, { limit: PAGE, after })));
  for await (const { rows } of pages) {
    for (const work of rows) {
      if (work.executor !== tree.treeId || work.objective !== DEMO_ASK) continue;
      asked = work;
      times += 1;
    }
  }
  const root = await store.read((view) => view.agent(tree.treeId));
  return { tree, dir: root?.config.workspace ?? null, asked, times };
}
