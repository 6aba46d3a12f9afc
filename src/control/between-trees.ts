/**
 * What an agent may do with threads of other trees (XTR): the verbs, as its tools call them. They stand in a folder above
 * this one; a runtime hands them in.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { threadToolsSchema } from "../protocol/thread-tools.ts";
import type { Caller } from "../protocol/tool.ts";
import type { z } from "zod";
import type { ConfigRequest } from "./transaction.ts";
import type { Tree } from "./tree.ts";

/** Who calls, and the tree that this process owns and that the caller stands in. */
export interface CallFrom {
  readonly tree: Tree;
  readonly caller: Extract<Caller, { readonly kind: "agent" }>;
  readonly key?: string | undefined;
}

export interface NewThread {
  readonly message: string;
  readonly title?: string | undefined;
  readonly asked: ConfigRequest["asked"];
}

export interface ForkAsked {
  /** Default: the caller's own thread. */
  readonly source?: string | undefined;
  /** A settled run of the source; default: its latest stable point. */
  readonly run?: string | undefined;
  readonly title?: string | undefined;
  readonly strategy?: "auto" | "native" | "replay" | undefined;
  /** Input that starts its first run. */
  readonly message?: string | undefined;
}

export interface PageAsked {
  readonly thread?: string | undefined;
  readonly before?: string | undefined;
  readonly limit: number;
}

export interface BetweenTrees {
  readonly policy: z.output<typeof threadToolsSchema>;
  /** @throws RejectedError of limits, budgets and configuration; nothing is made then. */
  create(from: CallFrom, threads: readonly NewThread[]): Promise<{ readonly threads: readonly ThreadId[] }>;
  /** Accepted when it resolves (XTR-1). @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `MAILBOX_FULL` … */
  send(
    from: CallFrom,
    thread: string,
    message: string,
  ): Promise<{ readonly id: string; readonly seq: number }>;
  read(from: CallFrom, page: PageAsked): Promise<JsonObject>;
  fork(from: CallFrom, fork: ForkAsked): Promise<JsonObject>;
  /** The merge would go into the caller's own thread. @throws as `mergeBack`. */
  mergesIntoOwn(from: CallFrom, fork: string | undefined): Promise<boolean>;
  mergeBack(
    from: CallFrom,
    fork: string | undefined,
  ): Promise<{ readonly transferId: string; readonly into: ThreadId }>;
  /** Roots of other trees, by their ids. @throws RejectedError `THREAD_NOT_FOUND`, `INVALID_ARGUMENT`. */
  targets(from: CallFrom, threads: readonly string[]): Promise<readonly AgentRecord[]>;
}
