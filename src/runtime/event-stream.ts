/**
 * Events as an `AsyncIterable` with cursors (OBS-1): what is stored after the cursor, then what is committed, each once and
 * in order. A reader that is slow gets what it missed from the store; it never holds up an agent (OBS-4).
 */
import type { ProgressEvent, RuntimeEvent } from "../protocol/events.ts";
import type { Tree } from "../control/tree.ts";

/** What a stream tells: events of the log, and progress where it is asked for. */
export type StreamEvent = RuntimeEvent | ProgressEvent;
/** Events, to be read with `for await`; those of the log alone unless progress is asked for. */
export type EventStream<Event extends StreamEvent = StreamEvent> = AsyncIterable<Event>;

/** Events kept for a reader; above it they are read from the store again. */
const BUFFER = 1000;
const PAGE = 500;

/** Which events a stream tells, and until when. */
export interface EventOptions {
  /** Cursor: the `seq` of the last event that is known. Default: what is committed from this call on. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Text as it streams, too; it is not stored and has no cursor. */
  readonly progress?: boolean;
}

export function followEvents(tree: Tree, options: EventOptions): EventStream {
  // "From now on" is this call, not the reader's first step.
  const start =
    options.after === undefined
      ? tree.read((view) => view.lastEvent(tree.treeId))
      : Promise.resolve(options.after);
  // Who never reads is not to be told of it elsewhere.
  start.catch(() => undefined);
  return follow(tree, options, start);
}

async function* follow(tree: Tree, options: EventOptions, start: Promise<number>): EventStream {
  const { signal } = options;
  const buffer: StreamEvent[] = [];
  let wake: () => void = () => undefined;
  let ended = false;
  let missed = false;
  // Subscribed before the store is read, so that nothing falls between the two.
  using _observed = tree.events.observe(
    (event) => {
      if (event.type === "progress" && options.progress !== true) return;
      if (buffer.length < BUFFER) buffer.push(event);
      else missed = true;
      wake();
    },
    () => {
      ended = true;
      wake();
    },
  );
  const isAborted = (): boolean => signal?.aborted === true;
  const onAbort = (): void => wake();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    let cursor = await start;
    let fromStore = true;
    while (!isAborted()) {
      if (fromStore) {
        const stored = await tree.read((view) => view.events(tree.treeId, cursor, PAGE));
        for (const event of stored) {
          if (isAborted()) return;
          cursor = event.seq;
          yield event;
        }
        fromStore = stored.length === PAGE;
        continue;
      }
      const event = buffer.shift();
      if (event === undefined) {
        if (missed) {
          missed = false;
          fromStore = true;
          continue;
        }
        if (ended) return;
        // As whoever waits for a work keeps the process alive, so does who waits for what comes next.
        const held = tree.shared.clock.hold?.();
        await new Promise<void>((resolve) => (wake = resolve));
        held?.cancel();
        continue;
      }
      if (event.type === "progress") {
        yield event;
      } else if (event.seq > cursor + 1) {
        // Some were stored without being told.
        fromStore = true;
      } else if (event.seq > cursor) {
        cursor = event.seq;
        yield event;
      }
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
