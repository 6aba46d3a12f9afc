/**
 * Sets of run ordinals as ranges, both ends inside, sorted, disjoint and never adjacent: a thread of ten thousand runs on
 * one provider is one pair (lineage C20.16).
 */

/** Runs from one number to another, both of them inside. */
export type OrdinalRange = readonly [from: number, to: number];

export const NO_ORDINALS: readonly OrdinalRange[] = [];

/** Every ordinal of either set. */
export function unite(a: readonly OrdinalRange[], b: readonly OrdinalRange[]): readonly OrdinalRange[] {
  const united: [number, number][] = [];
  for (const [from, to] of [...a, ...b].toSorted((x, y) => x[0] - y[0])) {
    const last = united.at(-1);
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else united.push([from, to]);
  }
  return united;
}

/** Those of `a` that are not in `b`, whose order is no matter; each range is looked at once. */
export function without(a: readonly OrdinalRange[], b: readonly OrdinalRange[]): readonly OrdinalRange[] {
  const gone = unite(b, NO_ORDINALS);
  const left: OrdinalRange[] = [];
  let at = 0;
  for (const [from, to] of a) {
    while (at < gone.length && gone[at]![1] < from) at += 1;
    let start = from;
    for (let next = at; next < gone.length && gone[next]![0] <= to; next += 1) {
      const [first, last] = gone[next]!;
      if (start < first) left.push([start, first - 1]);
      start = last + 1;
    }
    if (start <= to) left.push([start, to]);
  }
  return left;
}

export function addOrdinal(ranges: readonly OrdinalRange[], ordinal: number): readonly OrdinalRange[] {
  const last = ranges.at(-1);
  // The common case: the next run of the same provider thread.
  if (last !== undefined && ordinal === last[1] + 1) return [...ranges.slice(0, -1), [last[0], ordinal]];
  return unite(ranges, [[ordinal, ordinal]]);
}

export function holdsOrdinal(ranges: readonly OrdinalRange[], ordinal: number): boolean {
  return ranges.some(([from, to]) => from <= ordinal && ordinal <= to);
}

/** Whether the two sets share an ordinal. */
export function overlap(a: readonly OrdinalRange[], b: readonly OrdinalRange[]): boolean {
  let at = 0;
  for (const [from, to] of a) {
    while (at < b.length && b[at]![1] < from) at += 1;
    if (at < b.length && b[at]![0] <= to) return true;
  }
  return false;
}

export function countOrdinals(ranges: readonly OrdinalRange[]): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** `1 to 5, 9`; with `most` not all may be listed: `1 to 5, 9 and 12 more ranges`. */
export function describeOrdinals(ranges: readonly OrdinalRange[], most = ranges.length): string {
  const listed = ranges.slice(0, most).map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`));
  const more = ranges.length - listed.length;
  return more === 0 ? listed.join(", ") : `${listed.join(", ")} and ${more} more ranges`;
}
