/**
 * Checks of schemas and answers before the commits that need their verdicts (WRK-8): a group of commits has no end of
 * them, and would hold up the heartbeats of every tree of the process. One is done a turn of the event loop.
 */
import type { WorkId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { checkAnswer, type Checked, markSound } from "./output-schema.ts";
import type { Tree } from "./tree.ts";

/** Verdicts on one text by the works that it answers; only works that declare a schema have one. */
export type Verdicts = ReadonlyMap<WorkId, Checked>;

const NONE: Verdicts = new Map();

/** Looks at a schema that is about to be asked for; `requireOutputSchema` says what came of it. */
export function prepareSchema({ shared }: Tree, schema: JsonObject): Promise<void> {
  return shared.checks.run(() => markSound(schema));
}

export async function verdictsOn(tree: Tree, works: readonly WorkId[], text: string): Promise<Verdicts> {
  const declared = await tree.look(({ store }) =>
    works.flatMap((id) => {
      const schema = store.work(id)?.outputSchema ?? null;
      return schema === null ? [] : [{ id, schema }];
    }),
  );
  if (declared.length === 0) return NONE;
  const schemas = declared.map(({ schema }) => schema);
  const checked = await tree.shared.checks.run(() => checkAnswer(text, schemas));
  return new Map(declared.map(({ id }, index) => [id, checked[index]!]));
}
