/** `--run`: takes the lease of a tree, runs it until nothing is left to do, and gives it back. */
import type { RuntimeEvent } from "../../protocol/events.ts";
import type { TreeHandle } from "../../runtime/tree-handle.ts";
import { isDemo } from "../run-tree.ts";
import { plainLine } from "../screen/plain-line.ts";
import type { Terminal } from "../terminal.ts";
import type { Commanded } from "./commanding.ts";

export async function runUntilIdle(
  terminal: Terminal,
  { store, tree, host }: Commanded,
  options: { readonly pace: number; readonly json?: boolean },
): Promise<void> {
  const known = await host();
  const demo = await isDemo(store, tree.id);
  await using runtime = await known.runtime(store, { pace: options.pace, demo });
  const after = await tree.lastEvent();
  await runHandle(terminal, await runtime.openTree({ id: tree.id }), {
    after,
    json: options.json === true,
  });
}

/** Runs a tree that this process owns until nothing is left to do, and tells what happens beside the result. */
export async function runHandle(
  terminal: Terminal,
  handle: TreeHandle,
  { after, ...told }: Told & { readonly after: number },
): Promise<void> {
  await using _following = follow(terminal, handle, after, told);
  await handle.idle({ signal: terminal.signal });
}

export interface Told {
  readonly json: boolean;
  readonly untold?: (event: RuntimeEvent) => boolean;
  /** Something is asked, and waits for an answer. */
  readonly onAsked?: () => Promise<void>;
}

/** Tells what happens in a tree, beside the result: what the command prints to standard output is its receipt and the outcome. */
export function follow(
  terminal: Terminal,
  handle: TreeHandle,
  after: number,
  { json, untold, onAsked }: Told,
): AsyncDisposable {
  const stop = new AbortController();
  // Loading is tried several times, each with its event; what is in the way is told once.
  const failures = new Set<string>();
  const following = (async () => {
    for await (const event of handle.events({ after, signal: stop.signal })) {
      const line = json || untold?.(event) === true ? null : plainLine(terminal, event);
      const again = event.type === "agent.load_failed" && line !== null && failures.has(line);
      if (line !== null && !again) terminal.note(line);
      if (event.type === "agent.load_failed" && line !== null) failures.add(line);
      if (event.type === "request.opened") await onAsked?.();
    }
  })();
  // Told when it is disposed of, and not before: it may fail while the command still waits for something else.
  following.catch(() => undefined);
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await following;
    },
  };
}
