/** A provider that owns its loop, under the seeded scheduler: each call and each event of its sessions waits to be chosen. */
import type { NativeAdapter, NativeSession } from "../providers/port.ts";

type Hold = (label: string) => Promise<void>;

/** Calls that a session offers only where its provider can. */
const OPTIONAL = ["steerTurn", "forkThread", "rollbackThread", "readThread", "findForks"] as const;
const ALWAYS = ["ensureThread", "resumeThread", "startTurn", "interruptTurn", "respond", "close"] as const;

export function holdNative(adapter: NativeAdapter, hold: Hold): NativeAdapter {
  return {
    ...adapter,
    openSession: async (input) => {
      await hold(`${input.path} opens`);
      return heldSession(await adapter.openSession(input), input.path, hold);
    },
  };
}

function heldSession(session: NativeSession, path: string, hold: Hold): NativeSession {
  const offered = OPTIONAL.filter((name) => session[name] !== undefined);
  const calls = [...ALWAYS, ...offered].map((name) => {
    const call = session[name]!.bind(session) as (...input: readonly unknown[]) => Promise<unknown>;
    const held = async (...input: readonly unknown[]): Promise<unknown> => {
      await hold(`${path} ${name}`);
      try {
        return await call(...input);
      } finally {
        await hold(`${path} ${name} answers`);
      }
    };
    return [name, held] as const;
  });
  return {
    ...(Object.fromEntries(calls) as unknown as NativeSession),
    negotiated: session.negotiated,
    async *events() {
      for await (const event of session.events()) {
        await hold(`${path} ${event.type}`);
        yield event;
      }
    },
  };
}
