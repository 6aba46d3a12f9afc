/**
 * Spans after OpenTelemetry's GenAI conventions (OBS-2). A background child's run is linked to the span that asked for
 * it: the asking span's context is stored with the work's start and read back after unload, restart or in another process.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Attributes,
  context,
  type Link,
  type Span,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { describeError } from "../protocol/errors.ts";

export type { Attributes, Span, Tracer };

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

/** A span under `parent`, or one of its own with links to what caused it. */
export function startSpan(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  origin: { readonly parent?: Span; readonly links?: readonly Link[] } = {},
): Span {
  const around =
    origin.parent === undefined ? context.active() : trace.setSpan(context.active(), origin.parent);
  return tracer.startSpan(name, { attributes, links: [...(origin.links ?? [])] }, around);
}

export function endSpan(span: Span, error?: unknown): void {
  if (error !== undefined) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: describeError(error) });
    span.setAttribute("error.type", error instanceof Error ? error.name : "_OTHER");
  }
  span.end();
}

/** Our own, because a host need not have registered a context manager. */
const active = new AsyncLocalStorage<Span>();

/** Runs a body inside a span: spans of the host's own instrumentation become its children. */
export function runInSpan<T>(span: Span, body: () => Promise<T>): Promise<T> {
  return active.run(span, () => context.with(trace.setSpan(context.active(), span), body));
}

/** The span around the caller, in the form of the `traceparent` header; null outside of any. */
export function activeSpanReference(): string | null {
  const span = active.getStore();
  return span === undefined ? null : spanReference(span);
}
