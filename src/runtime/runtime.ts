/** What a runtime does, as a program sees it. */
import type { CallOptions } from "../platform/abortable.ts";
import type { Page, Store } from "../store/port.ts";
import type { PageOptions } from "./agent.ts";
import type { Connection, ConnectOptions } from "./connection.ts";
import type { TreeOptions } from "./options.ts";
import type { Threads } from "./threads.ts";
import type { TreeHandle } from "./tree-handle.ts";
import type { TreeSummary } from "./trees.ts";

/** How many trees `openPending` opens. */
export interface OpenPendingOptions extends CallOptions {
  /** At most so many by one call; 100 by default. Call again for the next ones. */
  readonly limit?: number;
}

/** Owns trees of one store until it is closed. From `createRuntime`. */
export interface Runtime extends AsyncDisposable {
  readonly store: Store;
  /**
   * Makes a tree, or takes over an existing one: what was under way when its last owner ended is recovered (REC-1).
   * A tree whose opening goes on without its caller stays open here.
   * @throws RejectedError `NOT_OWNER` while another process owns it, `INVALID_ARGUMENT` for an unknown id.
   */
  openTree(options?: TreeOptions & CallOptions): Promise<TreeHandle>;
  /** Trees of the store, whoever owns them, newest first, paged: what each has to do, and which process runs it. */
  trees(page?: PageOptions): Promise<Page<TreeSummary>>;
  /**
   * After a restart: opens every tree that nobody owns and that has trigger-turn mail, an open run or a pending command, and
   * answers the handles of those that this call has opened. Trees of this runtime and of other processes are left as they
   * are, so it may be called again, and beside another process that does the same. One that cannot be opened is logged;
   * one whose busy agents run on providers or tools that this runtime was not given is left to a process that has them.
   */
  openPending(options?: OpenPendingOptions): Promise<readonly TreeHandle[]>;
  /**
   * Acts as the agent whose token this is (SEC-1); for a host-driven root, as its host.
   * @throws RejectedError `TOKEN_INVALID`; `NOT_OWNER` when the tree is another process's, or its root another host's (HDR-5).
   */
  actAs(token: string, options?: ConnectOptions): Promise<Connection>;
  /** The life of threads: continued, forked, moved to another provider, merged back, closed. */
  readonly threads: Threads;
  /** Gives every tree back and ends what runs, as a crash would: the store has it all. The store stays open. */
  close(options?: CallOptions): Promise<void>;
}
