/**
 * A store that fails on purpose: refused commits, crashes at a chosen commit, a store that hangs, hints that come late,
 * twice or in another order. It wraps any store and changes none of its rows itself.
 *
 * - F1 Every write through the wrapper has a number: 1, 2, 3 … in the order of the calls (`commit`, `send`, `command`,
 *   `claim`, `heartbeat`, `release`). A plan names writes by number.
 * - F2 After a crash the wrapper is dead: every call rejects with the same `CrashSignal`. The inner store is whole, and
 *   what opens it next sees what a process would see that was killed at that moment.
 */
import { z } from "zod";
import { check, functionOf, optionsOf, variantsOf, withMethods } from "../platform/check.ts";
import { CoppiceError, TransientError } from "../protocol/errors.ts";
import type { Store } from "../store/port.ts";

/** The process is as good as dead. No part of the runtime handles it; whoever injected it opens the store again. */
export class CrashSignal extends Error {
  override readonly name = "CrashSignal";
  readonly write: number;

  constructor(write: number, when: "before" | "after") {
    super(`Crashed ${when} write ${write}.`);
    this.write = write;
  }
}

/** The method of the store by which a write came. */
export type WriteKind = "commit" | "send" | "command" | "claim" | "heartbeat" | "release";

/** What happens to one write. */
export type Fault =
  /** Nothing is stored and the call rejects; the default error is `STORE_BUSY`. */
  | { readonly kind: "error"; readonly error?: CoppiceError }
  /** The write is stored and the caller is told that it failed, as when an answer is lost. */
  | { readonly kind: "error_after"; readonly error?: CoppiceError }
  | { readonly kind: "crash_before" }
  | { readonly kind: "crash_after" }
  /** The call waits for `resume()`. */
  | { readonly kind: "hang" }
  /** The write is stored, and its answer waits for `resume()`. */
  | { readonly kind: "hang_after" };

/** Which writes fail, and how. */
export interface FaultPlan {
  /** Asked once for each write. */
  readonly onWrite?: (write: number, kind: WriteKind) => Fault | null;
  /** `lost`: none come. `doubled`: each comes twice. `held`: they come newest first at `releaseHints()`. */
  readonly hints?: "as they come" | "lost" | "doubled" | "held";
}

/** A store that fails on purpose, and tells what it did. */
export interface FaultyStore extends Store {
  /** Writes asked for so far. */
  readonly writes: number;
  readonly crashed: boolean;
  /** Lets every write go on that hangs now. */
  resume(): void;
  releaseHints(): void;
}

const error = z.instanceof(CoppiceError).optional();
const faults = z.record(
  z.string().regex(/^[1-9][0-9]*$/, "is no number of a write; they count from 1"),
  variantsOf<Fault>({
    error: { error },
    error_after: { error },
    crash_before: {},
    crash_after: {},
    hang: {},
    hang_after: {},
  }),
);
const storeArguments = z.strictObject({
  inner: withMethods<Store>("is no store; give one such as `createMemoryStore()` returns", "read", "commit"),
  plan: optionsOf<FaultPlan>({
    onWrite: functionOf<NonNullable<FaultPlan["onWrite"]>>("is no function").optional(),
    hints: z.enum(["as they come", "lost", "doubled", "held"]).optional(),
  }),
});

/** Fails the writes with these numbers. @throws RejectedError `INVALID_ARGUMENT`. */
export function faultsAt(planned: Readonly<Record<number, Fault>>): FaultPlan {
  check("faultsAt", faults, planned);
  return { onWrite: (write) => planned[write] ?? null };
}

/** A store that fails or crashes where the plan says. @throws RejectedError `INVALID_ARGUMENT`. */
export function createFaultyStore(inner: Store, plan: FaultPlan): FaultyStore {
  check("createFaultyStore", storeArguments, { inner, plan });
  let writes = 0;
  let crash: CrashSignal | null = null;
  const hanging: (() => void)[] = [];
  let heldHints: (() => void)[] = [];

  function die(write: number, when: "before" | "after"): never {
    crash ??= new CrashSignal(write, when);
    throw crash;
  }

  /** What is asked of a dead process is never answered; here it fails, so that nothing is left waiting. */
  async function alive<T>(work: () => Promise<T>): Promise<T> {
    if (crash !== null) throw crash;
    const value = await work();
    // The process died while this was under way: its answer reaches nobody.
    if (crash !== null) throw crash as CrashSignal;
    return value;
  }

  function write<T>(kind: WriteKind, work: () => Promise<T>): Promise<T> {
    const number = (writes += 1);
    const fault = crash === null ? (plan.onWrite?.(number, kind) ?? null) : null;
    return alive(async () => {
      switch (fault?.kind) {
        case undefined:
          return work();
        case "error":
          throw fault.error ?? busy();
        case "crash_before":
          return die(number, "before");
        case "error_after":
          await work();
          throw fault.error ?? busy();
        case "crash_after":
          await work();
          return die(number, "after");
        case "hang":
          await new Promise<void>((resolve) => hanging.push(resolve));
          return alive(work);
        case "hang_after": {
          const value = await work();
          await new Promise<void>((resolve) => hanging.push(resolve));
          return value;
        }
      }
    });
  }

  function hint(callback: () => void): () => void {
    switch (plan.hints ?? "as they come") {
      case "lost":
        return () => undefined;
      case "doubled":
        return () => {
          callback();
          callback();
        };
      case "held":
        return () => void heldHints.push(callback);
      case "as they come":
        return callback;
    }
  }

  return {
    kind: inner.kind,
    name: inner.name,
    get writes() {
      return writes;
    },
    get crashed() {
      return crash !== null;
    },
    send: (mail) => write("send", () => inner.send(mail)),
    command: (record) => write("command", () => inner.command(record)),
    claim: (request) => write("claim", () => inner.claim(request)),
    heartbeat: (leases, leaseMs) => write("heartbeat", () => inner.heartbeat(leases, leaseMs)),
    release: (lease, options) => write("release", () => inner.release(lease, options)),
    commit: (lease, work) => write("commit", () => inner.commit(lease, work)),
    claimable: (limit, provenDead) => alive(() => inner.claimable(limit, provenDead)),
    read: (view) => alive(() => inner.read(view)),
    changes: () => alive(() => inner.changes()),
    onHint: (tree, callback) =>
      inner.onHint(
        tree,
        hint(() => void (crash === null && callback())),
      ),
    close: () => inner.close(),
    resume() {
      for (const go of hanging.splice(0)) go();
    },
    releaseHints() {
      const hints = heldHints;
      heldHints = [];
      for (const call of hints.reverse()) call();
    },
  };
}

function busy(): TransientError {
  return new TransientError("STORE_BUSY", "The store is locked; this fault was asked for. Try again.");
}
