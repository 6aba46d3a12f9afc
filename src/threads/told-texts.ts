/**
 * What a run would be told, for those who only want to know or to write it anew: planned again for as long as a text that
 * has no room teaches the plan another way, as a start does (lineage C4, C10).
 */
import type { ChooseSummariser } from "../lineage/handoff/summarise.ts";
import { NOTHING_TRIED, type StartMemory } from "../control/start-facts.ts";
import { type BuiltText, buildTexts } from "../control/start-build.ts";
import type { Planned } from "../control/start-run.ts";

/** `plan` answers `planned: null` where nothing can be planned. @throws RejectedError as `buildTexts`. */
export async function toldTexts<T extends { readonly planned: Planned | null }>(
  summariser: ChooseSummariser,
  plan: (memory: StartMemory) => Promise<T>,
): Promise<T & { readonly texts: readonly BuiltText[] }> {
  let memory = NOTHING_TRIED;
  for (;;) {
    const found = await plan(memory);
    if (found.planned === null) return { ...found, texts: [] };
    const texts = await buildTexts(summariser, found.planned, new AbortController().signal);
    if (!("teaches" in texts)) return { ...found, texts };
    memory = { ...memory, ...texts.teaches };
  }
}
