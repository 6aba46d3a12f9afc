/** What a runtime does, as a program sees it. */
import type { Store } from "../store/port.ts";
import type { Threads } from "./threads.ts";
import type { Connection, ConnectOptions } from "./connection.ts";
import type { TreeOptions } from "./options.ts";
import type { TreeHandle } from "./tree-handle.ts";

/** Owns trees of one store until it is closed. From `createRuntime`. */
export interface Runtime extends AsyncDisposable {
  readonly store: Store;
  /**
   * Makes a tree, or takes over an existing one: what was under way when its last owner ended is recovered (REC-1).
   * @throws RejectedError `NOT_OWNER` while another process owns it, `INVALID_ARGUMENT` for an unknown id.
   */
  openTree(options?: TreeOptions): Promise<TreeHandle>;
  /**
   * Acts as the agent whose token this is (SEC-1); for a host-driven root, as its host.
   * @throws RejectedError `TOKEN_INVALID`; `NOT_OWNER` when the tree is another process's, or its root another host's (HDR-5).
   */
  actAs(token: string, options?: ConnectOptions): Promise<Connection>;
  /** The life of threads: continued, forked, moved to another provider, merged back, closed. */
  readonly threads: Threads;
  /** Gives every tree back and ends what runs, as a crash would: the store has it all. The store stays open. */
  close(): Promise<void>;
}
