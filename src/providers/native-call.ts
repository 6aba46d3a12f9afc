/** The one way to the optional methods of a native session: a method that is there and a capability that is not are no use. */
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { NativeAdapter, NativeSession } from "./port.ts";

type Optional = "steerTurn" | "forkThread" | "rollbackThread" | "readThread" | "findForks";

const FLAGS: Readonly<
  Record<Optional, { readonly name: string; readonly has: (can: ThreadCapabilities) => boolean }>
> = {
  steerTurn: { name: "turns.steer", has: (can) => can.turns.steer },
  forkThread: { name: "threads.fork", has: (can) => can.threads.fork !== "none" },
  rollbackThread: { name: "threads.rollback", has: (can) => can.threads.rollback !== "none" },
  readThread: { name: "threads.read", has: (can) => can.threads.read !== "none" },
  findForks: { name: "threads.fork", has: (can) => can.threads.fork !== "none" },
};

export function hasNative(session: NativeSession, method: Optional): boolean {
  return session[method] !== undefined && FLAGS[method].has(session.negotiated);
}

/**
 * An optional method, bound to its session.
 * @throws RejectedError `PROVIDER_CAPABILITY_MISSING` naming the capability.
 */
export function nativeCall<M extends Optional>(
  session: NativeSession,
  method: M,
): Required<NativeSession>[M] {
  const found = session[method];
  if (found === undefined || !hasNative(session, method)) throw capabilityMissing(FLAGS[method].name);
  return found.bind(session) as Required<NativeSession>[M];
}

export function capabilityMissing(capability: string, why = "the session says so"): RejectedError {
  return new RejectedError(
    "PROVIDER_CAPABILITY_MISSING",
    `The provider cannot do this: ${capability} is missing (${why}).`,
    { capability },
  );
}

/** Whether a record with this driver's name is the adapter's own: its name has changed at times. */
export function isDriverOf(adapter: Pick<NativeAdapter, "driver" | "aliases">, driver: string): boolean {
  return adapter.driver === driver || (adapter.aliases ?? []).includes(driver);
}
