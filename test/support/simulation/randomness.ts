/** Seeded choices. A stream belongs to one place and one purpose, so that adding a draw elsewhere changes nothing here. */
import { seededRandom } from "../../../src/platform/ids.ts";

export interface Dice {
  /** 0 … below `count`. */
  below(count: number): number;
  chance(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** One of the keys, each as likely as its figure says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
}

export function dice(seed: number, ...purpose: readonly (string | number)[]): Dice {
  const random = seededRandom(hash([seed, ...purpose].join("|")));
  // The first figures of neighbouring seeds are alike.
  random.fraction();
  const below = (count: number): number => Math.floor(random.fraction() * count);
  return {
    below,
    chance: (probability) => random.fraction() < probability,
    pick: (from) => from[below(from.length)]!,
    weighted(weights) {
      const entries = Object.entries<number>(weights);
      let left = random.fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [key, weight] of entries) {
        left -= weight;
        if (left < 0) return key as keyof typeof weights;
      }
      return entries.at(-1)![0] as keyof typeof weights;
    },
  };
}

/** FNV-1a, mixed once more. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  return (value ^ (value >>> 13)) >>> 0;
}
