/**
 * Drives a run on a provider that owns its loop: input in, a turn of the provider's, and what it tells becomes steps of the
 * transcript as it comes. A run is one turn, or several when more is due at the end of one (MBX-4, WRK-8).
 *
 * - M1 Acceptance is `turn.accepted`, or the first event of the turn; nothing is retried after it.
 * - M2 A step is stored with the results of its calls before anything that follows it (RUN-2, RUN-5).
 * - M3 A run that waits for a call of ours leaves its turn open and is driven again; whatever happens in the turn meanwhile
 *   wakes it.
 * - M4 After an abort nothing of a turn is stored any more, but that its provider may have taken it; the turn is stopped, and whoever aborted bounds how long that may last.
 */
import { RejectedError, TransientError } from "../protocol/errors.ts";
import { type ItemBody, openCalls } from "../protocol/transcript.ts";
import { usageAttributes } from "../platform/telemetry.ts";
import { namedTurn } from "../providers/native-names.ts";
import { unlessAborted } from "./ears.ts";
import { asProviderFailure, isProviderFailure, isResumeFailed, isUnreachable } from "./native-failure.ts";
import { type NativeConversation, OpenTurn } from "./native-conversation.ts";
import { asMessages, type TurnWords, turnWords } from "./native-input.ts";
import { followTurn, type TurnOver } from "./native-turn.ts";
import type { NextInput, RunPorts } from "./ports.ts";
import type { Session } from "./session.ts";

type Next = "another" | "over";

export async function driveNativeRun(
  session: Session,
  native: NativeConversation,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<void> {
  try {
    // What a start asks of the provider is asked of one that is there (lineage C4.15).
    const fresh = session.run!.acceptedAt === null;
    if (fresh && isWorn(native, ports) && !(await reopen(native, ports, signal))) return;
    if (!(await ports.start())) return;
    signal.throwIfAborted();
    let next: Next = "another";
    if (native.turn !== null && native.turn.runId === session.run!.id)
      next = await goOn(session, native, native.turn, ports, signal);
    while (next === "another") next = await runTurn(session, native, ports, signal);
  } finally {
    // The next run must not overlap with a turn that has yet to end; whoever aborted bounds how long (INT-3).
    if (signal.aborted) {
      const { turn } = native;
      const unheard = turn?.accepted === false;
      session.ending = native.stop();
      await session.ending;
      if (unheard && !turn.unsent) await doubt(native, turn, ports);
    }
  }
}

/** In the store where the conversation stands there, so that it counts also when this session is gone (lineage C9.5). */
async function doubt(native: NativeConversation, turn: OpenTurn, ports: RunPorts): Promise<void> {
  if (!(await ports.native.doubt(turn.thread))) native.unsure += 1;
}

/** A session that came when nobody wants it any more is closed: whoever has aborted has closed the one before. */
async function replace(native: NativeConversation, ports: RunPorts, signal: AbortSignal): Promise<void> {
  // Two sessions on one conversation would write over each other.
  const { session, selection } = await ports.native.reopen(native.close());
  if (!signal.aborted) return native.replace(session, selection);
  await session.close().catch(() => undefined);
  signal.throwIfAborted();
}

/** Its session takes no other turn, or none as the run wants it. */
function isWorn(native: NativeConversation, ports: RunPorts): boolean {
  return native.spent || ports.native.restarts(native.opened);
}

/** Another session, with retries; false when there is none, and the run is settled. */
async function reopen(native: NativeConversation, ports: RunPorts, signal: AbortSignal): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await replace(native, ports, signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (!isProviderFailure(error)) throw error;
      const decision = await ports.failed(error, attempt, false);
      if (!decision.retry) {
        await ports.giveUp(error, null);
        return false;
      }
      await ports.pause(decision.delayMs, signal);
    }
  }
}

/** Asks for a turn, with retries as long as it was not accepted, and follows it. */
async function runTurn(
  session: Session,
  native: NativeConversation,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<Next> {
  let lost = false;
  for (let attempt = 1; ; attempt += 1) {
    // A conversation that the other session cannot resume is given up where a start can be, and told anew.
    if (isWorn(native, ports)) {
      if (!(await reopen(native, ports, signal)) || !(await ports.start())) return "over";
      signal.throwIfAborted();
    }
    let turn: OpenTurn | null = null;
    try {
      const seen = ports.native.newestMail();
      const input = await nextInput(native, session, ports);
      signal.throwIfAborted();
      const words = turnWords(input.bodies.told, native.session.negotiated.context.channels);
      const thread = await unlessAborted(ports.native.nativeThread(session), signal);
      native.thread = thread;
      const admitted = await ports.admit(asMessages(words));
      if (admitted.kind === "ended") return "over";
      signal.throwIfAborted();
      using _reservation = admitted.reservation;
      const run = session.run!;
      turn = new OpenTurn({
        key: `${run.id}:${(native.turns += 1)}`,
        runId: run.id,
        thread,
        input: input.next,
        wrapUp: admitted.wrapUp,
        seen,
      });
      native.turn = turn;
      startTurn(session, native, turn, words, admitted.maxOutputTokens, signal);
      return await goOn(session, native, turn, ports, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isProviderFailure(error)) throw error;
      const asked = turn !== null && native.turn === turn;
      if (asked) native.turn = null;
      if (turn?.cut === true) {
        await ports.cutOff();
        return "another";
      }
      // It has lost its conversation since it was resumed: a start finds that out, and begins another (lineage C4.15).
      if (!lost && native.thread !== null && session.run!.acceptedAt === null && isResumeFailed(error)) {
        lost = true;
        native.thread = null;
        if (!(await ports.start())) return "over";
        continue;
      }
      // One that was refused is no turn; one whose provider is gone may have been taken all the same (REC-5).
      if (asked && (native.source.over || isUnreachable(error))) await doubt(native, turn!, ports);
      const decision = await ports.failed(error, attempt, false);
      if (!decision.retry) {
        await ports.giveUp(error, null);
        return "over";
      }
      await ports.pause(decision.delayMs, signal);
      native.doubtful ||= asked && native.source.over;
    }
  }
}

function startTurn(
  session: Session,
  native: NativeConversation,
  turn: OpenTurn,
  words: TurnWords,
  maxOutputTokens: number | null,
  signal: AbortSignal,
): void {
  const { model, effort } = session.run!;
  const { effects, workspace } = session.agent.config;
  native.session
    .startTurn({
      thread: turn.thread.thread.ref,
      key: turn.key,
      ...words,
      policy: { model, effort, effects, workspace, maxOutputTokens },
      signal,
    })
    .then(
      (started) => {
        turn.ref ??= namedTurn(started.turn);
      },
      (error: unknown) => {
        turn.unsent = signal.aborted && error === signal.reason;
        turn.refuse(asProviderFailure(error));
      },
    );
}

interface TurnInput {
  readonly next: NextInput;
  readonly bodies: { readonly told: readonly ItemBody[] };
}

/**
 * What is due, with what stands in the transcript already and the provider has not seen: the marker of an interrupt, a note
 * that asks for another answer. That is told again and stored once.
 */
async function nextInput(native: NativeConversation, session: Session, ports: RunPorts): Promise<TurnInput> {
  const input = await ports.nextInput();
  const handed = input.handed.filter((id) => !native.unheard.has(id));
  const bodies = native.doubtful ? [REPEATED, ...input.bodies] : input.bodies;
  const next = { ...input, handed, bodies };
  const untold = session.items.slice(native.told).filter((item) => item.kind !== "assistant");
  return { next, bodies: { told: [...untold, ...next.bodies] } };
}

const REPEATED: ItemBody = {
  kind: "context",
  topic: "possibly_repeated",
  text: "The connection broke when this was sent before; it may be that you have read it, or begun with it, already.",
};

/** Follows a turn until it is over or the run waits. */
async function goOn(
  session: Session,
  native: NativeConversation,
  turn: OpenTurn,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<Next> {
  const run = session.run!;
  let over: TurnOver | "waits";
  try {
    over = await ports.span(
      `invoke_agent ${run.model ?? "default"}`,
      {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": run.model ?? "default",
        "gen_ai.provider.name": run.provider,
      },
      async (add) => {
        const followed = await followTurn(session, native, turn, ports, signal);
        if (followed !== "waits" && followed.usage !== null) add(usageAttributes(followed.usage));
        return followed;
      },
      { client: true },
    );
  } catch (error) {
    signal.throwIfAborted();
    if (!turn.accepted || !isProviderFailure(error)) throw error;
    // Nothing more is asked of this session; the next turn gets another.
    native.close().catch(() => undefined);
    await closeCalls(session, ports, "outcome unknown: the provider was lost in the middle of its turn");
    await ports.giveUp(error, null);
    return "over";
  }
  if (over === "waits") return "over";
  native.turn = null;
  return endTurn(session, native, turn, over, ports);
}

async function endTurn(
  session: Session,
  native: NativeConversation,
  turn: OpenTurn,
  over: TurnOver,
  ports: RunPorts,
): Promise<Next> {
  await ports.native.turnEnded(turn.thread, over.turn ?? turn.ref);
  if (turn.cut) {
    await closeCalls(session, ports, "the provider ended its turn without waiting for this");
    await ports.cutOff();
    native.told = session.items.length;
    return "another";
  }
  if (over.outcome !== "completed") {
    await ports.giveUp(over.error ?? endedElsewhere(over.outcome), over.usage);
    native.told = session.items.length;
    return "over";
  }
  const { step } = turn;
  session.partialText = "";
  const outcome = await ports.answered(
    {
      kind: "assistant",
      phase: "answer",
      parts: step.parts(),
      model: session.run!.model,
      inherited: false,
    },
    over.usage,
    step.text(),
  );
  // What was said is its own; what the runtime has put after it is not.
  native.told = session.items.findLastIndex((item) => item.kind === "assistant") + 1;
  return outcome === "settled" ? "over" : "another";
}

function endedElsewhere(outcome: "failed" | "interrupted"): RejectedError | TransientError {
  return outcome === "failed"
    ? new RejectedError("PROVIDER_PROTOCOL", "the provider's turn has failed and it does not say why.", {})
    : new TransientError(
        "PROVIDER_UNREACHABLE",
        "the provider's turn was interrupted, and not from here.",
        {},
      );
}

/** No call is left dangling, whatever became of its turn. */
async function closeCalls(session: Session, ports: RunPorts, text: string): Promise<void> {
  if (openCalls(session.items).length > 0) await ports.native.closeCalls(text);
}
