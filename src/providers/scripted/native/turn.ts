/**
 * Plays one turn: the loop of a provider that owns it. Steps of the script are its model's answers; it goes from one to the
 * next until one makes no call and nothing was put in meanwhile.
 *
 * - T1 Before its acceptance a turn leaves nothing in the conversation, and its failure is that of `startTurn`.
 * - T2 What it says is in the conversation before it is told.
 * - T3 An abort ends it at once, unless the script says that it is deaf.
 */
import { decisionText } from "../../../protocol/decision.ts";
import { type Clock, delay } from "../../../platform/clock.ts";
import { RejectedError, type TransientError } from "../../../protocol/errors.ts";
import type { RunId, ThreadId } from "../../../protocol/ids.ts";
import type { Json } from "../../../protocol/json.ts";
import type {
  NativeChildEvent,
  NativeAnswer,
  NativeItem,
  NativeRequest,
  NativeTurnEvent,
} from "../../../protocol/native-events.ts";
import type { StepRequest, StepUsage } from "../../../protocol/provider-events.ts";
import type { NativeRef } from "../../../protocol/provider-thread.ts";
import type { AssistantPart } from "../../../protocol/transcript.ts";
import type { NativePolicy, NativeSessionInput, NativeTurnInput } from "../../port.ts";
import { type ScriptContext, scriptContext } from "../context.ts";
import type { Gates } from "../gates.ts";
import { countUsage, failure, precedesAcceptance } from "../play.ts";
import { actsOf, nextIndex, type Program } from "../program.ts";
import { type Act, leavesNothing, textOf } from "../script.ts";
import type { Conversation, ConversationTurn, NativeConversations } from "./conversations.ts";
import { CHILD, type ChildWords, FILE_CHANGE } from "./words.ts";

export interface Stage {
  readonly session: NativeSessionInput;
  readonly conversations: NativeConversations;
  readonly conversation: Conversation;
  readonly program: Program;
  readonly clock: Clock;
  readonly gates: Gates;
  readonly input: NativeTurnInput & { readonly policy: NativePolicy };
  readonly turn: ConversationTurn;
  readonly signal: AbortSignal;
  /** Its process is gone; nobody is deaf to that. */
  readonly killed: AbortSignal;
  /** Input that came since the step under way began. */
  steered: boolean;
  /** The turn is taken; what follows is told as events. */
  readonly accept: () => void;
  readonly tell: (event: NativeTurnEvent | NativeChildEvent) => void;
  readonly ask: (request: NativeRequest) => Promise<NativeAnswer>;
  readonly ref: (id: string) => NativeRef;
}

export interface TurnEnd {
  readonly outcome: "completed" | "failed" | "interrupted";
  readonly usage: StepUsage | null;
  readonly error: RejectedError | TransientError | null;
}

export async function playTurn(stage: Stage): Promise<TurnEnd> {
  const player = new Player(stage);
  try {
    while (await player.step());
    return { outcome: "completed", usage: player.usage, error: null };
  } catch (error) {
    if (!player.accepted) throw error;
    if (stage.signal.aborted) return { outcome: "interrupted", usage: player.usage, error: null };
    return { outcome: "failed", usage: player.usage, error: error as RejectedError };
  }
}

/** Puts input into a conversation: context first, then the user's words. */
export function takeIn(
  { conversation, conversations, turn }: Pick<Stage, "conversation" | "conversations" | "turn">,
  { preambles, userMessage }: Pick<NativeTurnInput, "preambles" | "userMessage">,
): void {
  const put = (role: "system" | "user", text: string): void => {
    conversation.items.push({ id: conversations.mint("message"), turn: turn.id, message: { role, text } });
  };
  for (const { channel, text } of preambles)
    put(channel === "system" || channel === "developer" ? "system" : "user", text);
  if (userMessage !== "") put("user", userMessage);
}

class Player {
  accepted = false;
  usage: StepUsage | null = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  readonly #stage: Stage;
  #deaf = false;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** True when another step follows. */
  async step(): Promise<boolean> {
    const { conversation, program, session } = this.#stage;
    this.#stage.steered = false;
    const index = nextIndex(program, conversation.played, conversation.spent);
    const found = program.steps[index] ?? program.tail;
    if (found === null) throw exhausted(session.path, program.steps.length);
    const context = scriptContext(this.#request(), conversation.spent);
    const body = typeof found.body === "function" ? found.body(context) : found.body;
    const parts: AssistantPart[] = [];
    let figures: Partial<StepUsage> | null = {};
    try {
      for (const act of actsOf(found, body)) {
        if (act.kind === "usage") figures = act.figures;
        await this.#play(act, context, parts);
      }
    } catch (error) {
      if (leavesNothing(found.body)) conversation.spent += 1;
      throw error;
    }
    this.#accept();
    // An empty answer is one, too.
    if (parts.length === 0) this.#keep({ role: "assistant", parts: [] });
    conversation.played += 1;
    conversation.spent = 0;
    this.#count(figures, context, parts);
    return parts.some((part) => "callId" in part) || this.#stage.steered;
  }

  #accept(): void {
    if (this.accepted) return;
    this.accepted = true;
    this.#stage.accept();
  }

  async #play(act: Act, context: ScriptContext, parts: AssistantPart[]): Promise<void> {
    const { clock, gates, signal, killed } = this.#stage;
    if (!this.#deaf) signal.throwIfAborted();
    if (!precedesAcceptance(act)) this.#accept();
    killed.throwIfAborted();
    const heard = this.#deaf ? killed : signal;
    switch (act.kind) {
      case "text":
      case "reasoning": {
        const part = { type: act.kind, text: textOf(act.text, context) };
        parts.push(part);
        const id = this.#keep({ role: "assistant", parts: [part] });
        const item: NativeItem = { kind: act.kind, text: part.text, ref: this.#stage.ref(id) };
        this.#stage.tell({ type: "item", item });
        return;
      }
      case "call":
        return this.#call(act, context, parts);
      case "request":
        return this.#question(act, context, parts);
      case "gate":
        this.#deaf ||= act.ignoresAbort;
        return gates.pass(act.name, this.#deaf ? killed : heard);
      case "pause":
        return delay(clock, act.ms, heard);
      case "fail":
        throw failure(act.options);
      case "stall":
        return untilAborted(signal);
      case "usage":
      case "finish":
      case "end":
        return;
    }
  }

  async #call(
    act: Extract<Act, { kind: "call" }>,
    context: ScriptContext,
    parts: AssistantPart[],
  ): Promise<void> {
    const { session, conversations, tell, ask, ref } = this.#stage;
    const { name } = act;
    const callId = conversations.mint("call");
    const given = typeof act.input === "function" ? act.input(context) : act.input;
    const input = typeof given === "string" ? given : JSON.stringify(given);
    const part: AssistantPart = { type: "tool_call", callId, name, input };
    parts.push(part);
    const asked = this.#keep({ role: "assistant", parts: [part] });
    let result: { readonly output: Json; readonly isError: boolean } = {
      output: act.output ?? "done",
      isError: false,
    };
    const offered = act.output === undefined && session.tools.some((tool) => tool.name === name);
    if (offered) {
      const answer = await this.#heard(ask({ kind: "tool", ref: ref(asked), callId, name, input }));
      result = answer.kind === "tool" ? answer : { output: "(cancelled)", isError: true };
    }
    const id = this.#keep({ role: "tool", callId, name, ...result });
    if (name === CHILD) this.#child(input, typeof result.output === "string" ? result.output : "");
    if (offered) return;
    tell({ type: "item", item: itemOf(part, result, ref(id)) });
  }

  #child(input: string, text: string): void {
    const { conversations, tell, ref } = this.#stage;
    const { prompt, outcome } = JSON.parse(input) as ChildWords;
    const child = ref(conversations.mint("child"));
    tell({ type: "child.started", child, prompt });
    tell({ type: "child.terminal", child, outcome, text });
  }

  async #question(
    act: Extract<Act, { kind: "request" }>,
    context: ScriptContext,
    parts: AssistantPart[],
  ): Promise<void> {
    const { conversations, ask, ref } = this.#stage;
    const callId = conversations.mint("call");
    const text = textOf(act.text, context);
    const part: AssistantPart = {
      type: "tool_call",
      callId,
      name: act.asks,
      input: JSON.stringify({ text }),
    };
    parts.push(part);
    const asked = this.#keep({ role: "assistant", parts: [part] });
    const answer = await this.#heard(ask({ kind: act.asks, ref: ref(asked), text, about: act.about }));
    const output =
      answer.kind === "answer"
        ? answer.text
        : answer.kind === "decision"
          ? decisionText(answer.decision)
          : "(cancelled)";
    this.#keep({ role: "tool", callId, name: act.asks, output, isError: answer.kind === "cancelled" });
  }

  /** An answer, unless the turn is stopped before it comes. */
  #heard<T>(answer: Promise<T>): Promise<T> {
    const { killed, signal } = this.#stage;
    return Promise.race([answer, untilAborted(this.#deaf ? killed : signal)]);
  }

  #keep(message: StepRequest["messages"][number]): string {
    const { conversation, conversations, turn } = this.#stage;
    const id = conversations.mint("message");
    conversation.items.push({ id, turn: turn.id, message });
    return id;
  }

  #count(figures: Partial<StepUsage> | null, context: ScriptContext, parts: readonly AssistantPart[]): void {
    if (figures === null) this.usage = null;
    if (figures === null || this.usage === null) return;
    const step = { ...countUsage(context.request, parts), ...figures };
    this.usage = {
      inputTokens: this.usage.inputTokens + step.inputTokens,
      cachedInputTokens: this.usage.cachedInputTokens + step.cachedInputTokens,
      outputTokens: this.usage.outputTokens + step.outputTokens,
      reasoningTokens: this.usage.reasoningTokens + step.reasoningTokens,
    };
  }

  /** What its model is shown: the conversation, which does not hold the input before it was taken. */
  #request(): StepRequest {
    const { session, conversation, input, conversations, turn } = this.#stage;
    const shown = { ...conversation, items: [...conversation.items] };
    if (!this.accepted) takeIn({ conversation: shown, conversations, turn }, input);
    return {
      threadId: session.threadId as ThreadId,
      conversationKey: conversation.id,
      path: session.path,
      runId: input.key as RunId,
      step: 1,
      attempt: 1,
      ownSteps: conversation.played,
      model: input.policy.model,
      effort: input.policy.effort,
      messages: shown.items.map((item) => item.message),
      tools: session.tools,
      maxOutputTokens: input.policy.maxOutputTokens,
    };
  }
}

function itemOf(
  { callId, name, input }: Extract<AssistantPart, { type: "tool_call" }>,
  { output, isError }: { readonly output: Json; readonly isError: boolean },
  ref: NativeRef,
): NativeItem {
  if (name !== FILE_CHANGE) return { kind: "tool", callId, name, input, output, isError, ref };
  const { path } = JSON.parse(input) as { path: string };
  return {
    kind: "file_change",
    callId,
    path,
    change: "changed",
    summary: typeof output === "string" ? output : JSON.stringify(output),
    ref,
  };
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

function exhausted(path: string, steps: number): RejectedError {
  return new RejectedError(
    "SCRIPT_EXHAUSTED",
    `The script of ${path} has ${steps} ${steps === 1 ? "step" : "steps"} and was asked for one more; add the step.`,
    { path, steps },
  );
}
