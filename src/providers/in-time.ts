/**
 * A provider that owns its loop, held to a time for what it is asked beside a turn: to open, resume, begin, roll back, read and
 * close its conversations, and to say what it can (lineage C18). One that stalls keeps no thread, no command and no place for ever.
 *
 * - S1 Turns have the clock and the signal of their run, and a fork has no time of ours (C18.17): these are passed on as they are.
 * - S2 What it has done by the time that nobody waits any more is not known. A session that comes late is closed; any other late
 *   answer is let go, and whoever has asked goes by what it stored before.
 */
import { TransientError } from "../protocol/errors.ts";
import type { Clock } from "../platform/clock.ts";
import type { NativeAdapter, NativeSession, ProviderAdapter } from "./port.ts";

/** What is waited by, and for how long. */
export interface AnswerTime {
  readonly clock: Clock;
  readonly milliseconds: number;
}

/** The providers of a runtime by name; one whose loop is ours has its times elsewhere. */
export function answeringInTime(
  providers: Readonly<Record<string, ProviderAdapter>>,
  time: AnswerTime,
): Readonly<Record<string, ProviderAdapter>> {
  return Object.fromEntries(
    Object.entries(providers).map(([name, adapter]) => [
      name,
      adapter.loop === "ours" ? adapter : timed(name, adapter, time),
    ]),
  );
}

function timed(name: string, adapter: NativeAdapter, { clock, milliseconds }: AnswerTime): NativeAdapter {
  const within: Within = async (asked, call) => {
    const late = Promise.withResolvers<never>();
    const timer = clock.setTimer(milliseconds, () => late.reject(stalled(name, asked, milliseconds)), {
      // A program that ends does not stay for one that does not close.
      keepAlive: asked !== "close",
    });
    const answer = Promise.try(call);
    answer.catch(() => undefined);
    try {
      return await Promise.race([answer, late.promise]);
    } finally {
      timer.cancel();
    }
  };
  const { instanceId, aliases } = adapter;
  return {
    loop: "theirs",
    driver: adapter.driver,
    defaultModel: adapter.defaultModel,
    ...(instanceId === undefined ? {} : { instanceId }),
    ...(aliases === undefined ? {} : { aliases }),
    ...(adapter.summarise === undefined
      ? {}
      : { summarise: (prompt, signal) => adapter.summarise!(prompt, signal) }),
    models: () => adapter.models(),
    effectiveEffects: (effects) => adapter.effectiveEffects(effects),
    classifySelectionChange: (current, next) => adapter.classifySelectionChange(current, next),
    capabilities: () => within("capabilities", () => adapter.capabilities()),
    async openSession(input) {
      const opening = Promise.try(() => adapter.openSession(input));
      try {
        return timedSession(await within("openSession", () => opening), within);
      } catch (error) {
        opening.then((session) => session.close()).catch(() => undefined);
        throw error;
      }
    },
  };
}

type Within = <T>(asked: string, call: () => Promise<T>) => Promise<T>;

/** Of a session; what is not offered stays so. */
const AS_THEY_ARE = ["startTurn", "interruptTurn", "respond", "steerTurn", "forkThread"] as const;
const TIMED = ["ensureThread", "resumeThread", "rollbackThread", "readThread", "findForks", "close"] as const;

type Call = (...input: readonly unknown[]) => Promise<unknown>;

function timedSession(session: NativeSession, within: Within): NativeSession {
  const offered = (names: readonly (typeof AS_THEY_ARE | typeof TIMED)[number][]): [string, Call][] =>
    names.flatMap((name): [string, Call][] => {
      const call = session[name]?.bind(session) as Call | undefined;
      return call === undefined ? [] : [[name, call]];
    });
  const timed = offered(TIMED).map(([name, call]): [string, Call] => [
    name,
    (...input) => within(name, () => call(...input)),
  ]);
  return {
    ...(Object.fromEntries([...offered(AS_THEY_ARE), ...timed]) as unknown as NativeSession),
    get negotiated() {
      return session.negotiated;
    },
    events: () => session.events(),
  };
}

function stalled(provider: string, asked: string, limitMs: number): TransientError {
  return new TransientError(
    "PROVIDER_STALLED",
    `${provider} has not answered \`${asked}\` in ${limitMs} ms, and whether it has done it is not known. Try again; if that goes on, ` +
      "restart its program, or move the thread to another provider.",
    { provider, asked, limitMs },
  );
}
