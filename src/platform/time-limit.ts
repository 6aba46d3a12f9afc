/**
 * Synchronous work that others have a say in, such as an expression that backtracks without end: for so long at most, so
 * that it cannot hold up the process. What is cut off leaves nothing behind but what it had changed itself.
 */
import { createContext, Script } from "node:vm";

export type Limited<T> = { readonly kind: "done"; readonly value: T } | { readonly kind: "cut_off" };

const context = createContext({ run: (): void => undefined });
const script = new Script("run()");

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
