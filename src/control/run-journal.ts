/**
 * The journal of a run: what the run loop asks for becomes commits, and the session follows in the same synchronous block
 * (`session/ports.ts`). Limits, budgets and the provider's back-off are kept here, where the tree is known.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { CoppiceError, describeError, TransientError } from "../protocol/errors.ts";
import type { PromptMessage, StepUsage } from "../protocol/provider-events.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ToolHost, ToolSpec } from "../protocol/tool.ts";
import type { Usage } from "../protocol/usage.ts";
import { salvageSteps } from "../lineage/salvage.ts";
import { estimateTokens } from "../providers/model/estimate-tokens.ts";
import { delay } from "../platform/clock.ts";
import {
  type Attributes,
  endSpan,
  failureOf,
  runInSpan,
  type Span,
  startSpan,
} from "../platform/telemetry.ts";
import { costOf, estimateRequest, priceOf } from "../policy/budget.ts";
import type {
  Admitted,
  AssistantBody,
  Call,
  NextInput,
  ResultBody,
  RetryAnswer,
  RunPorts,
} from "../session/ports.ts";
import type { Session } from "../session/session.ts";
import type { Admission, RequestEstimate } from "../policy/budget.ts";
import { admitRequest, exhaust } from "./budget.ts";
import { composeInput, leaveOut, overLimit } from "./compose.ts";
import { answerRun } from "./answer.ts";
import { collectCalls } from "./collect.ts";
import { lendSlot } from "./dispatch.ts";
import { acceptRequest, appendItems, currentRun, holdRun, recordStep, suspendRun } from "./runs.ts";
import { settleRun } from "./settle.ts";
import type { Tree } from "./tree.ts";

/** Output of a request that names no maximum, for the reservation of budgets. */
const ASSUMED_OUTPUT_TOKENS = 4096;

export class RunJournal implements RunPorts {
  readonly toolHost: ToolHost;
  readonly tools: readonly ToolSpec[];
  readonly conversationKey: string;
  readonly #tree: Tree;
  readonly #session: Session;
  readonly #signal: AbortSignal;
  readonly #span: Span;
  /** The limit that the next request wraps up for. */
  #wrapUp: "turn_limit" | "time_limit" | null = null;

  constructor(tree: Tree, session: Session, signal: AbortSignal, span: Span) {
    this.#tree = tree;
    this.#session = session;
    this.#signal = signal;
    this.#span = span;
    this.toolHost = tree.shared.toolHost;
    this.tools = tree.shared.toolHost.specs(session.agent);
    this.conversationKey = tree.treeId;
  }

  get #run(): RunRecord {
    return this.#session.run!;
  }

  async nextInput(): Promise<NextInput> {
    const { id } = this.#run;
    const active = this.#tree.runs.get(this.#session.agent.threadId);
    const composed = await this.#tree.transact(
      (tx) => composeInput(tx, currentRun(tx, id), this.#session.items),
      (value) => {
        if (active === undefined) return;
        active.composed = true;
        active.drainedSeq = value.mail.at(-1)?.seq ?? 0;
      },
    );
    this.#wrapUp = composed.wrapUp;
    return composed;
  }

  async admit(messages: readonly PromptMessage[]): Promise<Admitted> {
    const { config } = this.#session.agent;
    const limit = overLimit(this.#tree.limits, this.#run, this.#tree.shared.clock.now());
    if (limit !== null && this.#run.wrapUpOffered) {
      await this.#endByLimit(limit);
      return { kind: "ended" };
    }
    await this.#tree.shared.backOff(this.#run.provider).beforeRequest(this.#signal);
    const maxOutputTokens = config.maxOutputTokens;
    const price = priceOf(this.#tree.shared.prices, this.#run.provider, this.#run.model);
    const tools = this.#wrapUp === null;
    const estimate = estimateRequest(
      estimateTokens(messages, tools ? this.tools : []),
      maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS,
      price,
    );
    const seen = this.#tree.reservations.released;
    const { admission, reservation } = await this.#reserve(estimate);
    if (this.#signal.aborted) reservation?.[Symbol.dispose]();
    this.#signal.throwIfAborted();
    if (reservation !== null) return { kind: "go", reservation, tools, maxOutputTokens };
    if (admission.kind === "exhausted") {
      await this.#tree.transact((tx) => exhaust(tx, admission.scope, this.#tree.partialText));
    } else {
      await this.#hold(seen);
    }
    return { kind: "ended" };
  }

  /** Looks and reserves in one synchronous block, so that two requests cannot both take the last of a budget. */
  #reserve(estimate: RequestEstimate): Promise<{ admission: Admission; reservation: Disposable | null }> {
    const { threadId, path } = this.#session.agent;
    let reservation: Disposable | null = null;
    return this.#tree.read((view) => {
      reservation?.[Symbol.dispose]();
      reservation = null;
      const admission = admitRequest(
        view,
        view.tree(this.#tree.treeId)!,
        view.agent(threadId)!,
        this.#tree.reservations,
        estimate,
      );
      if (admission.kind === "start") reservation = this.#tree.reservations.take(path, estimate);
      return { admission, reservation };
    });
  }

  /**
   * What would fit without the outstanding reservations waits for them, its permit given back (BUD-2): the run is suspended
   * and comes back when one has been given back.
   */
  async #hold(seen: number): Promise<void> {
    const { id } = this.#run;
    const active = this.#tree.runs.get(this.#session.agent.threadId);
    await this.#tree.transact(
      (tx) => holdRun(tx, id),
      (run) => {
        this.#session.run = run;
        this.#session.lifecycle.send("WAIT");
        active?.grant?.lend();
        if (active !== undefined) this.#tree.heldByBudget(active.candidate, seen);
      },
    );
  }

  async accepted(input: NextInput): Promise<void> {
    const { id } = this.#run;
    this.#tree.shared.backOff(this.#run.provider).succeeded();
    await this.#tree.transact(
      (tx) => {
        leaveOut(tx, input);
        const accepted = acceptRequest(tx, id, input, this.#wrapUp !== null);
        tx.effects.mail.add(accepted.agent.threadId);
        return accepted;
      },
      (value) => {
        const starting = this.#session.lifecycle.state === "reserved";
        this.#absorb(value);
        if (starting) this.#session.lifecycle.send("ACCEPT");
      },
    );
  }

  async calls(body: AssistantBody, usage: StepUsage | null): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact(
      (tx) => recordStep(tx, id, body, this.#usage(usage)),
      (value) => this.#absorb(value),
    );
  }

  async answered(
    body: AssistantBody,
    usage: StepUsage | null,
    text: string,
  ): Promise<"settled" | "continues"> {
    const { id } = this.#run;
    const answer = await this.#tree.transact(
      (tx) =>
        answerRun(tx, id, body, this.#usage(usage), {
          text,
          wrapUp: this.#wrapUp,
          salvage: this.#salvage(),
        }),
      (value) => this.#absorb(value),
    );
    return answer.outcome;
  }

  async toolReturned(body: ResultBody): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact(
      (tx) => {
        const run = currentRun(tx, id);
        const agent = tx.agent(run.threadId);
        const called = this.#session.items.findLast((item) => item.kind === "assistant")?.at ?? tx.now;
        const appended = appendItems(tx, agent, run, [{ ...body, elapsedMs: tx.now - called }]);
        tx.emit(
          "tool.returned",
          agent,
          { runId: id },
          { callId: body.callId, tool: body.name, isError: body.isError },
        );
        return { ...appended, run };
      },
      (value) => this.#absorb(value),
    );
  }

  async collect(calls: readonly Call[]): Promise<ReadonlySet<string>> {
    const { id } = this.#run;
    const collected = await this.#tree.transact(
      (tx) => collectCalls(tx, id, calls),
      (value) => this.#absorb(value),
    );
    return collected.waiting;
  }

  async suspend(): Promise<boolean> {
    const { id } = this.#run;
    const suspended = await this.#tree.transact(
      (tx) => suspendRun(tx, id),
      (run) => {
        if (run === null) return;
        this.#session.run = run;
        this.#session.lifecycle.send("WAIT");
        this.#tree.runs.get(this.#session.agent.threadId)?.grant?.lend();
        const { openRequests } = this.#session.agent;
        if (openRequests === 0 && !this.#tree.parksWaits(run.provider)) lendSlot(this.#tree, run.threadId);
      },
    );
    return suspended !== null;
  }

  failed(error: unknown, attempt: number, visible: boolean): RetryAnswer {
    const decision = this.#tree.shared.backOff(this.#run.provider).failed(error, attempt, visible);
    this.#tree.shared.logger.info(
      { runId: this.#run.id, attempt, err: error, ...decision },
      "request failed",
    );
    return decision;
  }

  async giveUp(error: unknown, usage: StepUsage | null): Promise<void> {
    const { id } = this.#run;
    const code = CoppiceError.is(error) ? error.code : "PROVIDER_PROTOCOL";
    const status =
      CoppiceError.is(error) && typeof error.details["status"] === "number" ? error.details["status"] : null;
    const partial = this.#session.partialText;
    await this.#tree.transact((tx) => {
      const run = currentRun(tx, id);
      if (run.acceptedAt !== null && partial !== "") {
        appendItems(tx, tx.agent(run.threadId), run, [
          {
            kind: "assistant",
            phase: "partial",
            parts: [{ type: "text", text: partial }],
            model: run.model,
            inherited: false,
          },
        ]);
      }
      settleRun(tx, id, {
        status: "failed",
        reason: "provider_error",
        text: partial || run.text,
        error: { code, message: tx.context.redact(describeError(error)), status },
        refused: run.acceptedAt === null && !(error instanceof TransientError),
        salvage: this.#salvage(),
        unreported: usage === null && run.acceptedAt !== null,
      });
    });
    this.#session.partialText = "";
  }

  pause(ms: number, signal: AbortSignal): Promise<void> {
    return delay(this.#tree.shared.clock, ms, signal);
  }

  progress(text: string): void {
    if (!this.#tree.events.observed) return;
    this.#tree.events.publish([
      { type: "progress", path: this.#session.agent.path, runId: this.#run.id, text },
    ]);
  }

  async span<T>(
    name: string,
    attributes: Attributes,
    body: (add: (attributes: Attributes) => void) => Promise<T>,
    origin: { readonly client?: boolean } = {},
  ): Promise<T> {
    const { tracer, redact } = this.#tree.shared;
    const span = startSpan(tracer, name, attributes, { parent: this.#span, ...origin });
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

  /** One offered wrap-up step has not ended it: the limit does (RUN-3). */
  async #endByLimit(limit: "turn_limit" | "time_limit"): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact((tx) => {
      const run = currentRun(tx, id);
      settleRun(tx, id, { status: "failed", reason: limit, text: run.text, salvage: this.#salvage() });
    });
  }

  #salvage(): readonly string[] {
    const { firstItem } = this.#run;
    return salvageSteps(this.#session.items.slice(firstItem), this.#tree.redact);
  }

  #usage(usage: StepUsage | null): Usage {
    if (usage === null) {
      return {
        inputTokens: 0,
        cachedInputTokens: 0,
        outputTokens: 0,
        reasoningTokens: 0,
        cost: 0,
        complete: false,
      };
    }
    const price = priceOf(this.#tree.shared.prices, this.#run.provider, this.#run.model);
    return { ...usage, cost: costOf(usage, price), complete: true };
  }

  #absorb(value: { readonly agent: AgentRecord; readonly run: RunRecord }): void {
    this.#session.agent = { ...value.agent, config: this.#session.agent.config };
    // A settled run is taken out by the reaction to its settle.
    if (this.#session.run?.id === value.run.id) this.#session.run = value.run;
  }
}
