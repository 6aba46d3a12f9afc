/** What the books of a demo must hold. */
import type { Place, Row } from "./cli.ts";

/** Every work of the job, as the books must have them, once each. */
export const WORKS = [
  "/root completed",
  "/root/counter completed",
  "/root/reader completed",
  "/root/reader completed",
  "/root/searcher completed",
  "/root/searcher interrupted",
];

export async function worksOf(place: Place): Promise<string[]> {
  const works = await place.rows("works");
  return works.map((work: Row) => `${work.executorPath} ${work.outcome?.ending}`).toSorted();
}
