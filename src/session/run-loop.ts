/**
 * The run loop of one agent: request, response, tools, request … until an answer or a wait. It keeps no state of its own:
 * where it stands follows from the transcript, so a run that was unloaded, parked or cut off goes on from what is stored.
 *
 * - R1 Every step is stored before the next begins (RUN-2).
 * - R2 Open calls come first: what a response asked for is done before anything else is requested.
 * - R3 After an abort nothing is written any more; whoever aborted has settled the run.
 */
import { InvariantError, TransientError } from "../protocol/errors.ts";
import { type AssistantPart, openCalls } from "../protocol/transcript.ts";
import type { ProviderSession } from "../providers/port.ts";
import { usageAttributes } from "../platform/telemetry.ts";
import type { Call, NextInput, RetryAnswer, RunPorts } from "./ports.ts";
import { buildMessages, ownSteps } from "./prompt.ts";
import { driveNativeRun } from "./native-loop.ts";
import { withOwnRequestId } from "./native-calls.ts";
import { Response } from "./response.ts";
import type { Session } from "./session.ts";
import { executeTool } from "./tool-call.ts";

/** Drives the session's current run until it is settled, waits, or is aborted; by the provider's own loop where it has one. */
export async function driveRun(session: Session, ports: RunPorts, signal: AbortSignal): Promise<void> {
  const { provider } = session;
  if (provider.loop === "theirs") return driveNativeRun(session, provider, ports, signal);
  await driveOwnRun(session, provider.session, ports, signal);
}

async function driveOwnRun(
  session: Session,
  provider: ProviderSession,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<void> {
  const started = new Set<string>();
  try {
    if (!(await ports.start())) return;
    signal.throwIfAborted();
    for (;;) {
      const open = openCalls(session.items);
      if (open.length > 0) {
        if (await settleCalls(session, ports, signal, open, started)) return;
        continue;
      }
      if (await requestStep(session, provider, ports, signal)) return;
    }
  } finally {
    // The next run must not overlap with a request that has yet to end; whoever aborted bounds how long (INT-3).
    if (signal.aborted) await session.ending;
  }
}

/** True when the run is suspended. */
async function settleCalls(
  session: Session,
  ports: RunPorts,
  signal: AbortSignal,
  open: readonly Call[],
  started: Set<string>,
): Promise<boolean> {
  // Waits and questions of an earlier drive may have ended; their calls must not be made again.
  const waiting = await ports.collect(open);
  signal.throwIfAborted();
  const fresh = openCalls(session.items).filter(
    (call) => call.type === "tool_call" && !waiting.has(call.callId) && !started.has(keyOf(session, call)),
  );
  if (fresh.length > 0) {
    await Promise.all(fresh.map((call) => executeCall(session, ports, signal, call, started)));
    signal.throwIfAborted();
    return false;
  }
  const left = openCalls(session.items);
  if (left.length === 0) return false;
  if (await ports.suspend()) return true;
  if (waiting.size > 0) return false;
  throw new InvariantError("A call of the run has no output, and nothing that could bring one is open.", {
    runId: session.run!.id,
    callId: left[0]!.callId,
  });
}

/** Call ids repeat from step to step. */
function keyOf(session: Session, call: Call): string {
  return `${session.run!.steps}:${call.callId}`;
}

async function executeCall(
  session: Session,
  ports: RunPorts,
  signal: AbortSignal,
  call: Call,
  started: Set<string>,
): Promise<void> {
  if (call.type !== "tool_call") return;
  started.add(keyOf(session, call));
  const outcome = await executeTool(session, ports, signal, call);
  signal.throwIfAborted();
  if (outcome.kind === "waiting") {
    // One that waited for an approval is made again.
    started.delete(keyOf(session, call));
    return;
  }
  await ports.toolReturned({
    kind: "tool_result",
    callId: call.callId,
    name: call.name,
    output: outcome.output,
    isError: outcome.isError,
    mailIds: [],
    waitId: null,
    elapsedMs: 0,
  });
}

/** One model request with its retries. True when the run has come to an end. */
async function requestStep(
  session: Session,
  provider: ProviderSession,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    const tried = await tryRequest(session, provider, ports, signal, attempt);
    if (tried === "over" || tried === "on") return tried === "over";
    // Nothing is reserved of a budget meanwhile: nothing is under way that could use it (BUD-2).
    await ports.pause(tried.delayMs, signal);
  }
}

/** One request; with a delay when it has failed and is to be made again. */
async function tryRequest(
  session: Session,
  provider: ProviderSession,
  ports: RunPorts,
  signal: AbortSignal,
  attempt: number,
): Promise<"on" | "over" | Pick<RetryAnswer, "delayMs">> {
  const input = await ports.nextInput();
  signal.throwIfAborted();
  const messages = buildMessages(session.agent, [...session.conversation(), ...input.bodies]);
  const admitted = await ports.admit(messages);
  if (admitted.kind === "ended") return "over";
  signal.throwIfAborted();
  using _reservation = admitted.reservation;
  const response = new Response();
  const until = admitted.wrapUp ? signal : AbortSignal.any([signal, ports.timeUp]);
  try {
    const run = session.run!;
    await ports.span(
      `chat ${run.model ?? "default"}`,
      {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": run.model ?? "default",
        "gen_ai.provider.name": run.provider,
      },
      async (add) => {
        await receive(session, provider, ports, until, response, input, {
          messages,
          tools: admitted.tools,
          maxOutputTokens: admitted.maxOutputTokens,
          attempt,
        });
        if (response.usage !== null) add(usageAttributes(response.usage));
        if (response.finish !== null) add({ "gen_ai.response.finish_reasons": [response.finish] });
      },
      { client: true },
    );
  } catch (error) {
    signal.throwIfAborted();
    // Not the provider's failure: what the store could not take is not asked for again here.
    if (response.accepting) throw error;
    if (until.aborted) {
      await ports.cutOff();
      return "on";
    }
    const decision = await ports.failed(error, attempt, response.visible);
    if (decision.retry) return decision;
    await ports.giveUp(error, response.usage);
    return "over";
  }
  // Awaited here: the reservation is given back after the usage is stored, never before (BUD-2).
  return await finishStep(session, ports, response);
}

async function finishStep(session: Session, ports: RunPorts, response: Response): Promise<"on" | "over"> {
  const { id, steps, model } = session.run!;
  const cut = cutOf(response);
  const said = cut === null ? response.parts() : response.partsOfCut();
  const parts = said.map((part) => withOwnRequestId(part, `${id} ${steps}`));
  session.partialText = "";
  if (parts.some(isCall)) {
    await ports.calls({ kind: "assistant", phase: "tools", parts, model, inherited: false }, response.usage);
    return "on";
  }
  const outcome = await ports.answered(
    { kind: "assistant", phase: "answer", parts, model, inherited: false },
    response.usage,
    response.text(),
    cut,
  );
  return outcome === "settled" ? "over" : "on";
}

/** Calls that came whole before the limit are made: the model sees which one is missing, and goes on from there. */
function cutOf(response: Response): "length" | "content_filter" | null {
  const { finish } = response;
  if (finish === "content_filter") return finish;
  return finish === "length" && !response.parts().some(isCall) ? finish : null;
}

function isCall(part: AssistantPart): part is Call {
  return "callId" in part;
}

interface RequestParts {
  readonly messages: ReturnType<typeof buildMessages>;
  readonly tools: RunPorts["tools"];
  readonly maxOutputTokens: number | null;
  readonly attempt: number;
}

async function receive(
  session: Session,
  provider: ProviderSession,
  ports: RunPorts,
  signal: AbortSignal,
  response: Response,
  input: NextInput,
  request: RequestParts,
): Promise<void> {
  const run = session.run!;
  let accepted = false;
  const preview = ports.preview();
  const events = provider.step(
    {
      threadId: session.agent.threadId,
      conversationKey: ports.conversationKey,
      path: session.agent.path,
      runId: run.id,
      step: run.steps,
      attempt: request.attempt,
      ownSteps: ownSteps(session.items),
      model: run.model,
      effort: run.effort,
      messages: request.messages,
      tools: request.tools,
      maxOutputTokens: request.maxOutputTokens,
    },
    signal,
  );
  for await (const event of untilAborted(session, events, signal)) {
    if (!accepted) {
      // Nothing of the response is kept before the acceptance is: mail is `delivered` here and not before (MBX-7).
      accepted = true;
      response.accepting = true;
      await ports.accepted(input);
      response.accepting = false;
      signal.throwIfAborted();
    }
    const shown = response.take(event);
    if (shown === null) continue;
    session.partialText = response.text();
    preview.push(shown);
  }
  preview.end();
  if (!accepted)
    throw new TransientError("PROVIDER_UNREACHABLE", "the provider ended the response before it began.");
  // What has no finish may be half an answer, or lack a call.
  if (response.finish === null)
    throw new TransientError("PROVIDER_UNREACHABLE", "the provider ended the response without a finish.");
}

const IGNORE = (): void => undefined;

/** Ends with the signal's reason at once, whatever the provider does (INT-3); the rest of its stream is let go. */
async function* untilAborted<T>(
  session: Session,
  events: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncIterable<T> {
  const iterator = events[Symbol.asyncIterator]();
  const aborted = Promise.withResolvers<never>();
  // The race below may be over before the abort: the rejection has a handler in any case.
  aborted.promise.catch(() => undefined);
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      const coming = iterator.next();
      session.ending = coming.then(IGNORE, IGNORE);
      const next = await Promise.race([coming, aborted.promise]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Not awaited: a provider that ignores the signal must not hold the run.
    iterator.return?.()?.catch(() => undefined);
  }
}
