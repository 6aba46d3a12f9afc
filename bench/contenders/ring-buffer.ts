/**
 * The baseline for mail in memory: actors with a ring buffer each, one queue of those who have mail, one microtask that
 * drains them all, so many messages a visit. Nothing is durable, addressed by path, limited or told to anybody.
 */
class Ring<T> {
  #slots: (T | undefined)[] = Array.from({ length: 8 });
  #read = 0;
  #write = 0;

  push(value: T): void {
    if (this.#write - this.#read === this.#slots.length) this.#grow();
    this.#slots[this.#write++ & (this.#slots.length - 1)] = value;
  }

  shift(): T | undefined {
    if (this.#read === this.#write) return undefined;
    const at = this.#read++ & (this.#slots.length - 1);
    const value = this.#slots[at];
    this.#slots[at] = undefined;
    return value;
  }

  get empty(): boolean {
    return this.#read === this.#write;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = Array.from({ length: old.length * 2 });
    for (let at = this.#read; at < this.#write; at += 1)
      this.#slots[at & (this.#slots.length - 1)] = old[at & (old.length - 1)];
  }
}

export interface Message {
  readonly type: "msg";
  readonly value: number;
}

export class RingActor {
  readonly mailbox = new Ring<Message>();
  readonly handler: (message: Message) => void;
  ready = false;

  constructor(handler: (message: Message) => void) {
    this.handler = handler;
  }
}

const A_VISIT = 256;

export class RingBuffer {
  readonly #ready = new Ring<RingActor>();
  #scheduled = false;

  spawn(handler: (message: Message) => void): RingActor {
    return new RingActor(handler);
  }

  send(actor: RingActor, message: Message): void {
    actor.mailbox.push(message);
    if (actor.ready) return;
    actor.ready = true;
    this.#ready.push(actor);
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(this.#drain);
  }

  readonly #drain = (): void => {
    for (let actor = this.#ready.shift(); actor !== undefined; actor = this.#ready.shift()) {
      for (let left = A_VISIT; left > 0; left -= 1) {
        const message = actor.mailbox.shift();
        if (message === undefined) break;
        actor.handler(message);
      }
      actor.ready = !actor.mailbox.empty;
      if (actor.ready) this.#ready.push(actor);
    }
    this.#scheduled = false;
  };
}
