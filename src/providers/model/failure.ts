/**
 * Whatever a language model throws or streams as an error, as one of the runtime's errors (P2, RUN-4). Errors of the AI SDK
 * are known by their markers, never by class: several copies of its packages may be loaded at once.
 *
 * - A status that repeating cannot cure, and any error that says so itself, is PROVIDER_REFUSED; 429, 500, 503, 529 and
 *   409 are PROVIDER_OVERLOADED; a connection that failed or broke, 408, 502 and 504 are PROVIDER_UNREACHABLE. A quota that is
 *   used up is a refusal, whatever its status: waiting brings none of it back. A time-out of somebody else's is PROVIDER_STALLED.
 * - Details name provider, model, status, request id, type and code. Headers, bodies and the SDK's error object, which
 *   hold keys and transcripts, go no further; what looks like a key is cut out of the vendor's text (SEC-3).
 */
import type { JsonObject } from "../../protocol/json.ts";
import { CoppiceError, RejectedError, TransientError } from "../../protocol/errors.ts";
import { redact } from "../../platform/redact.ts";
import { headBytes } from "../../platform/text.ts";

/** Whose failure it is. */
export interface Subject {
  readonly provider: string;
  readonly model: string;
}

interface Failure {
  readonly text: string;
  readonly status: number | undefined;
  readonly retryable: boolean | undefined;
  readonly type: string | undefined;
  readonly code: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

const LONGEST_TEXT = 500;

/** The runtime's error for a failure of `subject`; `now` is the wall clock, for a retry-after that is a date. */
export function toProviderError(
  error: unknown,
  subject: Subject,
  now: number,
): RejectedError | TransientError {
  if (CoppiceError.is(error)) return error as RejectedError | TransientError;
  const failure = read(error);
  const details: JsonObject = { ...subject, ...traits(failure) };
  const said = failure.text === "" ? "no reason given" : failure.text;
  if (marked(error, "LoadAPIKeyError") || marked(error, "LoadSettingError")) {
    return new RejectedError(
      "PROVIDER_NOT_CONFIGURED",
      `${subject.provider} is not set up: ${said}`,
      details,
    );
  }
  if (marked(error, "InvalidResponseDataError") && (error as { data?: unknown }).data === undefined) {
    return cut(subject, said);
  }
  if (
    ["JSONParseError", "TypeValidationError", "InvalidResponseDataError"].some((kind) => marked(error, kind))
  ) {
    return brokenProtocol(subject, said, received(error));
  }
  switch (classify(error, failure)) {
    case "refused":
      return new RejectedError(
        "PROVIDER_REFUSED",
        `${subject.provider} refused the request for ${subject.model}${withStatus(failure)}: ${said}`,
        details,
      );
    case "overloaded":
      return new TransientError(
        "PROVIDER_OVERLOADED",
        `${subject.provider} could not serve ${subject.model} now${withStatus(failure)}: ${said}`,
        details,
        { retryAfterMs: retryAfter(failure.headers, now) },
      );
    case "unreachable":
      return new TransientError(
        "PROVIDER_UNREACHABLE",
        `The connection to ${subject.provider} failed${withStatus(failure)}: ${said}`,
        details,
        { retryAfterMs: retryAfter(failure.headers, now) },
      );
    case "stalled":
      return new TransientError(
        "PROVIDER_STALLED",
        `${subject.provider} did not answer in the time that its client gives it: ${said}`,
        details,
      );
    case "unknown":
      return brokenProtocol(subject, said);
  }
}

/** The stream ended before the answer did. */
export function cut(subject: Subject, said = "the stream ended without a finish"): TransientError {
  return new TransientError(
    "PROVIDER_UNREACHABLE",
    `${subject.provider} broke off the answer of ${subject.model}: ${said}`,
    { ...subject, cut: true },
  );
}

/** The answer cannot be read, or holds what a transcript cannot. */
export function brokenProtocol(subject: Subject, said: string, got?: string): RejectedError {
  return new RejectedError("PROVIDER_PROTOCOL", `The answer of ${subject.provider} cannot be used: ${said}`, {
    ...subject,
    ...(got !== undefined && { received: headBytes(redact(got), LONGEST_TEXT) }),
  });
}

/** Milliseconds that the headers ask to wait, or null; `retry-after` may be seconds or a date (RFC 9110, 10.2.3). */
export function retryAfter(headers: Readonly<Record<string, string>>, now: number): number | null {
  const milliseconds = headers["retry-after-ms"];
  if (milliseconds !== undefined && isAmount(milliseconds)) return Math.ceil(Number(milliseconds));
  const value = headers["retry-after"];
  if (value === undefined) return null;
  if (isAmount(value)) return Math.ceil(Number(value) * 1000);
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

type Kind = "refused" | "overloaded" | "unreachable" | "stalled" | "unknown";

function classify(error: unknown, failure: Failure): Kind {
  const { status, retryable } = failure;
  const words = `${failure.type ?? ""} ${failure.code ?? ""}`;
  if (/insufficient_quota|billing/i.test(words)) return "refused";
  if (status !== undefined && status >= 400) {
    const passing = status === 408 || status === 409 || status === 429 || status >= 500;
    if (!(retryable ?? passing)) return "refused";
    return status === 408 || status === 502 || status === 504 ? "unreachable" : "overloaded";
  }
  // Not ours: a caller's own abort is thrown before anybody asks for this.
  if (hasName(error, "TimeoutError")) return "stalled";
  if (hasName(error, "AbortError")) return "unreachable";
  if (marked(error, "APICallError") || marked(error, "EmptyResponseBodyError") || isNetwork(error)) {
    return retryable === false && status === undefined ? "refused" : "unreachable";
  }
  if (/quota|billing|auth|permission|invalid|not_found|context_length/i.test(words)) return "refused";
  if (/rate_limit|too_many|overload|capacity|server_error|unavailable|api_error/i.test(words))
    return "overloaded";
  if (retryable !== undefined) return retryable ? "overloaded" : "refused";
  // The SDK itself would not send the request: a prompt, setting or tool that the model cannot take.
  if (marked(error)) return "refused";
  return error instanceof Error ? "unknown" : "unreachable";
}

/** True for an error of the AI SDK; with a kind, only for that one. */
function marked(error: unknown, kind?: string): boolean {
  const marker = Symbol.for(kind === undefined ? "vercel.ai.error" : `vercel.ai.error.AI_${kind}`);
  return typeof error === "object" && error !== null && marker in error;
}

const NETWORK = /^(UND_ERR_|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENET|ERR_TLS|ERR_SSL|CERT_)/;

function isNetwork(error: unknown): boolean {
  return causes(error).some((one) => {
    const { code } = one as NodeJS.ErrnoException;
    if (typeof code === "string" && NETWORK.test(code)) return true;
    return one instanceof TypeError && /^(fetch failed|terminated)$/.test(one.message);
  });
}

function hasName(error: unknown, name: string): boolean {
  return causes(error).some((one) => one.name === name);
}

/** The error and what it came of. */
function causes(error: unknown): readonly Error[] {
  const found: Error[] = [];
  for (let at = error; found.length < 8 && at instanceof Error; at = at.cause) found.push(at);
  return found;
}

/** Errors come as classes, as plain objects of a stream, nested under `error`, or as text. */
function read(error: unknown): Failure {
  const outer = fields(error);
  const inner = { ...fields(outer["error"]), ...(typeof outer["message"] === "string" ? outer : {}) };
  const data = fields(fields(outer["data"])["error"]);
  const code = inner["code"] ?? data["code"];
  const status = [inner["statusCode"], inner["status"], code].find((value) => typeof value === "number");
  return {
    text: headBytes(redact(text(inner["message"]) ?? text(error) ?? ""), LONGEST_TEXT),
    status: status as number | undefined,
    retryable: typeof inner["isRetryable"] === "boolean" ? inner["isRetryable"] : undefined,
    type: text(inner["type"] ?? data["type"]),
    code: text(code),
    headers: fields(outer["responseHeaders"]) as Record<string, string>,
  };
}

/** Errors keep `message` and `cause` where spreading does not see them. */
function fields(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null) return {};
  return Object.assign({}, value, value instanceof Error ? { message: value.message } : {});
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function traits({ status, type, code, headers }: Failure): JsonObject {
  const requestId = headers["x-request-id"] ?? headers["request-id"];
  return {
    ...(status !== undefined && { status }),
    ...(type !== undefined && { type }),
    ...(code !== undefined && { code }),
    ...(requestId !== undefined && { requestId }),
  };
}

function received(error: unknown): string | undefined {
  const { text: raw, value } = fields(error);
  return text(raw) ?? (value === undefined ? undefined : JSON.stringify(value));
}

function withStatus({ status }: Failure): string {
  return status === undefined ? "" : ` (status ${status})`;
}

function isAmount(value: string): boolean {
  return /^\s*\d+(\.\d+)?\s*$/.test(value);
}
