/** Commits that are stored although their owner is told that they failed (REC-3): memory finds out, and nothing stays behind. */
import { describe, expect, test } from "vitest";
import type { Logger } from "../../../src/platform/logger.ts";
import { gate, repeat, say, spawn, together, wait } from "../../../src/providers/scripted/script.ts";
import type { WriteKind } from "../../../src/testing/faulty-store.ts";
import { invariants } from "../../../src/testing/invariants.ts";
import type { Violation } from "../../../src/testing/invariants-picture.ts";
import { harness, STORES } from "../../support/harness.ts";

const NONE = { fork_turns: "none" };

/** A test for each commit of a life whose answer may be lost: so many there are, at most. */
const COMMITS = { join: 18, children: 34 };

/** Longer than memory takes to be held against the store. */
const ENOUGH_MS = 3_000;

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, at) => at + 1);
}

/** The last test of all loses nothing any more: no commit has gone without one. */
function requireAll(lost: number, commits: number, last: number): void {
  if (lost === last) expect(commits, "raise COMMITS").toBeLessThan(last);
}

describe.each(STORES)("lost answers on %s", (store) => {
  test.for(upTo(COMMITS.join))(
    "REC-3 commit %i: every work ends, who waits for it is told, and nothing is held for ever",
    async (lost) => {
      await using h = await harness({
        store,
        scripts: {
          "/root": [spawn("a", "look", NONE), wait({ targets: ["a"] }), say("done"), repeat(say("more"))],
          "/root/a": [repeat(say("a"))],
        },
      });
      let commits = 0;
      h.onWrite = (_, kind) => (kind === "commit" && ++commits === lost ? { kind: "error_after" } : null);
      const sent = h.tree.root.send("go").catch(() => null);
      await h.clock.advance(ENOUGH_MS);
      // Its own commit may be the one that was lost: the work is there all the same.
      const id = (await sent)?.id ?? (await h.tree.works({ limit: 1 })).rows[0]!.id;
      const outcome = h.tree.work(id).outcome();
      await h.clock.advance(ENOUGH_MS);
      expect((await outcome).ending).toMatch(/^(completed|runtime_lost)$/);
      await h.tree.idle();
      expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
      expect(h.tree.control.tree.permits.inUse).toBe(0);
      requireAll(lost, commits, COMMITS.join);
      h.onWrite = () => null;
      expect(await h.ask("again")).toMatchObject({ ending: "completed" });
    },
  );

  test.for(upTo(COMMITS.children))(
    "EXE-4 commit %i: what is stored never runs more children than may",
    async (lost) => {
      const names = ["a", "b", "c"];
      await using h = await harness({
        store,
        scripts: {
          "/root": [...names.map((name) => spawn(name, "look", NONE)), repeat(say("done"))],
          "*": [repeat(together(gate("looking"), say("looked")))],
        },
        tree: { limits: { running: 2 } },
      });
      const promises = invariants(h.tree.id);
      const broken: Violation[] = [];
      let commits = 0;
      h.onWrite = (_, kind) => {
        if (kind !== "commit") return null;
        void h.store.read((view) => broken.push(...promises.check(view)));
        return ++commits === lost ? { kind: "error_after" } : null;
      };
      await h.tree.root.send("go").catch(() => null);
      await h.clock.settle();
      h.provider.gates.open("looking");
      await h.clock.advance(ENOUGH_MS);
      await h.tree.idle();
      expect(broken).toEqual([]);
      expect(h.tree.control.tree.starting.size).toBe(0);
      requireAll(lost, commits, COMMITS.children);
    },
  );

  test("REC-3 no run begins in a session that has missed the end of the one before", async () => {
    const errors: unknown[] = [];
    const log = (fields: object): unknown => errors.push((fields as { readonly err?: Error }).err?.name);
    const logger: Logger = { debug: log, info: log, warn: log, error: log };
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("a", "look", NONE), wait({ targets: ["a"] }), repeat(say("more"))],
        "/root/a": [together(gate("a"), say("a"))],
      },
      runtime: { logger },
    });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await h.clock.settle();
    expect((await h.tree.root.status()).kind).toBe("waiting");
    h.onWrite = loseOne("commit");
    await expect(h.tree.root.interrupt()).rejects.toMatchObject({ code: "STORE_BUSY" });
    const work = await h.tree.root.send("go on");
    await h.clock.advance(60_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(errors).not.toContain("InvariantError");
    const request = JSON.stringify(h.provider.requests("/root").at(-1)!.messages);
    expect(request).toContain("interrupted on purpose");
    h.provider.gates.open("a");
  });

  test("REC-3 who waits for a work's end, and who follows the events, learns of what was lost", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(gate("root"), say("done"))] },
    });
    const work = await h.tree.root.send("go");
    const outcome = work.outcome();
    const events = h.tree.events({ after: 0 });
    const seen: number[] = [];
    const followed = (async () => {
      for await (const event of events) {
        seen.push(event.seq);
        if (event.type === "work.ended") return;
      }
    })();
    await h.provider.gates.arrived("root");
    await h.clock.settle();
    h.onWrite = loseOne("commit");
    h.provider.gates.open("root");
    await h.clock.advance(5_000);
    expect(await outcome).toMatchObject({ ending: "completed" });
    await followed;
    expect(seen).toEqual(seen.map((_, at) => at + 1));
  });

  test("REC-3 what was stored into a transcript is in the next request", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(say("half of it"), gate("root")), repeat(say("more"))] },
    });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("root");
    h.onWrite = loseOne("commit");
    await expect(h.tree.root.interrupt()).rejects.toMatchObject({ code: "STORE_BUSY" });
    const work = await h.tree.root.send("go on");
    h.provider.gates.open("root");
    await h.clock.advance(60_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const request = JSON.stringify(h.provider.requests("/root").at(-1)!.messages);
    expect(request).toContain("half of it");
    expect(request).toContain("interrupted on purpose");
    expect(h.tree.control.tree.sessions.get(h.tree.id)!.items).toEqual(await h.tree.root.transcript());
  });
});

/** Loses the answer of the next write of a kind. */
function loseOne(kind: WriteKind) {
  let done = false;
  return (_: number, asked: WriteKind) => {
    if (done || asked !== kind) return null;
    done = true;
    return { kind: "error_after" } as const;
  };
}
