/** A failure for people: the end of the event log, every agent in a line, and what the owner holds in memory. */
import type { TreeId } from "../../../src/protocol/ids.ts";
import type { StoreView } from "../../../src/store/port.ts";
import type { World } from "./world.ts";

/** Events of the log that a failure shows. */
const TAIL = Number(process.env["COPPICE_TAIL"] ?? 60);
const SHORT = 9;

export function describeStore(view: StoreView, treeId: TreeId | null): string {
  if (treeId === null) return "no tree";
  const lines: string[] = [];
  for (const event of view.events(treeId, Math.max(0, view.lastEvent(treeId) - TAIL), TAIL)) {
    const about = [event.path, event.runId?.slice(0, SHORT), event.workId?.slice(0, SHORT)].filter(
      (part) => typeof part === "string",
    );
    lines.push(`${event.seq} ${event.type} ${about.join(" ")} ${JSON.stringify(event.data).slice(0, 200)}`);
  }
  for (const agent of view.agents(treeId, "/root", { limit: 100, closed: true }).rows) {
    const run = agent.currentRun === null ? undefined : view.run(agent.currentRun);
    const box = view.mailbox(agent.threadId);
    const works = view.openWorksOf(agent.threadId).map((work) => `${work.id.slice(0, SHORT)} ${work.state}`);
    lines.push(
      `${agent.path} ${agent.state}, run ${run === undefined ? "none" : `${run.id.slice(0, SHORT)} ${run.status}`}, ` +
        `unread ${box.unread}, triggers ${box.triggers}, works ${works.join(", ") || "none"}`,
    );
  }
  return lines.join("\n");
}

export function describeMemory(world: World): string {
  const tree = world.owner?.handle?.control.tree;
  if (tree === undefined) return "nobody owns the tree";
  const { permits, residency, lane, starting, granted, sessions, runs } = tree;
  const lines = [
    `memory at the end: permits ${permits.inUse} of ${permits.limit}, residents ${residency.count} of ${residency.limit} ` +
      `(${residency.unloading} unloading), queue ${lane.size}, starting ${starting.size}, granted ${granted.size}, runs ${runs.size}`,
  ];
  for (const { agent, lifecycle, run, drive } of sessions.values()) {
    lines.push(
      `session ${agent.path} ${lifecycle.state}, run ${run?.id ?? "none"}${drive === null ? "" : ", driven"}`,
    );
  }
  return lines.join("\n");
}

export function withoutTrace(dump: string): string {
  return dump
    .split("\n")
    .filter((line) => !line.startsWith("trace"))
    .join("\n");
}
