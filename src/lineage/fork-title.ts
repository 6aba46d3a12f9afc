/**
 * Titles of forks (lineage C16): `T`, `T (fork 1)`, `T (fork 2)` and so on, however deep the forks go.
 *
 * - I1 Only the exact trailing form is a fork's number; anything else is part of the title.
 * - I2 A title that would be too long loses the end of its base, between two code points and never inside one. Forks of
 *   such a title are still counted together, for their bases were shortened in the same way.
 */
import { TITLE_CHARACTERS } from "../protocol/lineage-limits.ts";

const FORK = /^(?<base>.+) \(fork (?<number>[1-9][0-9]*)\)$/su;

/**
 * The title of a new fork; null for a fork of an untitled thread. A title that somebody gives wins and does not get here.
 * @param live Titles of the threads of the same root that are not archived, the parent's too.
 */
export function forkTitle(parent: string | null, live: Iterable<string | null>): string | null {
  if (parent === null) return null;
  const { base, number } = parse(parent);
  let highest = number;
  for (const title of live) {
    const other = title === null ? null : parse(title);
    if (other !== null && other.number > highest && other.base === fitting(base, other.number)) {
      highest = other.number;
    }
  }
  return `${fitting(base, highest + 1n)}${suffix(highest + 1n)}`;
}

function parse(title: string): { readonly base: string; readonly number: bigint } {
  const groups = FORK.exec(title)?.groups;
  const number = BigInt(groups?.["number"] ?? 0);
  // A number that leaves the next one no room for a title is part of the title.
  if (groups === undefined || suffix(number + 1n).length > TITLE_CHARACTERS / 2)
    return { base: title, number: 0n };
  return { base: groups["base"]!, number };
}

function suffix(number: bigint): string {
  return ` (fork ${number})`;
}

/** As much of the base as leaves room for the number. */
function fitting(base: string, number: bigint): string {
  const room = TITLE_CHARACTERS - suffix(number).length;
  if (base.length <= room) return base;
  let fitted = "";
  for (const character of base) {
    if (fitted.length + character.length > room) break;
    fitted += character;
  }
  return fitted;
}
