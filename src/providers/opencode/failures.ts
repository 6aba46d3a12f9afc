/** What a session tells that did not get what it wanted of OpenCode. */
import { CoppiceError, RejectedError, TransientError } from "../../protocol/errors.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";

/** It has said no; a name that is none it answers as a fault of its own. */
export function isAnswer(error: unknown): error is CoppiceError {
  return CoppiceError.is(error) && typeof error.details["status"] === "number";
}

export function isNotThere(error: unknown): boolean {
  return error instanceof RejectedError && error.details["status"] === 404;
}

export function notWaitedFor(id: string): RejectedError {
  return new RejectedError("REQUEST_NOT_RESUMABLE", `nothing waits for an answer to ${id}.`, { id });
}

export function busy({ nativeId: thread }: NativeRef): TransientError {
  return new TransientError(
    "PROVIDER_WRITER_BUSY",
    "Somebody else has a turn under way in OpenCode's conversation; let it end first.",
    { thread },
  );
}

export function notResumed(ref: NativeRef, why: string, cause?: unknown): TransientError {
  return new TransientError("PROVIDER_RESUME_FAILED", `${why}.`, { thread: ref.nativeId }, { cause });
}

/** Nothing tells whether it got there. */
export function isStalled(error: unknown): boolean {
  return CoppiceError.is(error) && error.code === "PROVIDER_STALLED";
}

export function notTaken(deadlineMs: number): TransientError {
  return new TransientError("PROVIDER_STALLED", "OpenCode did not say in time that it has taken the turn.", {
    deadlineMs,
  });
}

export function closed(): TransientError {
  return new TransientError(
    "PROVIDER_UNREACHABLE",
    "The session was closed before OpenCode had taken the turn.",
    {},
  );
}

export function refused(why: string): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", `OpenCode refused: ${why}.`, {});
}

/** An empty answer is one, too. */
export function unanswered(turn: string): RejectedError {
  return new RejectedError("PROVIDER_PROTOCOL", "OpenCode has ended the turn without an answer.", { turn });
}
