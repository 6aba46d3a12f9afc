/** What a scripted provider of its own loop is told to do wrong, method by method, and what it was called with. */
import { RejectedError } from "../../../protocol/errors.ts";

export const NATIVE_METHODS = [
  "openSession",
  "ensureThread",
  "resumeThread",
  "startTurn",
  "interruptTurn",
  "respond",
  "steerTurn",
  "forkThread",
  "rollbackThread",
  "readThread",
  "findForks",
  "close",
] as const;
/** A method of a session that a scripted provider of its own loop can be told to do wrong. */
export type NativeMethod = (typeof NATIVE_METHODS)[number];

/** What goes wrong with a call. */
export type NativeFault =
  /** Rejects, and does nothing. */
  | { readonly kind: "refuse"; readonly error: Error }
  /** Waits at a gate, before it does anything or when it has done it. */
  | { readonly kind: "hang"; readonly gate: string; readonly done: boolean }
  /** Does it, and dies before it can say so: the session is gone. */
  | { readonly kind: "crash" };

/** A call that a scripted provider of its own loop has had. */
export interface NativeCall {
  readonly method: NativeMethod;
  readonly path: string;
  readonly input: unknown;
}

/** Rejects with this error, and does nothing. */
export const refuse = (error: Error): NativeFault => ({ kind: "refuse", error });

/** Waits at a gate before it does anything, or with `done` when it has done it. */
export const hang = (gate: string, options: { readonly done?: boolean } = {}): NativeFault => ({
  kind: "hang",
  gate,
  done: options.done ?? false,
});

/** Does it and dies before it can say so; the session is gone. */
export const crashAfter = (): NativeFault => ({ kind: "crash" });

/** The provider wants to be signed in to: never a reason to try another way (lineage C5.14). */
export const unauthenticated = (): NativeFault =>
  refuse(
    new RejectedError("PROVIDER_UNAVAILABLE", "The provider is not signed in; sign in and try again.", {
      reason: "authentication",
    }),
  );

export class Faults {
  readonly #due = new Map<NativeMethod, NativeFault[]>();

  add(method: NativeMethod, fault: NativeFault, times: number): void {
    const due = this.#due.get(method) ?? [];
    for (let count = 0; count < times; count += 1) due.push(fault);
    this.#due.set(method, due);
  }

  take(method: NativeMethod): NativeFault | undefined {
    return this.#due.get(method)?.shift();
  }
}
