/**
 * How a command ends: exit codes, and errors as people and programs read them. Errors go to standard error, as one line or,
 * with `--json`, as one JSON object; standard output holds results alone.
 */
import { CoppiceError, type ErrorCode } from "../protocol/errors.ts";
import { isThreadId } from "../protocol/ids.ts";
import { commandLine } from "./screen/command-line.ts";

export const EXIT = {
  ok: 0,
  incomplete: 1,
  badUse: 2,
  notFound: 3,
  limit: 4,
  store: 5,
  timeOut: 124,
  interrupted: 130,
  readerGone: 141,
} as const;

/** As `coppice --help` tells them. */
export const EXIT_CODES = [
  "Exit codes:",
  "  0    done",
  "  1    the work did not complete, its output could not be written, or an error",
  "       that has no code of its own",
  "  2    bad use: an option, an argument, or a setup that cannot run this",
  "  3    not found, closed, not asked any more, or no process owns the tree",
  "  4    a limit or a budget",
  "  5    the store cannot be read or written",
  "  124  the time is over; what was waited for goes on",
  "  130  interrupted",
  "  141  the reader of the output went away; what was under way is left",
].join("\n");

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** An error of the command line itself; `see` is the command to look at next, without `npx coppice`. */
export class CommandError extends Error {
  readonly exit: ExitCode;
  readonly code: string;
  readonly see: string | null;

  constructor(exit: ExitCode, code: string, message: string, see: string | null = null) {
    super(message);
    this.exit = exit;
    this.code = code;
    this.see = see;
  }
}

export function badUse(message: string, see: string | null = null): CommandError {
  return new CommandError(EXIT.badUse, "INVALID_ARGUMENT", message, see);
}

const BY_CODE: Partial<Record<ErrorCode, ExitCode>> = {
  INVALID_ARGUMENT: EXIT.badUse,
  PROVIDER_NOT_CONFIGURED: EXIT.badUse,
  TOOL_NOT_CONFIGURED: EXIT.badUse,
  MODEL_UNSUPPORTED: EXIT.badUse,
  AGENT_NOT_FOUND: EXIT.notFound,
  AGENT_CLOSED: EXIT.notFound,
  NOT_OWNER: EXIT.notFound,
  FENCED: EXIT.notFound,
  REQUEST_NOT_RESUMABLE: EXIT.notFound,
  AGENT_LIMIT_REACHED: EXIT.limit,
  QUEUE_FULL: EXIT.limit,
  MAILBOX_FULL: EXIT.limit,
  BUDGET_EXHAUSTED: EXIT.limit,
  LIMIT_REACHED: EXIT.limit,
  CAUSAL_LIMIT: EXIT.limit,
  STORE_BUSY: EXIT.store,
  STORE_FULL: EXIT.store,
  STORE_IO: EXIT.store,
  STORE_CORRUPT: EXIT.store,
  STORE_VERSION: EXIT.store,
  LINEAGE_CYCLE: EXIT.store,
  COMMAND_ID_CONFLICT: EXIT.badUse,
  CONTEXT_UNSUPPORTED: EXIT.badUse,
  FORK_NATIVE_UNSUPPORTED: EXIT.badUse,
  FORK_REPLAY_DISABLED: EXIT.badUse,
  FORK_SEED_EMPTY: EXIT.badUse,
  MERGE_BACK_NOT_A_FORK: EXIT.badUse,
  PROVIDER_CAPABILITY_MISSING: EXIT.badUse,
  PROVIDER_UNAVAILABLE: EXIT.badUse,
  ROLLBACK_NATIVE_UNSUPPORTED: EXIT.badUse,
  THREAD_INVARIANT_VIOLATION: EXIT.badUse,
  TRANSFER_STATE_INVALID: EXIT.badUse,
  FORK_UNCOMMITTED_MESSAGE: EXIT.notFound,
  ROLLBACK_TARGET_INVALID: EXIT.notFound,
  ROLLBACK_TURN_UNAVAILABLE: EXIT.notFound,
  SOURCE_POINT_NOT_FOUND: EXIT.notFound,
  SOURCE_POINT_ROLLED_BACK: EXIT.notFound,
  THREAD_ARCHIVED: EXIT.notFound,
  THREAD_CLOSED: EXIT.notFound,
  THREAD_NOT_FOUND: EXIT.notFound,
  TRANSFER_SOURCE_UNRESOLVABLE: EXIT.notFound,
  HANDOFF_BUDGET_TOO_SMALL: EXIT.limit,
  LINEAGE_DEPTH_EXCEEDED: EXIT.limit,
  THREAD_CONTEXT_TAMPERED: EXIT.store,
  THREAD_EXECUTION_BINDING_MISMATCH: EXIT.badUse,
};

/** The exit code of an error's code, where it is known by that alone. */
export function exitOf(code: string): ExitCode {
  return BY_CODE[code as ErrorCode] ?? EXIT.incomplete;
}

/** Commands that show what an error's text speaks of: of its thread, where the error names one. */
const LOOK: Partial<Record<ErrorCode, string>> = {
  THREAD_NOT_FOUND: "thread list --all",
  THREAD_CLOSED: "thread fork",
  THREAD_ARCHIVED: "thread fork",
  THREAD_REVISION_CONFLICT: "thread show",
  SOURCE_POINT_NOT_FOUND: "thread transcript",
  SOURCE_POINT_ROLLED_BACK: "thread transcript",
  FORK_UNCOMMITTED_MESSAGE: "thread transcript",
  ROLLBACK_TARGET_INVALID: "thread transcript",
  THREAD_INVARIANT_VIOLATION: "thread show",
  TRANSFER_SOURCE_UNRESOLVABLE: "transfers",
  AGENT_NOT_FOUND: "tree",
};
const OF_NO_THREAD: readonly ErrorCode[] = [
  "THREAD_NOT_FOUND",
  "TRANSFER_SOURCE_UNRESOLVABLE",
  "AGENT_NOT_FOUND",
];

function lookAt({ code, details }: CoppiceError, named: string | undefined): string | null {
  const look = details["missing"] === "checkpoint" ? "thread checkpoint list" : LOOK[code];
  if (look === undefined || OF_NO_THREAD.includes(code)) return look ?? null;
  const thread = [details["threadId"], named].find((id) => typeof id === "string" && isThreadId(id));
  return typeof thread === "string" ? `${look} ${thread}` : null;
}

/** What the command that failed was about. */
export interface FailedAt {
  readonly store?: string | undefined;
  readonly tree?: string | undefined;
  /** The first of its arguments that is the id of a thread. */
  readonly thread?: string | undefined;
}

export interface Failure {
  readonly exit: ExitCode;
  readonly code: string;
  readonly message: string;
}

export function failureOf(error: unknown, at: FailedAt = {}): Failure {
  if (error instanceof CommandError) {
    const { exit, code, message, see } = error;
    return { exit, code, message: withLook(message, see, at) };
  }
  if (CoppiceError.is(error)) {
    const timedOut = error.details["timedOut"] === true;
    const message = withLook(error.message, lookAt(error, at.thread), at);
    return { exit: timedOut ? EXIT.timeOut : exitOf(error.code), code: error.code, message };
  }
  const message = error instanceof Error ? error.message : String(error);
  return {
    exit: EXIT.incomplete,
    code: "INVARIANT_BROKEN",
    message: `${message} This is a bug, please report it.`,
  };
}

/** The command to look at names the store that the failed one was about, and its tree where it is about one. */
function withLook(message: string, look: string | null, { store, tree }: FailedAt): string {
  if (look === null) return message;
  return `${message} See: ${commandLine(look, { tree: look === "tree" ? tree : undefined, store })}`;
}
