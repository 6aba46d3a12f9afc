/**
 * Commands of several commits that run nothing (lineage C3.7, C13.7). Each of their commits is the owner's, or that of a claim for
 * it alone: a thread whose tree nobody owns is not opened for them.
 *
 * - P1 A part that is done again comes to the same end, and the last commit alone notes that the command is done: what was cut
 *   short is carried out from its beginning by whoever finds it next.
 */
import { COMMAND_ARGUMENTS } from "../protocol/command.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { JsonObject } from "../protocol/json.ts";
import { check } from "../platform/check.ts";
import type { Stages } from "../control/long-commands.ts";
import { pruneCheckpoints } from "./checkpoints.ts";
import { collectHistory, syncHistory } from "./history.ts";
import type { ThreadPorts } from "./ports.ts";
import { requireThread } from "./thread-view.ts";
import { archive } from "./verbs.ts";

type Done = Stages<JsonObject>["done"];

/** Null for `done`: nobody asks again whether it was done. */
type InParts = (ports: ThreadPorts, given: JsonObject, done: Done | null) => Promise<JsonObject>;

export const IN_PARTS: Readonly<Record<"archive" | "sync", InParts>> = {
  async archive(ports, given, done) {
    const { thread } = check("archive", COMMAND_ARGUMENTS.archive, given);
    const { state, treeId } = await ports.store.read((view) => requireThread(view, thread));
    // Afterwards nothing is collected any more (C1.1); one that is open is refused, and changes nothing.
    if (state === "closed") await collectHistory(ports, thread);
    if (state !== "archived") await ports.apply(treeId, (tx) => archive(tx, thread));
    await pruneCheckpoints(ports, thread);
    return end(ports, thread, done, ({ revision }) => ({ revision }));
  },
  async sync(ports, given, done) {
    const { thread, run } = check("sync", COMMAND_ARGUMENTS.sync, given);
    await syncHistory(ports, thread, run);
    return end(ports, thread, done, (agent) => ({ messages: agent.thread?.messages ?? 0 }));
  },
};

async function end(
  ports: ThreadPorts,
  id: string,
  done: Done | null,
  answerOf: (agent: AgentRecord) => JsonObject,
): Promise<JsonObject> {
  const agent = await ports.store.read((view) => requireThread(view, id));
  if (done === null) return answerOf(agent);
  return ports.apply(agent.treeId, (tx) => {
    const answer = answerOf(tx.agent(agent.threadId));
    done(tx, answer);
    return answer;
  });
}
