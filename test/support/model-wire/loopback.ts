/** What the servers of tests share: a place on loopback, what becomes of a response, and who awaits which request. */
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Loopback extends AsyncDisposable {
  readonly url: string;
}

/** A server on a free port. Disposing of it closes every connection. */
export async function listen(handler: RequestListener): Promise<Loopback> {
  const server = createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Resolves when a response is over: `done` by the server, or `gone` because the client closed the connection. */
export function closing(outgoing: ServerResponse): Promise<"done" | "gone"> {
  return new Promise((resolve) =>
    outgoing.on("close", () => resolve(outgoing.writableFinished ? "done" : "gone")),
  );
}

/** Requests in the order in which they came, each given to one who awaits it. */
export class Arrivals<T> {
  readonly all: T[] = [];
  readonly #unclaimed: T[] = [];
  readonly #waiting: { readonly matches: (one: T) => boolean; readonly resolve: (one: T) => void }[] = [];

  add(one: T): void {
    this.all.push(one);
    const at = this.#waiting.findIndex(({ matches }) => matches(one));
    if (at === -1) this.#unclaimed.push(one);
    else this.#waiting.splice(at, 1)[0]!.resolve(one);
  }

  /** The first that matches and that no earlier call was given. */
  next(matches: (one: T) => boolean = () => true): Promise<T> {
    const at = this.#unclaimed.findIndex(matches);
    if (at !== -1) return Promise.resolve(this.#unclaimed.splice(at, 1)[0]!);
    return new Promise((resolve) => this.#waiting.push({ matches, resolve }));
  }
}
