/** Fan-out of committed events to those who watch. A slow or throwing observer never disturbs an agent (OBS-4). */
import type { ProgressEvent, RuntimeEvent } from "../protocol/events.ts";

export type HubEvent = RuntimeEvent | ProgressEvent;
type Observer = (event: HubEvent) => void;

export class EventHub {
  readonly #observers = new Set<Observer>();
  readonly #closers = new Set<() => void>();
  #closed = false;

  /** Somebody watches: what is made for them alone is wanted. */
  get observed(): boolean {
    return this.#observers.size > 0;
  }

  publish(events: readonly HubEvent[]): void {
    if (events.length === 0 || this.#observers.size === 0) return;
    for (const observer of this.#observers) {
      try {
        for (const event of events) observer(event);
      } catch {
        // An observer's fault is its own; the agents go on.
        this.#observers.delete(observer);
      }
    }
  }

  observe(observer: Observer, onClose: () => void): Disposable {
    if (this.#closed) onClose();
    this.#observers.add(observer);
    this.#closers.add(onClose);
    return {
      [Symbol.dispose]: () => {
        this.#observers.delete(observer);
        this.#closers.delete(onClose);
      },
    };
  }

  close(): void {
    this.#closed = true;
    for (const close of this.#closers) close();
    this.#observers.clear();
    this.#closers.clear();
  }
}
