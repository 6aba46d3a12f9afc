/** What must be undone when a plan throws, newest first. A plan that succeeds leaves nothing to undo. */
import { InvariantError } from "../../protocol/errors.ts";

export class Journal {
  #undo: (() => void)[] = [];
  #open = false;

  begin(): void {
    this.#open = true;
  }

  /** Called before each change. */
  record(undo: () => void): void {
    if (!this.#open) {
      throw new InvariantError(
        "A record was written outside of a commit's plan; a view and an ended plan only read.",
      );
    }
    this.#undo.push(undo);
  }

  keep(): void {
    this.#open = false;
    this.#undo.length = 0;
  }

  rollback(): void {
    for (let at = this.#undo.length - 1; at >= 0; at -= 1) this.#undo[at]!();
    this.keep();
  }
}
