/** Adapters of others that answer what makes no sense: what is no name is not kept as one, and secrets in names stay inside. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { NativeEvent } from "../../src/protocol/native-events.ts";
import type { NativeSession } from "../../src/providers/port.ts";
import { type ScriptedNativeProvider, turnFork } from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

type Store = (typeof STORES)[number];
const SECRET = `sk-ant-api03-${"A".repeat(80)}`;

async function open(store: Store, change: (session: NativeSession) => void): Promise<Harness> {
  const a: ScriptedNativeProvider = turnFork({
    "/root": [repeat(say((context) => `A answers ${context.inputs.at(-1)}`))],
  });
  const openSession = a.openSession.bind(a);
  a.openSession = async (input) => {
    const session = await openSession(input);
    change(session);
    return session;
  };
  const h = await harness({ store, others: { a }, tree: { provider: "a" } });
  onTestFinished(() => h[Symbol.asyncDispose]());
  return h;
}

function rewrite(session: NativeSession, into: (event: NativeEvent) => readonly NativeEvent[]): void {
  const events = session.events.bind(session);
  session.events = async function* () {
    for await (const event of events()) yield* into(event);
  };
}

const records = (h: Harness) => h.store.read((view) => view.providerThreadsOf(h.tree.id));

describe.each(STORES)("names of a provider on %s", (store) => {
  test.for(["", "x".repeat(5000)])(
    "C1.7 C1.6 a conversation without a name of some length ends the run, and none is kept",
    async (nativeId) => {
      const h = await open(store, (session) => {
        const ensure = session.ensureThread.bind(session);
        session.ensureThread = async (selection) => {
          const thread = await ensure(selection);
          return { ...thread, ref: { ...thread.ref, nativeId } };
        };
      });
      expect(await h.ask("one")).toMatchObject({
        ending: "provider_error",
        error: { code: "PROVIDER_PROTOCOL" },
      });
      expect(await records(h)).toEqual([]);
    },
  );

  test("C1.7 a turn without a name is a turn, and no place to fork or go back to", async () => {
    const h = await open(store, (session) =>
      rewrite(session, (event) =>
        "turn" in event && event.turn !== null
          ? [{ ...event, turn: { ...event.turn, nativeId: "" } } as NativeEvent]
          : [event],
      ),
    );
    expect(await h.ask("one")).toMatchObject({ ending: "completed" });
    const run = await h.store.read((view) => view.runAt(h.tree.id, 1)!);
    expect(run.nativeTurns.map((turn) => turn?.nativeId)).not.toContain("");
  });

  test("C8.1 SEC-3 a child with a secret for a name is told without it; one without a name not at all", async () => {
    const h = await open(store, (session) =>
      rewrite(session, (event) => {
        if (event.type !== "item") return [event];
        const child = (nativeId: string): NativeEvent => ({
          type: "child.started",
          key: event.key,
          child: { driver: "turn-fork", nativeId, strength: "strong" },
          prompt: "look",
        });
        return [child(SECRET), child(""), child("n".repeat(5000)), event];
      }),
    );
    await h.ask("one");
    const events = await h.store.read((view) => view.events(h.tree.id, 0, 500));
    expect(events.filter(({ type }) => type === "child.started")).toHaveLength(1);
    expect(JSON.stringify(events)).not.toContain(SECRET);
  });
});
