/**
 * Synchronous work that others have a say in, such as an expression that backtracks without end: for so long at most, so
 * that it cannot hold up the process. What is cut off leaves nothing behind but what it had changed itself.
 */
import { createContext, Script } from "node:vm";

export type Limited<T> = { readonly kind: "done"; readonly value: T } | { readonly kind: "cut_off" };

const context = createContext({ run: (): void => undefined });
const script = new Script("run()");

/** Time for several such works together: none gets more than its share of what those before it have left. */
export class TimeAllowance {
  readonly #now: () => number;
  #leftMs: number;

  constructor(milliseconds: number, now: () => number = () => performance.now()) {
    this.#leftMs = milliseconds;
    this.#now = now;
  }

  /** `sharedBy`: among how many, this one included, what is left is to be divided. @throws what it throws. */
  run<T>(sharedBy: number, body: () => T): Limited<T> {
    if (this.#leftMs < 1) return { kind: "cut_off" };
    const share = Math.max(1, Math.floor(this.#leftMs / sharedBy));
    const startedAt = this.#now();
    try {
      return withinTimeLimit(share, body);
    } finally {
      // Who is late because the machine is busy takes nothing from the others.
      this.#leftMs -= Math.min(share, this.#now() - startedAt);
    }
  }
}

/** Runs it in real time, which no injected clock could cut off. @throws what it throws. */
export function withinTimeLimit<T>(milliseconds: number, run: () => T): Limited<T> {
  let value: T | undefined;
  // For this call alone: nothing that was run is kept alive by the context.
  context["run"] = (): void => {
    value = run();
  };
  try {
    script.runInContext(context, { timeout: milliseconds });
    return { kind: "done", value: value as T };
  } catch (error) {
    if ((error as NodeJS.ErrnoException | null)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT")
      return { kind: "cut_off" };
    throw error;
  } finally {
    context["run"] = (): void => undefined;
  }
}
