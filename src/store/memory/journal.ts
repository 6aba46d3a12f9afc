/** What must be undone when a plan throws, newest first. A plan that succeeds leaves nothing to undo. */
export class Journal {
  #undo: (() => void)[] = [];

  record(undo: () => void): void {
    this.#undo.push(undo);
  }

  forget(): void {
    this.#undo.length = 0;
  }

  rollback(): void {
    for (let at = this.#undo.length - 1; at >= 0; at -= 1) this.#undo[at]!();
    this.forget();
  }
}
