/**
 * The journal of a run: what the run loop asks for becomes commits, and the session follows in the same synchronous block
 * (`session/ports.ts`). Limits, budgets and the provider's back-off are kept here, where the tree is known.
 */
import { CoppiceError, describeError } from "../protocol/errors.ts";
import type { PromptMessage, StepUsage } from "../protocol/provider-events.ts";
import type { RunId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ToolHost, ToolSpec } from "../protocol/tool.ts";
import { UNREPORTED_USAGE, type Usage } from "../protocol/usage.ts";
import { delay } from "../platform/clock.ts";
import { type Attributes, inSpan, type Span } from "../platform/telemetry.ts";
import type {
  Admitted,
  AssistantBody,
  Call,
  NativeAcceptance,
  NativePorts,
  NextInput,
  Preview,
  ResultBody,
  RetryAnswer,
  RunPorts,
} from "../session/ports.ts";
import type { Session } from "../session/session.ts";
import { admitToProvider } from "./admit-request.ts";
import { type ComposedInput, composeInput, leaveOut, overLimit } from "./compose.ts";
import { answerRun } from "./answer.ts";
import { allWaiting, collectCalls } from "./collect.ts";
import { cutRunShort } from "./cut-short.ts";
import { lendSlot } from "./dispatch.ts";
import { NativeJournal } from "./native-journal.ts";
import { acceptTurn } from "./native-thread.ts";
import { acceptRequest, appendItems, currentRun, partialItems, shortRunText, suspendRun } from "./runs.ts";
import { recordStep } from "./steps.ts";
import { charge, pricedUsage } from "./charge.ts";
import type { RunClock } from "./run-clock.ts";
import { previewOf } from "./preview.ts";
import { mustQuarantine, quarantine } from "./quarantine.ts";
import { verdictsOn } from "./schema-checks.ts";
import { settleRun } from "./settle.ts";
import { beginStart } from "./start.ts";
import type { RunStart } from "./start-run.ts";
import type { Look } from "./transaction.ts";
import type { Tree } from "./tree.ts";

export class RunJournal implements RunPorts {
  readonly toolHost: ToolHost;
  readonly tools: readonly ToolSpec[];
  readonly conversationKey: string;
  readonly timeUp: AbortSignal;
  readonly native: NativePorts;
  readonly #tree: Tree;
  readonly #session: Session;
  readonly #signal: AbortSignal;
  readonly #clock: RunClock;
  readonly #span: Span;
  #start: RunStart | null = null;
  /** The limit that the next request wraps up for. */
  #wrapUp: "turn_limit" | "time_limit" | null = null;

  constructor(
    tree: Tree,
    session: Session,
    { abort, clock }: { readonly abort: AbortSignal; readonly clock: RunClock },
    span: Span,
  ) {
    this.#tree = tree;
    this.#session = session;
    this.#signal = abort;
    this.#clock = clock;
    this.timeUp = clock.over;
    this.#span = span;
    this.toolHost = tree.shared.toolHost;
    this.tools = tree.shared.toolHost.specs(session.agent, tree);
    this.conversationKey = tree.treeId;
    this.native = new NativeJournal(tree, session, () => this.#start);
  }

  get #run(): RunRecord {
    return this.#session.run!;
  }

  async start(): Promise<boolean> {
    const span: RunPorts["span"] = (...given) => this.span(...given);
    const begun = await beginStart(this.#tree, this.#session, {
      signal: this.#signal,
      clock: this.#clock,
      span,
    });
    if (begun === "refused") return false;
    this.#start = begun;
    return true;
  }

  async nextInput(): Promise<NextInput> {
    const { id } = this.#run;
    const composed =
      (await this.#tree.look((look) => {
        const { threadId } = currentRun(look, id);
        return mustQuarantine(look, look.agent(threadId)) ? null : this.#compose(look, id);
      })) ??
      (await this.#tree.transact((tx) => {
        quarantine(tx, tx.agent(currentRun(tx, id).threadId));
        return this.#compose(tx, id);
      }));
    this.#wrapUp = composed.wrapUp;
    return composed;
  }

  /** Memory learns of it as it looks: what is committed after that finds the run closed to results that could have joined. */
  #compose(look: Look, runId: RunId): ComposedInput {
    const run = currentRun(look, runId);
    const carried = this.#start?.bodies ?? [];
    const composed = composeInput(look, run, this.#session.items, this.#overLimit(), carried);
    const active = this.#tree.runs.get(run.threadId);
    if (active?.runId === runId) {
      active.composed = true;
      active.drainedSeq = composed.mail.at(-1)?.seq ?? 0;
    }
    return composed;
  }

  async admit(messages: readonly PromptMessage[]): Promise<Admitted> {
    const limit = this.#overLimit();
    if (limit !== null && this.#run.wrapUpOffered) {
      await this.#endByLimit(limit);
      return { kind: "ended" };
    }
    const wrapUp = this.#wrapUp !== null;
    const offer = { tools: wrapUp ? [] : this.tools, wrapUp };
    return admitToProvider(this.#tree, this.#session, this.#signal, messages, offer);
  }

  async accepted(input: NextInput, native?: NativeAcceptance): Promise<void> {
    const { id } = this.#run;
    this.#tree.shared.backOff(this.#run.provider).succeeded();
    await this.#tree.transact(
      (tx) => {
        leaveOut(tx, input);
        const accepted = acceptRequest(tx, id, input, {
          wrapUp: this.#wrapUp !== null,
          start: this.#start,
        });
        tx.effects.mail.add(accepted.agent.threadId);
        return native === undefined ? accepted : { ...accepted, run: acceptTurn(tx, accepted.run, native) };
      },
      (value) => {
        const starting = this.#session.lifecycle.state === "reserved";
        this.#session.absorb(value);
        if (starting) this.#session.lifecycle.send("ACCEPT");
      },
    );
  }

  async calls(body: AssistantBody, usage: StepUsage | null): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact(
      (tx) => recordStep(tx, id, body, this.#usage(usage)),
      (value) => this.#session.absorb(value),
    );
  }

  async answered(
    body: AssistantBody,
    usage: StepUsage | null,
    text: string,
    cut: "length" | "content_filter" | null = null,
  ): Promise<"settled" | "continues"> {
    const { id, serves } = this.#run;
    const about = { text, wrapUp: this.#wrapUp, verdicts: await verdictsOn(this.#tree, serves, text) };
    const { outcome } = await this.#tree.transact(
      (tx) =>
        cut === null
          ? answerRun(tx, id, body, this.#usage(usage), about)
          : cutRunShort(tx, id, body, this.#usage(usage), { ...about, cut }),
      (value) => this.#session.absorb(value),
    );
    return outcome;
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
      (value) => this.#session.absorb(value),
    );
  }

  async collect(calls: readonly Call[]): Promise<ReadonlySet<string>> {
    const { id } = this.#run;
    const waiting = await this.#tree.look((look) => allWaiting(look, id, calls));
    if (waiting !== null) return waiting;
    const collected = await this.#tree.transact(
      (tx) => collectCalls(tx, id, calls),
      (value) => this.#session.absorb(value),
    );
    return collected.waiting;
  }

  async suspend(): Promise<boolean> {
    const { id } = this.#run;
    const suspended = await this.#tree.transact(
      (tx) => {
        const run = suspendRun(tx, id);
        return run === null ? null : { run, agent: tx.agent(run.threadId) };
      },
      (found) => {
        if (found === null) return;
        const { run } = found;
        // A tool may have asked for an approval, in a commit of its own.
        this.#session.absorb(found);
        this.#session.lifecycle.send("WAIT");
        this.#tree.runs.get(this.#session.agent.threadId)?.grant?.giveBack();
        const { openRequests } = this.#session.agent;
        if (openRequests === 0 && !this.#tree.parksWaits(run.provider)) lendSlot(this.#tree, run.threadId);
      },
    );
    return suspended !== null;
  }

  async failed(error: unknown, attempt: number, visible: boolean): Promise<RetryAnswer> {
    const { retries } = this.#tree.limits;
    const decision = this.#tree.shared.backOff(this.#run.provider).failed(error, attempt, visible, retries);
    this.#tree.shared.logger.info(
      { runId: this.#run.id, attempt, err: error, ...decision },
      "request failed",
    );
    if (decision.retry) {
      const { id, threadId } = this.#run;
      const code = CoppiceError.is(error) ? error.code : "PROVIDER_PROTOCOL";
      await this.#tree.transact((tx) =>
        tx.emit(
          "run.retrying",
          tx.agent(threadId),
          { runId: id },
          { attempt, delayMs: decision.delayMs, code },
        ),
      );
    }
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
      if (usage !== null) charge(tx, run, this.#usage(usage));
      if (run.acceptedAt !== null) appendItems(tx, tx.agent(run.threadId), run, partialItems(run, partial));
      settleRun(tx, id, {
        status: "failed",
        reason: "provider_error",
        text: partial || run.text,
        error: { code, message: tx.context.redact(describeError(error)), status },
        refused: run.acceptedAt === null && !(CoppiceError.is(error) && error.family === "transient"),
        unreported: usage === null && run.acceptedAt !== null,
      });
    });
    this.#session.partialText = "";
  }

  async cutOff(): Promise<void> {
    const { id } = this.#run;
    const partial = this.#session.partialText;
    await this.#tree.transact(
      (tx) => {
        const run = { ...currentRun(tx, id), text: shortRunText(partial) || this.#run.text };
        tx.store.putRun(run);
        return { ...appendItems(tx, tx.agent(run.threadId), run, partialItems(run, partial)), run };
      },
      (value) => this.#session.absorb(value),
    );
    this.#session.partialText = "";
  }

  pause(ms: number, signal: AbortSignal): Promise<void> {
    return delay(this.#tree.shared.clock, ms, signal);
  }

  preview(): Preview {
    return previewOf(this.#tree, this.#session, this.#run.id);
  }

  span<T>(
    name: string,
    attributes: Attributes,
    body: (add: (attributes: Attributes) => void) => Promise<T>,
    origin: { readonly client?: boolean } = {},
  ): Promise<T> {
    return inSpan(this.#tree.shared, name, attributes, body, { parent: this.#span, ...origin });
  }

  /** One offered wrap-up step has not ended it: the limit does (RUN-3). */
  async #endByLimit(limit: "turn_limit" | "time_limit"): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact((tx) => {
      const run = currentRun(tx, id);
      settleRun(tx, id, { status: "failed", reason: limit, text: run.text });
    });
  }

  #overLimit(): "turn_limit" | "time_limit" | null {
    const limit = overLimit(this.#tree.limits, this.#run, this.#tree.shared.clock.now());
    return limit ?? (this.timeUp.aborted ? "time_limit" : null);
  }

  #usage(usage: StepUsage | null): Usage {
    return usage === null ? UNREPORTED_USAGE : pricedUsage(this.#tree.shared, this.#run, usage);
  }
}
