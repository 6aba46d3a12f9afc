/**
 * Programs that serve all conversations of a tree: one a tree, shared by the sessions that hold it.
 *
 * - H1 It is started for the first session that wants it, and ended with the last that leaves it.
 * - H2 One that has gone is nobody's any more: whoever comes next starts another, and waits for no session that had it.
 */
import type { StartProcess } from "../platform/process.ts";
import type { ProviderError } from "./json-rpc.ts";

interface Server {
  /** Set when it is gone. */
  readonly fault: ProviderError | null;
  end(): Promise<unknown>;
}

export interface HeldServer<S> {
  readonly server: S;
  readonly release: () => Promise<void>;
}

export class HeldServers<S extends Server> {
  readonly #start: (start: StartProcess) => Promise<S>;
  readonly #held = new Map<string, { readonly server: Promise<S>; holders: number }>();

  constructor(start: (start: StartProcess) => Promise<S>) {
    this.#start = start;
  }

  async hold(treeId: string, start: StartProcess): Promise<HeldServer<S>> {
    for (;;) {
      const known = this.#held.get(treeId);
      const held = known ?? { server: this.#start(start), holders: 0 };
      if (known === undefined) this.#held.set(treeId, held);
      held.holders += 1;
      let server: S;
      try {
        server = await held.server;
      } catch (error) {
        this.#forget(treeId, held);
        throw error;
      }
      if (server.fault === null) return { server, release: this.#releaseOf(treeId, held, server) };
      this.#forget(treeId, held);
    }
  }

  #releaseOf(treeId: string, held: { holders: number }, server: S): () => Promise<void> {
    let released = false;
    return async () => {
      if (released) return;
      released = true;
      held.holders -= 1;
      if (held.holders > 0) return;
      this.#forget(treeId, held);
      await server.end();
    };
  }

  #forget(treeId: string, held: object): void {
    if (this.#held.get(treeId) === held) this.#held.delete(treeId);
  }
}
