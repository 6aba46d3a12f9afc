/** Which provider, model and effort a run is to use. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { MergedStart } from "../mailbox/start-options.ts";

/** What a run is to use: chosen with its mail, for the thread's next run, or for all of them. */
export function chosenProvider(
  { config, thread }: AgentRecord,
  merged: Pick<MergedStart, "provider" | "model" | "effort">,
): Pick<RunRecord, "provider" | "model" | "effort"> {
  const selection = thread?.selection ?? null;
  const provider = merged.provider ?? selection?.provider ?? config.provider;
  // A model and an effort belong to the provider that they were chosen with.
  const before =
    provider === selection?.provider
      ? selection
      : provider === config.provider
        ? config
        : { model: null, effort: null };
  return { provider, model: merged.model ?? before.model, effort: merged.effort ?? before.effort };
}
