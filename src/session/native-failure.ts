/** Whose failure an error is: the provider's, which a run is settled with, or the runtime's own, which it is not. */
import { CoppiceError, describeError, RejectedError } from "../protocol/errors.ts";

/** True for what an adapter throws; errors of the store and interruptions are nobody's answer to a request. */
export function isProviderFailure(error: unknown): boolean {
  if (!CoppiceError.is(error)) return true;
  return /^(PROVIDER|MODEL|SCRIPT|CONTEXT)_/.test(error.code) || error.code === "REQUEST_NOT_RESUMABLE";
}

/** What an adapter has thrown, as the provider's failure whatever it was: an adapter is code of others (P2). */
export function asProviderFailure(error: unknown): unknown {
  if (isProviderFailure(error)) return error;
  return new RejectedError(
    "PROVIDER_PROTOCOL",
    `the adapter of the provider threw what is no error of a provider: ${describeError(error)}`,
    {},
    error,
  );
}

/** The provider is gone, and nobody knows what it did last. */
export function isUnreachable(error: unknown): boolean {
  return CoppiceError.is(error) && error.code === "PROVIDER_UNREACHABLE";
}

/** The provider does not find its conversation. */
export function isResumeFailed(error: unknown): boolean {
  return CoppiceError.is(error) && error.code === "PROVIDER_RESUME_FAILED";
}
