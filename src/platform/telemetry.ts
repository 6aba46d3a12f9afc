/**
 * Spans after OpenTelemetry's GenAI conventions (OBS-2). A background child's run is linked to the span that asked for
 * it: the asking span's context is stored with the work's start and read back after unload, restart or in another process.
 *
 * - T1 A tracer is an observer: when it throws, there is no span, and the agent goes on (OBS-4).
 * - T2 What a failure says is redacted before it gets into a span (SEC-3).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Attributes,
  context,
  INVALID_SPAN_CONTEXT,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { CoppiceError, describeError } from "../protocol/errors.ts";
import type { Usage } from "../protocol/usage.ts";
import type { Redact } from "./redact.ts";

export type { Attributes, Link, Span, Tracer };

/** The tracer of the global provider; a no-op when none is registered. */
export function defaultTracer(): Tracer {
  return trace.getTracer("coppice");
}

/** A span's identity as stored text, in the form of the `traceparent` header. */
export function spanReference(span: Span): string | null {
  const context = span.spanContext();
  if (!trace.isSpanContextValid(context)) return null;
  return `00-${context.traceId}-${context.spanId}-0${context.traceFlags & 1}`;
}

export function linkTo(reference: string | null): Link[] {
  const match = reference === null ? null : /^00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])$/.exec(reference);
  if (match === null) return [];
  return [
    { context: { traceId: match[1]!, spanId: match[2]!, traceFlags: Number(match[3]), isRemote: true } },
  ];
}

export interface SpanOrigin {
  readonly parent?: Span;
  readonly links?: readonly Link[];
  /** A request to somebody outside of this process. */
  readonly client?: boolean;
}

/** A span under `parent`, or one of its own with links to what caused it. */
export function startSpan(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  origin: SpanOrigin = {},
): Span {
  const kind = origin.client === true ? SpanKind.CLIENT : SpanKind.INTERNAL;
  try {
    const around =
      origin.parent === undefined ? context.active() : trace.setSpan(context.active(), origin.parent);
    return tracer.startSpan(name, { attributes, kind, links: [...(origin.links ?? [])] }, around);
  } catch {
    // An observer's fault is its own.
    return trace.wrapSpanContext(INVALID_SPAN_CONTEXT);
  }
}

/** What a span ends with beside its time. */
export interface SpanEnd {
  readonly attributes?: Attributes;
  readonly failure?: { readonly type: string; readonly message: string };
}

export function endSpan(span: Span, end: SpanEnd, redact: Redact): void {
  try {
    if (end.attributes !== undefined) span.setAttributes(end.attributes);
    if (end.failure !== undefined) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: redact(end.failure.message) });
      span.setAttribute("error.type", end.failure.type);
    }
    span.end();
  } catch {
    // An observer's fault is its own.
  }
}

export function failureOf(error: unknown): NonNullable<SpanEnd["failure"]> {
  const type = CoppiceError.is(error) ? error.code : error instanceof Error ? error.name : "_OTHER";
  return { type, message: describeError(error) };
}

/** Token usage in the words of the conventions; cached input is part of the input there as here. */
export function usageAttributes(
  usage: Pick<Usage, "inputTokens" | "cachedInputTokens" | "outputTokens" | "reasoningTokens">,
): Attributes {
  return {
    "gen_ai.usage.input_tokens": usage.inputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens,
  };
}

/** Our own, because a host need not have registered a context manager. */
const active = new AsyncLocalStorage<Span>();

/** Runs a body inside a span: spans of the host's own instrumentation become its children. */
export function runInSpan<T>(span: Span, body: () => Promise<T>): Promise<T> {
  return active.run(span, () => context.with(trace.setSpan(context.active(), span), body));
}

/** Runs a body inside a span, which gets the attributes that are known only then. */
export async function inSpan<T>(
  { tracer, redact }: { readonly tracer: Tracer; readonly redact: Redact },
  name: string,
  attributes: Attributes,
  body: (add: (attributes: Attributes) => void) => Promise<T>,
  origin: SpanOrigin = {},
): Promise<T> {
  const span = startSpan(tracer, name, attributes, origin);
  let added: Attributes = {};
  try {
    const value = await runInSpan(span, () => body((more) => (added = { ...added, ...more })));
    endSpan(span, { attributes: added }, redact);
    return value;
  } catch (error) {
    endSpan(span, { attributes: added, failure: failureOf(error) }, redact);
    throw error;
  }
}

/** The span around the caller, ours or the host's, in the form of the `traceparent` header; null outside of any. */
export function activeSpanReference(): string | null {
  const span = active.getStore() ?? trace.getActiveSpan();
  return span === undefined ? null : spanReference(span);
}
