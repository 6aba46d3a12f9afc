/** INT-3, INT-7, RES-4, C1.18: calls of somebody else's that never come back hold neither permit nor slot, and no close. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const never = (): Promise<never> => new Promise(() => undefined);
const OK = { "*": [repeat(say("ok"))] };

/** Opens a session when it is told to, and closes it when it is told to. */
function slow(openings: boolean, closings: boolean) {
  const inner = scripted(OK);
  const opened: PromiseWithResolvers<void>[] = [];
  let closed = 0;
  const adapter: OwnLoopAdapter = {
    ...inner,
    async openSession(input) {
      const asked = Promise.withResolvers<void>();
      opened.push(asked);
      if (openings) await asked.promise;
      const session = await inner.openSession(input);
      return {
        step: session.step.bind(session),
        close: () => {
          closed += 1;
          return closings ? never() : Promise.resolve();
        },
      };
    },
  };
  return { adapter, opened, closed: () => closed };
}

describe.each(STORES)("calls that never come back, on %s", (store) => {
  async function open(adapter: OwnLoopAdapter, options: Parameters<typeof harness>[0] = {}) {
    const h = await harness({ store, scripts: OK, others: { slow: adapter }, ...options });
    onTestFinished(() => h[Symbol.asyncDispose]());
    return h;
  }

  /** One agent whose provider does not open, and another that waits for its permit. */
  async function stuck(h: Harness, opened: readonly unknown[]) {
    const { agent } = await h.tree.root.spawn("stuck", "go", { provider: "slow" });
    const { work } = await h.tree.root.spawn("next", "go");
    await look(h).until("it is being opened", () => opened.length === 1);
    return { agent, next: work };
  }

  test.each(["interrupt", "close"] as const)(
    "INT-3 INT-7 an agent whose provider does not open gives its permit and its slot back: %s",
    async (how) => {
      const { adapter, opened, closed } = slow(true, false);
      const h = await open(adapter, {
        runtime: { limits: { residents: 1 } },
        tree: { limits: { running: 1 } },
      });
      const { agent, next } = await stuck(h, opened);
      await (how === "close" ? agent.close() : agent.interrupt({ pending: "cancel" }));
      expect(await next.outcome()).toMatchObject({ ending: "completed" });
      expect(h.tree.control.tree.permits.inUse).toBe(0);
      // What comes after all is closed.
      opened[0]!.resolve();
      await look(h).until("it is closed", () => closed() === 1);
      expect([...h.tree.control.tree.sessions.values()].map((session) => session.agent.path)).toEqual([
        "/root/next",
      ]);
      if (how === "close") return;
      const again = await agent.send("again");
      await look(h).until("it is opened again", () => opened.length === 2);
      opened[1]!.resolve();
      expect(await again.outcome()).toMatchObject({ ending: "completed" });
    },
  );

  test("INT-3 RES-8 nobody has to ask: an opening has its time, and is a load that has failed", async () => {
    const { adapter, opened } = slow(true, false);
    const h = await open(adapter, { tree: { limits: { running: 1 } } });
    const { agent, next } = await stuck(h, opened);
    await h.clock.advance(30_000);
    expect(await next.outcome()).toMatchObject({ ending: "completed" });
    await h.clock.advance(120_000);
    expect(opened).toHaveLength(3);
    const [work] = await look(h).works(agent.path);
    expect(work!.outcome).toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
  });

  test("INT-7 a tree is given back in time though a provider does not open", async () => {
    const { adapter, opened } = slow(true, false);
    const h = await open(adapter);
    await stuck(h, opened);
    const closed = h.tree.close();
    await h.clock.advance(30_000);
    await closed;
  });

  test("INT-7 RES-4 a provider that does not close keeps no slot, and a reload waits for it in time", async () => {
    const { adapter } = slow(false, true);
    const h = await open(adapter, { runtime: { limits: { residents: 1 } } });
    const { agent, work } = await h.tree.root.spawn("a", "go", { provider: "slow" });
    await work.outcome();
    const next = await h.tree.root.spawn("b", "go");
    expect(await next.work.outcome()).toMatchObject({ ending: "completed" });
    const again = await agent.send("again");
    await h.clock.settle();
    expect((await again.record()).state).toBe("queued");
    await h.clock.advance(30_000);
    expect(await again.outcome()).toMatchObject({ ending: "completed" });
  });

  test("INT-7 C4.16 a provider that does not close does not hold up the one that comes after it", async () => {
    const { adapter } = slow(false, true);
    const h = await open(adapter, { tree: { provider: "slow" } });
    await h.ask("go");
    const work = await h.tree.root.send("and on", { provider: "scripted" });
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("INT-7 C1.18 a capture that does not end holds up its agent for its time, and no close", async () => {
    const capture = {
      available: async () => ({ status: "ready" as const }),
      capture: never,
      restore: never,
      compare: never,
      difference: never,
    } as unknown as WorkspaceCapture;
    const h = await harness({
      store,
      scripts: OK,
      runtime: { workspaceCapture: capture },
      tree: { workspace: process.cwd() },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    await h.ask("one");
    const work = await h.tree.root.send("two");
    await h.clock.advance(64_000);
    expect((await work.record()).state).toBe("queued");
    await h.clock.advance(1_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect((await look(h).runs("/root"))[0]!.checkpoint).toMatchObject({
      workspace: { status: "missing", reason: "it took too long" },
    });
    const closed = h.runtime.close();
    await h.clock.advance(35_000);
    await closed;
  });
});
