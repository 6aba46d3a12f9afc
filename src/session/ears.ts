/** What is listened to beside the events, until one of them has come. */
export class Ears implements Disposable {
  readonly #all = new AbortController();
  /** Rejects with the reason of the signal. */
  readonly aborted: Promise<never>;

  constructor(signal: AbortSignal) {
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => undefined);
    this.aborted = aborted.promise;
    this.#on(signal, () => aborted.reject(signal.reason as Error));
  }

  get over(): AbortSignal {
    return this.#all.signal;
  }

  heard<T>(signal: AbortSignal, value: T): Promise<T> {
    return new Promise((resolve) => this.#on(signal, () => resolve(value)));
  }

  #on(signal: AbortSignal, hear: () => void): void {
    if (signal.aborted) hear();
    else signal.addEventListener("abort", hear, { once: true, signal: this.#all.signal });
  }

  [Symbol.dispose](): void {
    this.#all.abort();
  }
}

/** The outcome of a call, unless the signal comes first; then the call is left to itself. @throws the signal's reason. */
export async function unlessAborted<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  using ears = new Ears(signal);
  call.catch(() => undefined);
  return await Promise.race([call, ears.aborted]);
}
