/**
 * The least that spawning can be: a session with a mailbox, a path in a map, a history, one `AbortController` a run and a
 * model that answers in a microtask. No limits, no events, nothing stored. Also the two ways in which people cancel a tree.
 */
interface RawMail {
  readonly from: string;
  readonly text: string;
}

export class RawSession {
  readonly path: string;
  readonly parent: RawSession | null;
  readonly children: RawSession[] = [];
  readonly history: { readonly role: "user" | "assistant"; readonly text: string }[] = [];
  mailbox: RawMail[] | null = null;
  abort: AbortController | null = null;
  cancelled = false;

  constructor(path: string, parent: RawSession | null) {
    this.path = path;
    this.parent = parent;
  }
}

export type RawModel = (session: RawSession, signal: AbortSignal) => Promise<string>;

/** A tree whose sessions run as soon as they have mail. */
export class RawTree {
  readonly root = new RawSession("/root", null);
  readonly #byPath = new Map<string, RawSession>([["/root", this.root]]);
  readonly #model: RawModel;
  #ready: RawSession[] = [];

  constructor(model: RawModel) {
    this.#model = model;
  }

  at(path: string): RawSession | undefined {
    return this.#byPath.get(path);
  }

  /** A child with its task; resolves with its answer, which the parent also gets as mail. */
  spawn(parent: RawSession, name: string, task: string): Promise<string> {
    const session = this.add(parent, name);
    return new Promise((resolve) => {
      this.send(session, { from: parent.path, text: task });
      this.#answers.set(session, resolve);
    });
  }

  add(parent: RawSession, name: string): RawSession {
    const session = new RawSession(`${parent.path}/${name}`, parent);
    parent.children.push(session);
    this.#byPath.set(session.path, session);
    return session;
  }

  send(session: RawSession, mail: RawMail): void {
    session.mailbox ??= [];
    session.mailbox.push(mail);
    if (session === this.root || session.mailbox.length > 1) return;
    this.#ready.push(session);
    if (this.#ready.length === 1) queueMicrotask(this.#drain);
  }

  readonly #answers = new Map<RawSession, (text: string) => void>();

  readonly #drain = (): void => {
    const ready = this.#ready;
    this.#ready = [];
    for (const session of ready) void this.#run(session);
  };

  async #run(session: RawSession): Promise<void> {
    for (const { text } of session.mailbox ?? []) session.history.push({ role: "user", text });
    session.mailbox = null;
    session.abort = new AbortController();
    const text = await this.#model(session, session.abort.signal);
    session.abort = null;
    session.history.push({ role: "assistant", text });
    if (session.parent !== null) this.send(session.parent, { from: session.path, text });
    this.#answers.get(session)?.(text);
    this.#answers.delete(session);
  }

  /** The explicit walk over lists of children. */
  cancel(top: RawSession): number {
    const open = [top];
    let count = 0;
    for (let session = open.pop(); session !== undefined; session = open.pop()) {
      session.cancelled = true;
      count += 1;
      for (const child of session.children) open.push(child);
    }
    return count;
  }
}

/** A tree in which every agent has a controller that follows its parent's signal. */
export function abortChain(count: number, fanOut: number): { readonly cancel: () => number } {
  const controllers = [new AbortController()];
  let heard = 0;
  for (let at = 1; at < count; at += 1) {
    const above = controllers[Math.floor((at - 1) / fanOut)]!;
    const own = new AbortController();
    above.signal.addEventListener("abort", () => own.abort(above.signal.reason), { once: true });
    controllers.push(own);
  }
  for (const { signal } of controllers) signal.addEventListener("abort", () => (heard += 1), { once: true });
  return {
    cancel: () => {
      controllers[0]!.abort(new Error("cancelled"));
      return heard;
    },
  };
}
