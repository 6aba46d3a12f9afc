/** Ids: nanoid over a 62-letter alphabet with an injected source of randomness (design, "Fixed details"). */
import { customRandom } from "nanoid";
import type { IdPrefix } from "../protocol/ids.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH = 21;

export interface Ids {
  /** A fresh id with the given prefix, such as `msg_` and 21 letters. */
  mint<P extends IdPrefix>(prefix: P): `${P}_${string}`;
}

/** Randomness as the runtime sees it. */
export interface Random {
  bytes(count: number): Uint8Array;
  /** At least 0, below 1. */
  fraction(): number;
}

/** Bytes are taken from a pool: a call of the system for each id costs more than the id. */
const POOL = 8192;
let pool = new Uint8Array(0);
let used = 0;

function pooledBytes(count: number): Uint8Array {
  if (used + count > pool.length) {
    pool = crypto.getRandomValues(new Uint8Array(Math.max(POOL, count)));
    used = 0;
  }
  used += count;
  return pool.subarray(used - count, used);
}

export const systemRandom: Random = {
  bytes: pooledBytes,
  fraction: () => Math.random(),
};

export function createIds(random: Random): Ids {
  const next = customRandom(ALPHABET, LENGTH, (count) => random.bytes(count));
  return { mint: (prefix) => `${prefix}_${next()}` };
}

/** Deterministic randomness (mulberry32), for tests and simulation. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    fraction,
    bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(fraction() * 256)),
  };
}

/** A fresh UUID, for programs of others that take no other ids (RFC 9562, version 4). */
export function uuid(random: Random): string {
  const bytes = Uint8Array.from(random.bytes(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
