/** A demo that another process runs: followed from the store until it has ended, or its owner is gone. */
import { delay, systemClock } from "../../platform/clock.ts";
import { TreeReader } from "../../runtime/tree-reader.ts";
import { demoOf } from "../demo/find-demo.ts";
import { createShow } from "../screen/show.ts";
import type { DemoEnd, DemoRun } from "./demo.ts";
import { printStart } from "./demo-report.ts";

const LOOK_MS = 100;
const PAGE = 500;

/** Null when nobody owns the tree any more and the job is not done. */
export async function watchDemo(run: DemoRun): Promise<DemoEnd | null> {
  const { terminal, store, options } = run;
  const { tree } = run.found!;
  const reader = new TreeReader(store, tree.treeId);
  const startedAt = systemClock.monotonic();
  const owner = await reader.owner();
  if (owner !== null) terminal.note(`Process ${owner.pid} still runs it; this one only watches.`);
  printStart(terminal, store, tree.treeId, run.dir, options.json === true, "watched");
  const look = {
    title: `Process ${owner?.pid ?? "?"} has a tree of agents look through ${run.dir}`,
    agents: async () => (await reader.agents({ limit: 30 })).agents,
    residents: null,
  };
  const show = createShow(terminal, look, options.json === true);
  let cursor = await reader.lastEvent();
  try {
    for (;;) {
      const gone = (await reader.owner()) === null;
      for (const event of await reader.log(cursor, PAGE)) {
        cursor = event.seq;
        show.event(event);
      }
      const { asked } = await demoOf(store, tree);
      if (asked !== null && asked.outcome !== null) return { reader, outcome: asked.outcome, startedAt };
      if (gone) return null;
      await delay(systemClock, LOOK_MS, terminal.signal);
    }
  } finally {
    await show.end();
  }
}
