/**
 * Who drives a host-driven root now (HDR-4, HDR-5). In memory alone: a connection ends with its process, what it asked for
 * does not.
 *
 * - N1 One host at a time, with as many connections as it likes; another one is turned away.
 * - N2 When its last connection is closed the works go on and results wait. With `interrupt` they are interrupted, unless a
 *   host comes within the grace time.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { Timer } from "../platform/clock.ts";
import { interrupt } from "./interrupt.ts";
import type { Tree } from "./tree.ts";

export type OnHostGone = "keep" | "interrupt";

export class Hosts {
  readonly #tree: Tree;
  /** What becomes of its works when its last connection is closed. */
  readonly onGone: OnHostGone;
  #host: string | null = null;
  #connections = 0;
  #unnamed = 0;
  #grace: Timer | null = null;

  constructor(tree: Tree, onGone: OnHostGone) {
    this.#tree = tree;
    this.onGone = onGone;
  }

  /**
   * Without a name it is a host of its own, with this one connection.
   * @throws RejectedError `NOT_OWNER` while another host is connected.
   */
  connect(name?: string): Disposable {
    const host = name ?? `unnamed host ${(this.#unnamed += 1)}`;
    if (this.#host !== null && this.#host !== host) {
      throw new RejectedError(
        "NOT_OWNER",
        `the root of ${this.#tree.treeId} has another host now (${this.#host}); end that one, or make a tree of your own.`,
        { treeId: this.#tree.treeId, host: this.#host },
      );
    }
    this.#grace?.cancel();
    this.#grace = null;
    this.#host = host;
    this.#connections += 1;
    let open = true;
    return {
      [Symbol.dispose]: () => {
        if (!open) return;
        open = false;
        this.#connections -= 1;
        if (this.#connections === 0) this.#gone();
      },
    };
  }

  #gone(): void {
    this.#host = null;
    if (this.onGone === "keep" || this.#tree.state !== "owned") return;
    this.#grace = this.#tree.shared.clock.setTimer(
      this.#tree.limits.hostGraceMs,
      () => {
        this.#grace = null;
        void this.#interrupt();
      },
      { keepAlive: true },
    );
  }

  async #interrupt(): Promise<void> {
    try {
      await this.#tree.transact((tx) =>
        interrupt(tx, tx.agent(tx.treeId), { cascade: "subtree", pending: "cancel" }, this.#tree.partialText),
      );
    } catch (error) {
      this.#tree.shared.logger.warn(
        { treeId: this.#tree.treeId, err: error },
        "interrupting after the host failed",
      );
    }
  }
}
