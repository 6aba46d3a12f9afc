/**
 * Errors (ERR-1): one base, four families by what the receiver must do. The code says what happened; `docs/errors.md`
 * is held to the table below by a test.
 *
 * - E1 `message` is the text for operators. `forModel()` is the text a model may read; only rejected and interrupted
 *   errors have one of their own.
 * - E2 A refusal is never a failed run: tools turn it into a tool result.
 * - E3 `details` carry limit, value and use where there is a limit (BUD-3).
 */
import type { JsonObject } from "./json.ts";

export type ErrorFamily = "rejected" | "transient" | "interrupted" | "invariant";

export interface ErrorEntry {
  readonly family: ErrorFamily;
  readonly retryable: boolean;
  /** What happened and what to do next, for people. */
  readonly meaning: string;
}

const rejected = (meaning: string) => ({ family: "rejected", retryable: false, meaning }) as const;
const later = (meaning: string) => ({ family: "rejected", retryable: true, meaning }) as const;
const transient = (meaning: string) => ({ family: "transient", retryable: true, meaning }) as const;
const interrupted = (meaning: string) => ({ family: "interrupted", retryable: false, meaning }) as const;
const invariant = (meaning: string) => ({ family: "invariant", retryable: false, meaning }) as const;

/** Family, whether to repeat, and meaning of every code; the list of errors.md. */
export const ERROR_TABLE = {
  INVALID_ARGUMENT: rejected(
    "An argument is missing, of the wrong type, or out of range; correct the one that the text names.",
  ),
  AGENT_NOT_FOUND: rejected(
    "No agent has this path or id in this tree; list the agents and use a path from there.",
  ),
  AGENT_EXISTS: rejected(
    "The path is taken for the life of the tree; choose another task name or follow up.",
  ),
  AGENT_CLOSED: rejected(
    "The agent is closed and takes no mail; read its last outcome in the details, and ask another agent.",
  ),
  AGENT_LIMIT_REACHED: later("No agent can be started or loaded now; wait for a result or close an agent."),
  QUEUE_FULL: later("Too many agents already wait to run; wait for results before asking for more."),
  MAILBOX_FULL: later("The mailbox has no room; wait until its owner has read, then send again."),
  BUDGET_EXHAUSTED: rejected("The budget is spent; raise it or finish with what there is."),
  LIMIT_REACHED: later(
    "A limit of the tree is reached; the details name it, its value and what would free it.",
  ),
  CAUSAL_LIMIT: rejected(
    "The chain of requests behind this one is too long; answer instead of asking further.",
  ),
  WAIT_CYCLE: rejected("This wait could never end, because it waits on itself; the loop is in the details."),
  LOAD_FAILED: rejected(
    "The agent could not be loaded; mend the reason that the details give, then send again.",
  ),
  NOT_OWNER: later(
    "Another process owns this tree; send the command through it, or wait until its lease has run out.",
  ),
  FENCED: rejected("This process has lost the tree to another owner; reopen the tree before acting on it."),
  STORE_BUSY: transient("The store is locked by another connection; try again."),
  STORE_FULL: transient("The store has no space; free some and try again."),
  STORE_IO: transient("The store could not be read or written; check the disk and the file's rights."),
  STORE_CORRUPT: rejected("The file is not a database of Coppice, or it is damaged; restore it from a copy."),
  STORE_VERSION: rejected("The store was written by a newer version; update Coppice or use another store."),
  TOKEN_INVALID: rejected("The token is unknown or no longer valid; use the one minted for this agent."),
  PROVIDER_NOT_CONFIGURED: rejected(
    "The agent's provider is not among those given to the runtime; add it by name.",
  ),
  TOOL_NOT_CONFIGURED: rejected(
    "A tool of the agent is not among those given to the runtime; add it by name.",
  ),
  PROVIDER_REFUSED: rejected("The provider refused the request and will refuse it again; read its text."),
  PROVIDER_OVERLOADED: transient(
    "The provider is overloaded or limits the rate; try again after the time it names.",
  ),
  PROVIDER_UNREACHABLE: transient("The provider could not be reached, or it cut the connection; try again."),
  PROVIDER_STALLED: transient("The provider stopped answering; try again."),
  PROVIDER_PROTOCOL: rejected(
    "The provider's answer does not follow its protocol; the details hold what came.",
  ),
  RESPONSE_TOO_LONG: rejected(
    "The model reached its limit of output twice in a row; ask for less at once, or raise the limit.",
  ),
  RESPONSE_FILTERED: rejected("The provider's filter cut the response off; what it had said is kept."),
  MODEL_UNSUPPORTED: rejected(
    "The model does not implement specification v4 of the AI SDK; update its package.",
  ),
  THREAD_NOT_FOUND: rejected(
    "No thread has this id in this store; list the threads and use an id from there.",
  ),
  THREAD_EXISTS: rejected("A thread with this id is there already; continue it, or leave the id out."),
  THREAD_REVISION_CONFLICT: later(
    "The thread was changed since it was looked at; read it again, then ask again.",
  ),
  THREAD_INVARIANT_VIOLATION: rejected(
    "The record or the step is not one that a thread may have; nothing was changed.",
  ),
  THREAD_ARCHIVED: rejected("The thread is archived: its title alone can change. Fork it to go on."),
  THREAD_CLOSED: rejected("The thread is closed and has no new runs; fork it to go on."),
  THREAD_EXECUTION_BINDING_MISMATCH: rejected(
    "The run is not one of this thread, or opened on another context than its policy says; nothing was changed.",
  ),
  THREAD_CONTEXT_TAMPERED: rejected(
    "A stored snapshot or history entry does not match its digest; nothing was opened on it. Restore it from a copy.",
  ),
  LINEAGE_CYCLE: rejected("A thread would descend from itself; nothing was changed."),
  LINEAGE_DEPTH_EXCEEDED: rejected("The line of forks is too long; fork an earlier thread instead."),
  SOURCE_POINT_NOT_FOUND: rejected(
    "The thread has no such point; name a run, a message or a checkpoint that it has.",
  ),
  SOURCE_POINT_UNSTABLE: later(
    "The point lies in a run that is not over; wait for its end, or take an earlier one.",
  ),
  SOURCE_POINT_ROLLED_BACK: rejected("The point was rolled back; take one that the thread still has."),
  FORK_UNCOMMITTED_MESSAGE: later(
    "The message has no place in the transcript yet; fork when it has been taken in.",
  ),
  FORK_NATIVE_UNSUPPORTED: rejected(
    "The provider cannot fork its own conversation at this point; fork with `replay` or `auto`.",
  ),
  FORK_NATIVE_FAILED: later(
    "The provider refused to fork its conversation; nothing else was tried. Try again, or fork with `replay`.",
  ),
  FORK_NATIVE_INDETERMINATE: later(
    "Whether the provider has forked its conversation is not known; reconcile the thread, then go on.",
  ),
  FORK_REPLAY_DISABLED: rejected("Replay is switched off; fork natively, or switch it on."),
  FORK_SEED_EMPTY: rejected("There is nothing before this point that could be replayed; start a new thread."),
  TRANSFER_STATE_INVALID: rejected(
    "The transfer or handoff has moved on and cannot take this step; read its status.",
  ),
  TRANSFER_SOURCE_UNRESOLVABLE: rejected("What the transfer rests on is gone; fork or switch again."),
  CONTEXT_UNSUPPORTED: rejected(
    "The provider takes no context in any way that we have; nothing was sent. Choose another provider.",
  ),
  HANDOFF_BUDGET_TOO_SMALL: rejected(
    "Not one item fits into the handoff's budget; raise the budget, or choose a model with a larger window.",
  ),
  HANDOFF_GENERATION_FAILED: later("The handoff could not be written; try again."),
  MERGE_BACK_NOT_A_FORK: rejected(
    "Only a fork merges back, and only into the thread it was forked from; name those two.",
  ),
  MERGE_BACK_SOURCE_UNSTABLE: later("The fork has no run that is over; wait for one, then merge back."),
  PROVIDER_UNAVAILABLE: later(
    "The provider is not there, switched off or not signed in; mend that, or choose another one.",
  ),
  PROVIDER_CAPABILITY_MISSING: rejected(
    "The provider cannot do what was asked of it; the details name the capability.",
  ),
  PROVIDER_RESUME_FAILED: transient(
    "The provider could neither resume its conversation nor begin another with the history; try again.",
  ),
  PROVIDER_WRITER_BUSY: transient(
    "Another program writes to the provider's conversation; let it end, then try again.",
  ),
  EXTERNAL_SERVER_URL_INVALID: rejected(
    "The address of a server is not one on this machine, or holds more than scheme, host and port; give such an origin.",
  ),
  ROLLBACK_TARGET_INVALID: rejected(
    "There is no such run or message to go back to; list the runs of the thread.",
  ),
  ROLLBACK_ACTIVE_RUN: later("A run is under way; interrupt it or wait for its end, then roll back."),
  ROLLBACK_PROVIDER_CHANGED: rejected(
    "The thread runs on another provider than when this was asked; look at it again, then ask again.",
  ),
  ROLLBACK_TURN_UNAVAILABLE: rejected(
    "The provider does not know the turn to go back to; roll back without demanding its own rollback.",
  ),
  ROLLBACK_NATIVE_UNSUPPORTED: rejected(
    "The provider cannot roll its own conversation back; roll back without demanding that.",
  ),
  THREAD_BUSY: later("A run, an open work or trigger-turn mail is there; wait, queue, or steer."),
  COMMAND_ID_CONFLICT: rejected("The idempotency key was used before with other arguments; use a new key."),
  POLICY_UNMET: rejected(
    "The provider cannot hold the agent to its effects; choose another provider, or allow what the details name.",
  ),
  AUTHORITY_ESCALATION_DENIED: rejected(
    "The request is wider than the caller's own authority; ask for less.",
  ),
  SUBAGENT_PARENT_NOT_ACTIVE: rejected(
    "An agent can only ask for work while it runs; ask in its run, or as the user.",
  ),
  REQUEST_NOT_RESUMABLE: rejected("The question or approval is no longer open; nothing was answered."),
  RUN_INTERRUPTED: interrupted("The run was interrupted on purpose; send to the agent to go on."),
  RUNTIME_CLOSED: interrupted("The runtime is closed; open it again."),
  SCRIPT_EXHAUSTED: rejected("A scripted agent was asked for a step its script does not have; add the step."),
  ILLEGAL_TRANSITION: invariant(
    "A state change that the lifecycle does not know; this is a bug of the runtime.",
  ),
  INVARIANT_BROKEN: invariant("A promise of the runtime does not hold; this is a bug, please report it."),
} as const satisfies Record<string, ErrorEntry>;

/** The codes of errors.md. */
export type ErrorCode = keyof typeof ERROR_TABLE;
/** Every code, in the order of the list. */
export const ERROR_CODES = Object.keys(ERROR_TABLE) as readonly ErrorCode[];

const BRAND = Symbol.for("coppice.error");

export interface ErrorJson {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable: boolean;
  readonly details: JsonObject;
}

/** The base of everything the runtime throws. Test with `CoppiceError.is(error)`, which survives bundling. */
export abstract class CoppiceError extends Error {
  readonly [BRAND] = true;
  readonly code: ErrorCode;
  readonly details: JsonObject;

  constructor(code: ErrorCode, message: string, details: JsonObject = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = this.constructor.name;
    this.code = code;
    this.details = details;
  }

  static is(error: unknown): error is CoppiceError {
    return typeof error === "object" && error !== null && BRAND in error;
  }

  get family(): ErrorFamily {
    return ERROR_TABLE[this.code].family;
  }

  get retryable(): boolean {
    return ERROR_TABLE[this.code].retryable;
  }

  /** What a model may read: its own text for refusals and interruptions, else one line with the code. */
  forModel(): string {
    return this.family === "rejected" || this.family === "interrupted"
      ? `${this.code}: ${this.message}`
      : `${this.code}: the call could not be carried out; try again later or go on without it.`;
  }

  toJSON(): ErrorJson {
    return { code: this.code, message: this.message, retryable: this.retryable, details: this.details };
  }
}

type CodesOf<F extends ErrorFamily> = {
  [C in ErrorCode]: (typeof ERROR_TABLE)[C]["family"] extends F ? C : never;
}[ErrorCode];

/** Do not simply repeat: the request itself was refused. */
export class RejectedError extends CoppiceError {
  declare readonly code: CodesOf<"rejected">;
  constructor(code: CodesOf<"rejected">, message: string, details: JsonObject = {}, cause?: unknown) {
    super(code, message, details, cause);
  }
}

/** May be repeated, after `retryAfterMs` where it is given. */
export class TransientError extends CoppiceError {
  declare readonly code: CodesOf<"transient">;
  readonly retryAfterMs: number | null;
  constructor(
    code: CodesOf<"transient">,
    message: string,
    details: JsonObject = {},
    options: { readonly retryAfterMs?: number | null; readonly cause?: unknown } = {},
  ) {
    super(code, message, details, options.cause);
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

/** Cancelled on purpose; also used as the reason of an abort signal. */
export class InterruptedError extends CoppiceError {
  declare readonly code: CodesOf<"interrupted">;
  constructor(code: CodesOf<"interrupted">, message: string, details: JsonObject = {}) {
    super(code, message, details);
  }
}

/** A bug of the runtime itself. */
export class InvariantError extends CoppiceError {
  declare readonly code: CodesOf<"invariant">;
  constructor(message: string, details: JsonObject = {}, code: CodesOf<"invariant"> = "INVARIANT_BROKEN") {
    super(code, message, details);
  }
}

/** Of a text that goes into records and events. */
const DESCRIBED_CHARACTERS = 4000;

/** Narrows the outcome of a caught value to text that says something, whatever was thrown, and however long that is. */
export function describeError(error: unknown): string {
  let text: string;
  try {
    text = String(error instanceof Error ? error.message : error);
  } catch {
    // It has no form as text; that it was thrown is all that can be said.
    text = "something without a text was thrown";
  }
  if (text.length <= DESCRIBED_CHARACTERS) return text;
  return `${text.slice(0, DESCRIBED_CHARACTERS).toWellFormed()}…`;
}
