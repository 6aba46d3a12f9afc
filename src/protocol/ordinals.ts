/**
 * Sets of run ordinals as ranges, both ends inside, sorted, disjoint and never adjacent: a thread of ten thousand runs on
 * one provider is one pair (lineage C20.16).
 */
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

/** Those of `a` that are not in `b`. */
export function without(a: readonly OrdinalRange[], b: readonly OrdinalRange[]): readonly OrdinalRange[] {
  let left: OrdinalRange[] = [...a];
  for (const [from, to] of b) {
    left = left.flatMap(([start, end]): OrdinalRange[] => {
      if (to < start || from > end) return [[start, end]];
      return [
        ...(start < from ? [[start, from - 1] as const] : []),
        ...(end > to ? [[to + 1, end] as const] : []),
      ];
    });
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
  return a.some(([from, to]) => b.some(([start, end]) => from <= end && start <= to));
}

export function countOrdinals(ranges: readonly OrdinalRange[]): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** `1 to 5, 9` */
export function describeOrdinals(ranges: readonly OrdinalRange[]): string {
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from} to ${to}`)).join(", ");
}
