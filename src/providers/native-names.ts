/**
 * Names that a provider with a loop of its own gives to its conversations and turns (lineage C1.7). An adapter is code of
 * others: what is no name is not stored as one.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { NativeThread } from "../protocol/native-events.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";

/** No provider has longer ones; what is longer is text. */
const LONGEST = 1024;

export function isName({ nativeId }: Pick<NativeRef, "nativeId">): boolean {
  return typeof nativeId === "string" && nativeId !== "" && nativeId.length <= LONGEST;
}

/** A turn that has a name; one without is not forked or rolled back at. */
export function namedTurn(turn: NativeRef | null): NativeRef | null {
  return turn !== null && isName(turn) ? turn : null;
}

/** @throws RejectedError `PROVIDER_PROTOCOL` for a conversation that could not be found again. */
export function named(thread: NativeThread): NativeThread {
  if (isName(thread.ref)) return { ...thread, head: namedTurn(thread.head) };
  throw new RejectedError(
    "PROVIDER_PROTOCOL",
    "the adapter of the provider answered with a conversation that has no name; it has to be mended.",
    {},
  );
}
