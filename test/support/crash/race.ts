/** A track for processes that race for one thread: a store, a runtime that makes threads in it, and two racers. */
import { join } from "node:path";
import type { JsonObject } from "../../../src/protocol/json.ts";
import type { ThreadId } from "../../../src/protocol/ids.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import type { Runtime } from "../../../src/runtime/runtime.ts";
import type { Store } from "../../../src/store/port.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { makeFolder } from "../stores.ts";
import { type Process, startRacer } from "./start.ts";

interface Answer {
  readonly won: boolean;
  readonly code?: string;
}

/** A store, a runtime that makes threads in it and owns none, and two processes. */
export async function raceTrack(): Promise<
  AsyncDisposable & { store: Store; runtime: Runtime; racers: readonly Process[] }
> {
  const folder = makeFolder();
  const path = join(folder.path, "store.db");
  const store = await openSqliteStore({ path, synchronous: "normal", busyTimeoutMs: 30_000 });
  const runtime = await createRuntime({ store, providers: { scripted: scripted({}) } });
  const racers = [startRacer(path), startRacer(path)];
  for (const racer of racers) await racer.says("ready");
  return {
    store,
    runtime,
    racers,
    async [Symbol.asyncDispose]() {
      for (const racer of racers) await racer.kill();
      await runtime.close();
      await store.close();
      folder[Symbol.dispose]();
    },
  };
}

export async function answer(racer: Process, round: number, order: JsonObject): Promise<Answer> {
  racer.order({ round, ...order });
  const found = (): JsonObject | undefined => racer.lines.find((line) => line["round"] === round);
  await racer.until(() => found() !== undefined);
  const line = found() as unknown as Answer;
  // Another order of the same round is told apart from this one.
  racer.lines.splice(racer.lines.indexOf(line as unknown as JsonObject), 1);
  return line;
}

/** Both at once; who is told first takes turns. */
export async function both(
  racers: readonly Process[],
  round: number,
  one: JsonObject,
  other: JsonObject,
): Promise<readonly [Answer, Answer]> {
  const [first, second] = round % 2 === 0 ? racers : racers.toReversed();
  const asked = [() => answer(first!, round, one), () => answer(second!, round, other)] as const;
  if (round % 4 < 2) return Promise.all([asked[0](), asked[1]()]);
  const later = asked[1]();
  return Promise.all([asked[0](), later]);
}

export const command = (tree: ThreadId, verb: string, args: JsonObject): JsonObject => ({
  act: "command",
  tree,
  verb,
  arguments: args,
});
