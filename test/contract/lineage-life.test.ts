/** The life of a thread: made, continued, closed, archived, and found again after its process has died (lineage C1, C3, C14). */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const PAGE = { limit: 100 };
const ID = "thread_0123456789abcdefghijk";
const refused = (code: string) => expect.objectContaining({ code }) as Error;

describe.each(STORES)("the life of a thread on %s", (store) => {
  const open = (more: Parameters<typeof harness>[0] = {}): Promise<Harness> =>
    harness({ store, scripts: { "/root": [repeat(say("done"))] }, ...more });

  test("C3.1 S1-17 S1-70 a thread is made without a run, a new one each time, and the tree given back", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    const made = await threads.create({
      title: "Mend the gate",
      workspace: "/",
      continuity: "projected-only",
    });
    expect(made).toMatchObject({
      title: "Mend the gate",
      workspace: "/",
      continuity: "projected-only",
      status: "open",
      revision: 1,
      provider: null,
      activeProviderThreadId: null,
      executions: 0,
      currentContext: null,
      activity: { kind: "idle" },
      lineage: { parentThreadId: null, relationshipToParent: null, rootThreadId: made.id },
    });
    expect(h.provider.requests("/root")).toEqual([]);
    expect((await h.store.read((view) => view.lease(made.treeId)))?.live).not.toBe(true);
    const again = await threads.create({ title: "Mend the gate", workspace: "/" });
    expect(again.id).not.toBe(made.id);
    await threads.continue(made.id, "go");
    await (await h.runtime.openTree({ id: made.id })).idle();
    expect(await threads.context(made.id)).toMatchObject({ revision: 1, objective: "Mend the gate" });
  });

  test("C3.1 C1.1 an id of one's own is free or refused; a parent is there or refused", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    expect((await threads.create({ id: ID })).id).toBe(ID);
    await expect(threads.create({ id: ID })).rejects.toThrow(refused("THREAD_EXISTS"));
    await expect(threads.create({ id: h.tree.id })).rejects.toThrow(refused("THREAD_EXISTS"));
    await expect(threads.create({ id: "../../etc" })).rejects.toThrow(refused("INVALID_ARGUMENT"));
    await expect(threads.create({ title: " " })).rejects.toThrow(refused("INVALID_ARGUMENT"));
    await expect(threads.create({ parent: "thread_nobodynobodynobody00" })).rejects.toThrow(
      refused("THREAD_NOT_FOUND"),
    );
    const child = await threads.create({ parent: ID });
    expect(child.lineage).toEqual({ parentThreadId: ID, relationshipToParent: null, rootThreadId: ID });
    const racing = await Promise.allSettled(
      [1, 2, 3].map(() => threads.create({ id: ID.replace("0", "z") })),
    );
    expect(racing.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected", "rejected"]);
    for (const one of racing) {
      if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "THREAD_EXISTS" });
    }
  });

  test("S1-1 S1-22 S1-25 C1.3 three continues on three providers: one thread, three executions in order", async () => {
    const others = Object.fromEntries(
      ["b", "c"].map((name) => [name, scripted({ "/root": [repeat(say(name))] })]),
    );
    await using h = await open({ others });
    const { id } = h.tree;
    for (const provider of ["scripted", "b", "c"]) {
      await h.runtime.threads.continue(id, `with ${provider}`, { provider });
      await h.tree.idle();
      // Each in a process of its own.
      await h.crash();
    }
    const { rows } = await h.runtime.threads.executions(id, PAGE);
    expect(
      rows.map(({ sequence, contextRevision, settled }) => [sequence, contextRevision, settled]),
    ).toEqual(
      [1, 2, 3].map((n) => [
        n,
        n - 1,
        { outcome: "completed", finishedAt: expect.any(Number) as number, nextContextRevision: n },
      ]),
    );
    expect(new Set(rows.map(({ executionId }) => executionId)).size).toBe(3);
    const runs = await new Look(h).runs("/root");
    expect(runs.map(({ provider, threadId }) => [provider, threadId])).toEqual(
      ["scripted", "b", "c"].map((name) => [name, id]),
    );
    expect(new Set(runs.map(({ policyHash }) => policyHash)).size).toBe(3);
  });

  test("S1-18 S1-29 C2.2 C2.11 a start is reserved, run, settled and projected, in that order", async () => {
    await using h = await open();
    const look = new Look(h);
    await h.ask("go");
    const told = (await look.events()).map(({ type }) => type).filter((type) => type.startsWith("run."));
    expect(told.filter((type) => type !== "run.step")).toEqual([
      "run.reserved",
      "run.accepted",
      "run.settled",
    ]);
    expect((await h.runtime.threads.get(h.tree.id)).currentContext?.revision).toBe(1);
    const [run] = await look.runs("/root");
    expect(run).toMatchObject({ nextContextRevision: 1, checkpoint: { pins: [] } });
  });

  test("S1-20 S1-21 C2.1 C3.7 open, closed, archived, and never back", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    const { id } = h.tree;
    await h.ask("go");
    await expect(threads.archive(id)).rejects.toThrow(refused("THREAD_INVARIANT_VIOLATION"));
    expect((await threads.close(id)).status).toBe("closed");
    expect((await threads.close(id)).status).toBe("closed");
    await expect(threads.continue(id, "more")).rejects.toThrow(refused("THREAD_CLOSED"));
    await expect(threads.select(id, selection)).rejects.toThrow(refused("THREAD_CLOSED"));
    expect((await threads.archive(id)).status).toBe("archived");
    const archived = await threads.archive(id);
    expect(archived.status).toBe("archived");
    await expect(threads.continue(id, "more")).rejects.toThrow(refused("THREAD_ARCHIVED"));
    await expect(threads.pin(id, "decisions", "x")).rejects.toThrow(refused("THREAD_ARCHIVED"));
    expect((await threads.close(id)).status).toBe("archived");
    // The title alone can change.
    expect(await threads.rename(id, "Done")).toMatchObject({
      title: "Done",
      revision: archived.revision + 1,
    });
    expect((await threads.executions(id, PAGE)).rows).toHaveLength(1);
  });

  test("S1-23 C3.2 C3.7 a busy thread refuses a continue and a close, and names its execution", async () => {
    await using h = await open({ scripts: { "/root": [together(gate("hold"), say("done")), say("more")] } });
    const { threads } = h.runtime;
    await threads.continue(h.tree.id, "go");
    await h.provider.gates.arrived("hold");
    const { activity, revision } = await threads.get(h.tree.id);
    expect(activity.kind).toBe("running");
    const { executionId } = activity as Extract<typeof activity, { kind: "running" }>;
    const busy = { code: "THREAD_BUSY", details: { executionId } };
    await expect(threads.continue(h.tree.id, "more")).rejects.toMatchObject(busy);
    await expect(threads.close(h.tree.id)).rejects.toMatchObject(busy);
    // Who planned on an earlier revision is told that first (C11.9).
    await expect(threads.continue(h.tree.id, "more", { expectedRevision: revision - 1 })).rejects.toThrow(
      refused("THREAD_REVISION_CONFLICT"),
    );
    h.provider.gates.open("hold");
    await h.tree.idle();
    await threads.continue(h.tree.id, "more");
  });

  test("S1-62 S1-56 C3.8 the context is the newest snapshot, and no command guesses at a thread", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    expect(await threads.context(h.tree.id)).toBeNull();
    await threads.pin(h.tree.id, "decisions", "tabs");
    await h.ask("go");
    const context = await threads.context(h.tree.id);
    const run = (await new Look(h).runs("/root"))[0]!.id;
    expect(context?.decisions).toMatchObject([{ text: "tabs", sourceExecutionId: run }]);
    expect(context?.outcomes).toMatchObject([{ sourceExecutionId: run }]);
    for (const given of ["", "thread_", "latest", h.tree.id.slice(0, -1)]) {
      await expect(threads.get(given)).rejects.toThrow(refused("THREAD_NOT_FOUND"));
    }
  });
});

const selection = { provider: "scripted", model: null, effort: null, cleanContext: false };
