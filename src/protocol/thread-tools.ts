/** What agents may do between trees (XTR): a policy of the runtime. */
import { z } from "zod";

export const threadToolsSchema = z.strictObject({
  /** `read`: look at threads and wait for them. `all`: also make and fork threads, send to them and merge forks back. */
  allow: z.enum(["none", "read", "all"]),
  /**
   * Whether somebody is asked first when an agent makes or forks a thread, sends to one, or merges into one that is not its
   * own. `ask` (default): the call waits for an answer, as a question of the agent does. A host-driven root has no run that
   * could wait, so its calls are refused then. `agents`: the same, but calls of a host-driven root go on, as its host asks by
   * itself.
   */
  approval: z.enum(["ask", "agents", "none"]).default("ask"),
});
/** Given to `createRuntime`; without it agents stay in their tree. */
export type ThreadToolsPolicy = z.input<typeof threadToolsSchema>;

/** Threads that one call may make (lineage C18.14). */
export const MOST_NEW_THREADS = 20;
