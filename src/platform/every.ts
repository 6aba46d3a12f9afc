/** What is said again and again while something lasts, such as that it goes on. */
import { type Clock, delay } from "./clock.ts";

/**
 * Does it every so many milliseconds, counted from one, until it is disposed of. When it fails it is not done any more: whoever was
 * told has gone, which is not the business of what lasts.
 */
export function every(
  clock: Clock,
  milliseconds: number,
  work: (count: number, over: AbortSignal) => Promise<unknown>,
): Disposable {
  const over = new AbortController();
  const repeating = async (): Promise<void> => {
    for (let count = 1; ; count += 1) {
      await delay(clock, milliseconds, over.signal);
      await work(count, over.signal);
    }
  };
  repeating().catch(() => undefined);
  return { [Symbol.dispose]: () => over.abort() };
}
