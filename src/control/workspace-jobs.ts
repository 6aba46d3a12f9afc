/**
 * What goes on in the workspaces of a tree's agents beside its commits: checkpoints that are taken, worktrees that are
 * ended.
 *
 * - J1 Of one agent one at a time, in the order in which they were asked for; of a tree a few at a time.
 * - J2 Its agent's next run waits for them, with neither permit nor slot (`dispatch.ts`); when the tree is given back
 *   they have a limited time to end.
 */
import { InterruptedError } from "../protocol/errors.ts";
import type { Limits } from "../protocol/limits.ts";
import type { Clock } from "../platform/clock.ts";

const AT_ONCE = 4;

export class WorkspaceJobs {
  /** The last one of each. */
  readonly #last = new Map<string, Promise<void>>();
  readonly #over = new AbortController();
  readonly #waiting: (() => void)[] = [];
  readonly #onDone: () => void;
  #running = 0;

  /** `onDone` is called when none of a key is left. */
  constructor(onDone: () => void) {
    this.#onDone = onDone;
  }

  /** Resolves when none of this key is left; it never rejects. */
  of(key: string): Promise<void> | undefined {
    return this.#last.get(key);
  }

  /** `job` sees to its own faults. */
  add(key: string, job: (signal: AbortSignal) => Promise<void>): void {
    const before = this.#last.get(key);
    const mine = this.#take(before, job).finally(() => {
      if (this.#last.get(key) !== mine) return;
      this.#last.delete(key);
      this.#onDone();
    });
    this.#last.set(key, mine);
  }

  async #take(before: Promise<void> | undefined, job: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await before;
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      await job(this.#over.signal);
    } finally {
      // The place is handed on, or free.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  /** The tree is another's: what is under way is called off, and what waits finds that it is. */
  callOff(reason: Error): void {
    this.#over.abort(reason);
  }

  /** Waits for all of them, calls off those that take longer, and leaves those that do not hear it to themselves. */
  async end(
    clock: Clock,
    { closeDeadlineMs, interruptGraceMs }: Pick<Limits, "closeDeadlineMs" | "interruptGraceMs">,
  ): Promise<void> {
    if (this.#last.size === 0) return;
    const left = Promise.withResolvers<void>();
    const timers = [
      clock.setTimer(closeDeadlineMs, () => this.callOff(givenBack()), { keepAlive: true }),
      clock.setTimer(closeDeadlineMs + interruptGraceMs, left.resolve, { keepAlive: true }),
    ];
    await Promise.race([this.#none(), left.promise]);
    for (const timer of timers) timer.cancel();
  }

  async #none(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}

function givenBack(): InterruptedError {
  return new InterruptedError(
    "RUNTIME_CLOSED",
    "the tree was given back while this went on in a workspace, and it was called off; open the tree again.",
  );
}
