/** An agent as a program holds it: who asks through it is the user, not an agent (WRK-5). */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord, AgentStatus } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { MailReceipt, MailRecord } from "../protocol/mail.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { Usage } from "../protocol/usage.ts";
import { abortable, type CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import { activeSpanReference } from "../platform/telemetry.ts";
import type { AgentControl } from "../control/agent-control.ts";
import type { HostUsage } from "../control/host.ts";
import type { InterruptInput, Touched } from "../control/interrupt.ts";
import { type AgentSummary, owed, owes, type OwedWork, summarise } from "../control/listing.ts";
import type { OnBusy } from "../control/messages.ts";
import type { SpawnInput } from "../control/spawn.ts";
import { type Explanation, why } from "../control/why.ts";
import { type HostToolOptions, type HostTools, hostTools } from "../tools/host-tools.ts";
import { injectMail, type MailInjection } from "../tools/bindings/inject-mail.ts";
import type { Page, StoreView } from "../store/port.ts";
import { AGENT, spawnParts } from "./arguments.ts";
import { Work } from "./work.ts";

const USER = { kind: "user", name: "library" } as const;

/** A command that may be sent again. */
export interface Repeatable extends CallOptions {
  /** Names it in its tree (SPN-6): the same id and arguments again are the same receipt and no second effect. */
  readonly commandId?: string;
}

/** How input of the user is taken. */
export interface SendOptions extends Repeatable {
  /** A busy agent: joins its run at the next step boundary (default), waits for the next run, or is refused. */
  readonly onBusy?: OnBusy;
  readonly outputSchema?: SpawnInput["outputSchema"];
  readonly acceptance?: SpawnInput["acceptance"];
  /** Another provider for this run and, once it has accepted, for the thread (lineage C4.12). */
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  /** Refused with `THREAD_REVISION_CONFLICT` when the thread has changed since (lineage C3.2). */
  readonly expectedRevision?: number;
}

/** How the first task of a child is asked for. */
export type SpawnRequest = Omit<SpawnInput, "taskName" | "message" | "asked" | "parent" | "trace">;

/**
 * What a child is like and how its first task is asked for; what is left out comes from roles, defaults and the
 * parent.
 */
export type SpawnOptions = SpawnInput["asked"] & SpawnRequest & Repeatable;

/** How a close treats what is going on. */
export interface CloseOptions extends Repeatable {
  /** Refuses with `THREAD_BUSY` while something is going on. */
  readonly politely?: boolean;
}

/** Which page of rows; the first hundred unless given. */
export interface PageOptions extends CallOptions {
  /** The `next` of the page before; what names no row is refused. */
  readonly after?: string | null;
  readonly limit?: number;
}

/**
 * An agent as a program holds it: `tree.root`, or from `tree.agent` and `agent.spawn`. Who asks through it is the
 * user.
 */
export class Agent {
  readonly threadId: ThreadId;
  readonly path: AgentPath;
  readonly #control: AgentControl;
  readonly #hostDriven: boolean;

  constructor(control: AgentControl, agent: Pick<AgentRecord, "threadId" | "path" | "hostDriven">) {
    this.#control = control;
    this.threadId = agent.threadId;
    this.path = agent.path;
    this.#hostDriven = agent.hostDriven;
  }

  /**
   * Gives the agent input of the user: a work whose outcome can be awaited. What is stored goes on, whoever has left; end it
   * with `interrupt`.
   * @throws RejectedError `THREAD_BUSY`, `AGENT_CLOSED`, `MAILBOX_FULL`, `BUDGET_EXHAUSTED`, `LIMIT_REACHED`, `QUEUE_FULL`;
   * the signal's reason.
   */
  async send(message: string, options: SendOptions = {}): Promise<Work> {
    check("Agent.send", AGENT.send, { message, options });
    const { onBusy = "steer", commandId, signal, ...rest } = options;
    const input = { message, onBusy, trace: activeSpanReference(), ...rest };
    const work = await this.#control.userInput(this.threadId, USER, input, { commandId, signal });
    return new Work(this.#control, work.id);
  }

  /**
   * A message that starts no run: it is read with the agent's next one.
   * @throws RejectedError `AGENT_CLOSED`, `MAILBOX_FULL`.
   */
  async tell(message: string, options: Repeatable = {}): Promise<MailReceipt> {
    check("Agent.tell", AGENT.tell, { message, options });
    return this.#control.send(USER, this.threadId, message, options);
  }

  /**
   * Makes a child of this agent and gives it its first task. Inherits nothing of the history unless `forkTurns` says so.
   * @throws RejectedError `AGENT_EXISTS`, `AGENT_CLOSED`, `LIMIT_REACHED`, `AGENT_LIMIT_REACHED`, `QUEUE_FULL`,
   * `BUDGET_EXHAUSTED`, `AUTHORITY_ESCALATION_DENIED`.
   */
  async spawn(
    taskName: string,
    message: string,
    options: SpawnOptions = {},
  ): Promise<{ readonly agent: Agent; readonly work: Work }> {
    check("Agent.spawn", AGENT.spawn, { taskName, message, options });
    const { forkTurns = "none", ...request } = spawnParts.request.parse(options);
    const asked = spawnParts.asked.parse(options) as SpawnInput["asked"];
    const trace = activeSpanReference();
    const receipt = await this.#control.spawn(
      USER,
      { ...request, forkTurns, trace, parent: this.threadId, taskName, message, asked },
      { commandId: options.commandId, signal: options.signal },
    );
    return {
      agent: new Agent(this.#control, { ...receipt, hostDriven: false }),
      work: new Work(this.#control, receipt.workId),
    };
  }

  /**
   * Mints the token by which a caller outside of this program acts as the agent (`runtime.actAs`). There is one at a time:
   * the one before is refused from now on. Only its digest is stored.
   */
  async token(options: CallOptions = {}): Promise<string> {
    check("Agent.token", AGENT.call, options);
    return this.#control.mintToken(this.threadId, options);
  }

  /**
   * The tools of a host-driven root, for the loop of this program, which is its host from now on and until all that it was given
   * is disposed of: `using host = tree.root.tools()`. The place is another's then (`runtime.actAs`), these tools refuse with
   * `NOT_OWNER`, and `onHostGone` says what becomes of the works (HDR-4).
   * @throws RejectedError `INVALID_ARGUMENT` for an agent whose runs are ours; `NOT_OWNER` while another host is connected
   * (HDR-5).
   */
  tools(options: HostToolOptions = {}): HostTools {
    check("Agent.tools", AGENT.tools, options);
    this.#requireHostDriven("its tools are in its runs by themselves");
    const seat = this.#control.hosts.connect("this program");
    let left = false;
    const authorise = (): void => {
      if (left) throw new RejectedError("NOT_OWNER", "this program has left the root; take its tools anew.");
    };
    const leave = (): void => {
      left = true;
      seat[Symbol.dispose]();
    };
    const tools = hostTools(this.#control, this.threadId, { ...options, authorise });
    return Object.assign([...tools], { [Symbol.dispose]: leave });
  }

  /**
   * Puts unread mail of a host-driven root into the messages of a loop that lets others do so: give `prepareStep` and
   * `onStepEnd` to the AI SDK's `generateText` or `streamText`. One for each loop under way.
   * @throws RejectedError `INVALID_ARGUMENT` for an agent whose runs are ours.
   */
  async injectMail(options: CallOptions = {}): Promise<MailInjection> {
    check("Agent.injectMail", AGENT.call, options);
    this.#requireHostDriven("its mail comes into its runs by itself");
    return abortable(options.signal, async () => injectMail(this.#control, this.threadId));
  }

  #requireHostDriven(instead: string): void {
    if (this.#hostDriven) return;
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `${this.path} is not host-driven; ${instead}. A root is with \`openTree({ hostDriven: true })\`.`,
      { path: this.path },
    );
  }

  /**
   * Stops its run, alone or with everything below it; it keeps its history and its mail.
   * @throws RejectedError `COMMAND_ID_CONFLICT`.
   */
  async interrupt(options: InterruptInput & Repeatable = {}): Promise<readonly Touched[]> {
    check("Agent.interrupt", AGENT.interrupt, options);
    const { commandId, signal, ...input } = options;
    return this.#control.interrupt(USER, this.threadId, input, { commandId, signal });
  }

  /** Closes this agent and all below it. @throws RejectedError `THREAD_BUSY`. */
  async close(options: CloseOptions = {}): Promise<readonly AgentPath[]> {
    check("Agent.close", AGENT.close, options);
    return this.#control.close(this.threadId, options);
  }

  /** The agent as lists show it. */
  async summary(options: CallOptions = {}): Promise<AgentSummary> {
    check("Agent.summary", AGENT.call, options);
    return this.#read(options, (view) => summarise(view, view.agent(this.threadId)!, this.#control));
  }

  /** What it is doing. */
  async status(options: CallOptions = {}): Promise<AgentStatus> {
    check("Agent.status", AGENT.call, options);
    return (await this.summary(options)).status;
  }

  /** The agent as it is stored. */
  async record(options: CallOptions = {}): Promise<AgentRecord> {
    check("Agent.record", AGENT.call, options);
    return this.#read(options, (view) => view.agent(this.threadId)!);
  }

  /**
   * Usage of this agent and all below it (BUD-4). With figures: what the host of a host-driven root has used, counted
   * first (HDR-5).
   */
  async usage(used?: HostUsage, options: CallOptions = {}): Promise<Usage> {
    check("Agent.usage", AGENT.usage, { used, options });
    if (used !== undefined) await this.#control.reportUsage(this.threadId, used, options);
    return this.#read(options, (view) => view.usageUnder(this.#control.tree.treeId, this.path));
  }

  /** Its history from an item on. */
  async transcript(from = 0, limit = 1000, options: CallOptions = {}): Promise<readonly TranscriptItem[]> {
    check("Agent.transcript", AGENT.transcript, { from, limit, options });
    return this.#read(options, (view) => view.items(this.threadId, from, limit));
  }

  /** Its mail, oldest first, paged. */
  async mail(page: PageOptions = {}): Promise<Page<MailRecord>> {
    check("Agent.mail", AGENT.page, page);
    return this.#read(page, (view) =>
      view.mailOf(this.threadId, { after: page.after ?? null, limit: page.limit ?? 100 }),
    );
  }

  /** Its runs, oldest first, paged. */
  async runs(page: PageOptions = {}): Promise<Page<RunRecord>> {
    check("Agent.runs", AGENT.page, page);
    return this.#read(page, (view) =>
      view.runsOf(this.threadId, { after: page.after ?? null, limit: page.limit ?? 100 }),
    );
  }

  /** Works that others owe to it. */
  async owed(options: CallOptions = {}): Promise<readonly OwedWork[]> {
    check("Agent.owed", AGENT.call, options);
    return this.#read(options, (view) => owed(view, view.agent(this.threadId)!, this.#control));
  }

  /** Works that it owes to others. */
  async owes(options: CallOptions = {}): Promise<readonly OwedWork[]> {
    check("Agent.owes", AGENT.call, options);
    return this.#read(options, (view) => owes(view, view.agent(this.threadId)!, this.#control));
  }

  /** Why it does what it does, or does not (OBS-3). */
  async why(options: CallOptions = {}): Promise<Explanation> {
    check("Agent.why", AGENT.call, options);
    const owner = this.#control.tree.state === "owned" ? "this process" : null;
    return this.#read(options, (view) => why(view, view.agent(this.threadId)!, this.#control, owner));
  }

  #read<T>({ signal }: CallOptions, plan: (view: StoreView) => T): Promise<T> {
    return abortable(signal, () => this.#control.read(plan));
  }

  /** Raises, or with null lifts, a budget of this agent and all below it (BUD-2). */
  async raiseBudget(
    budget: "tokens" | "money" | "wallClock",
    limit: number | null,
    options: Repeatable = {},
  ): Promise<void> {
    check("Agent.raiseBudget", AGENT.raiseBudget, { budget, limit, options });
    return this.#control.raiseBudget(this.threadId, budget, limit, options);
  }
}
