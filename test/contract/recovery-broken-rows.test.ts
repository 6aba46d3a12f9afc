/** Rows of runs, waits, questions and commands that cannot be read (REC-1): each costs a run at most, and never the tree. */
import { describe, expect, test } from "vitest";
import { InvariantError, TransientError } from "../../src/protocol/errors.ts";
import { ask, gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { TreeReader } from "../../src/runtime/tree-reader.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { sampleCommand, sampleMail } from "../../src/testing/store-records.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { warningsTo } from "../support/logger.ts";
import { look } from "../support/look.ts";

/** A root that waits for `a`, which is under way, and for `b`, which asks. */
function tree(options: HarnessOptions): HarnessOptions {
  return {
    scripts: {
      "/root": [
        together(spawn("a", "first"), spawn("b", "second")),
        wait({ targets: ["a", "b"] }),
        repeat(say((context) => `heard: ${context.lastToolText ?? ""}`)),
      ],
      "/root/a": [together(gate("a"), say("a is done")), repeat(say("a again"))],
      "/root/b": [ask("how far?"), repeat(say((context) => `told ${context.lastToolText ?? ""}`))],
    },
    ...options,
  };
}

async function underWay(h: Harness) {
  const work = await h.tree.root.send("go");
  await h.provider.gates.arrived("a");
  await waitUntil("all wait", async () => {
    const [root, b] = [await h.tree.root.status(), await (await h.tree.agent("b")).status()];
    return root.kind === "waiting" && b.kind === "awaiting_approval";
  });
  return work;
}

/** What a broken row must not disturb: every promise, and permits that come back. */
async function sound(h: Harness): Promise<void> {
  await h.tree.idle();
  expect(await h.store.read((view) => invariants(h.tree.id).check(view))).toEqual([]);
  expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
  expect(h.tree.control.tree.permits.inUse).toBe(0);
}

async function setAside(h: Harness) {
  return (await look(h).events("record.set_aside")).map(({ path, data }) => ({ path, ...data }));
}

describe.each(STORES)("a row that cannot be read on %s", (store) => {
  test("REC-1 MBX-10 of an open run: it is lost with its works, and the rest of the tree goes on", async () => {
    await using h = await harness(
      tree({
        store,
        scripts: {
          "/root": [spawn("a", "first"), wait({ targets: ["a"] }), repeat(say("heard"))],
          "/root/a": [together(gate("a"), say("from a"))],
        },
      }),
    );
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await h.clock.settle();
    const [run] = await look(h).runs("/root/a");
    h.damageRow("runs", run!.id);
    const warnings: object[] = [];
    await h.crash({ logger: warningsTo((fields) => void warnings.push(fields)) });
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "heard" });
    expect((await look(h).work("/root/a")).outcome).toMatchObject({
      ending: "runtime_lost",
      error: { code: "STORE_CORRUPT" },
    });
    expect(await look(h).runs("/root/a")).toMatchObject([
      { id: run!.id, ordinal: 1, status: "interrupted", reason: "runtime_lost" },
    ]);
    expect(await setAside(h)).toEqual([{ path: "/root/a", table: "runs", id: run!.id, open: true }]);
    expect(warnings).toContainEqual(expect.objectContaining({ table: "runs", id: run!.id }));
    if (store === "sqlite") expect(h.setAside(run!.id)).toBe(JSON.stringify(run).slice(0, 40));
    h.provider.gates.open("a");
    const again = await (await h.tree.agent("a")).send("again");
    expect(await again.outcome()).toMatchObject({ ending: "completed", text: "from a" });
    await sound(h);
    // A second opening finds nothing left to do.
    await h.crash();
    expect(await setAside(h)).toHaveLength(1);
  });

  test("REC-1 of an open run of an agent that retries: its works are served by another run", async () => {
    await using h = await harness({
      store,
      tree: { onLostRun: "retry" },
      scripts: { "/root": [together(say("half"), gate("cut"), say("whole"))] },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("cut");
    const [run] = await look(h).runs("/root");
    h.damageRow("runs", run!.id);
    await h.crash();
    h.provider.gates.open("cut");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    expect((await look(h).runs("/root")).map(({ status }) => status)).toEqual(["interrupted", "completed"]);
    await sound(h);
  });

  test("REC-1 of a run that was never accepted: its mail starts another", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(gate("early", { beforeAcceptance: true }), say("done")), repeat(say("done"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("early");
    const [run] = await look(h).runs("/root");
    h.damageRow("runs", run!.id);
    await h.crash();
    h.provider.gates.openAll();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    expect((await look(h).runs("/root")).map(({ reason }) => reason)).toEqual(["not_accepted", "completed"]);
    await sound(h);
  });

  test("REC-1 of a run with its wait and its question: whatever is broken at once, the tree opens", async () => {
    await using h = await harness(tree({ store }));
    const work = await underWay(h);
    const b = await h.tree.agent("b");
    const rows = await h.store.read((view) => ({
      runs: view.openRuns(h.tree.id),
      waits: view.openWaitsOf(h.tree.id),
      requests: view.openRequestsOf(b.threadId),
    }));
    for (const { id } of rows.runs) h.damageRow("runs", id);
    for (const { id } of rows.waits) h.damageRow("waits", id);
    for (const { id } of rows.requests) h.damageRow("requests", id);
    await h.crash();
    expect(await setAside(h)).toHaveLength(5);
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "runtime_lost" });
    const endings = (await look(h).works()).map(({ outcome }) => outcome?.ending);
    expect(endings).toEqual(["runtime_lost", "runtime_lost", "runtime_lost"]);
    await sound(h);
    expect(await h.tree.requests()).toEqual([]);
  });

  test("REC-1 of several at once: whoever only looks is told of all of them, and sees the rest", async () => {
    await using h = await harness(tree({ store }));
    await underWay(h);
    const { id } = h.tree;
    const b = await h.tree.agent("b");
    const a = await h.tree.agent("a");
    await h.runtime.close();
    const reader = new TreeReader(h.store, id);
    const asked = await reader.requests();
    expect(asked).toMatchObject([{ threadId: b.threadId, path: "/root/b", text: "how far?" }]);
    for (const at of [1, 2, 3]) await h.store.command(sampleCommand(id, at));
    const rows = await h.store.read((view) => view.openRows(id));
    const broken = rows
      .filter(({ table, threadId }) => table !== "runs" || threadId !== b.threadId)
      .slice(0, -1);
    const questions = rows.filter(({ table }) => table === "requests");
    for (const row of broken) if (!questions.includes(row)) h.damageRow(row.table, row.id);
    // A run that cannot be read keeps no question of another one from being answered.
    expect(await reader.asked()).toEqual({ requests: asked, unreadable: [] });
    for (const row of questions) h.damageRow(row.table, row.id);
    expect((await reader.asked()).unreadable).toMatchObject([{ table: "requests", path: "/root/b" }]);
    const told = await reader.unreadable();
    const known = (row: { readonly table: string; readonly id: string }) => `${row.table} ${row.id}`;
    expect(told.map(known).toSorted()).toEqual(broken.map(known).toSorted());
    expect(told.map(({ table }) => table).toSorted()).toEqual([
      "commands",
      "commands",
      "requests",
      "runs",
      "runs",
      "waits",
    ]);
    expect(told).toContainEqual(expect.objectContaining({ table: "runs", path: a.path }));
  });

  test("REC-1 REC-2 in a tree that was given back: who reads it is told of the row, and mends nothing", async () => {
    await using h = await harness(tree({ store }));
    await underWay(h);
    const { tree: left } = h.tree.control;
    await h.runtime.close();
    const [run] = await h.store.read((view) => view.openRuns(left.treeId));
    h.damageRow("runs", run!.id);
    await expect(left.read((view) => view.openRuns(left.treeId))).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      details: { table: "runs", id: run!.id },
    });
  });

  test("REC-1 of a wait: the run goes on, and is told why", async () => {
    await using h = await harness(tree({ store }));
    const work = await underWay(h);
    const [open] = await h.store.read((view) => view.openWaitsOf(h.tree.id));
    h.damageRow("waits", open!.id);
    await h.crash();
    await waitUntil("the root goes on", async () => (await look(h).runs("/root"))[0]?.status === "completed");
    const [waited] = await look(h).outputs("/root", "wait_agent");
    expect(waited).toMatchObject({ output: { message: expect.stringContaining("cannot be read") } });
    const b = await h.tree.agent("b");
    const [question] = await h.store.read((view) => view.openRequestsOf(b.threadId));
    await h.tree.answer(question!.id, "ten");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    await sound(h);
  });

  test("REC-1 of a question: it is cancelled, and its run goes on and is told why", async () => {
    await using h = await harness(tree({ store }));
    await underWay(h);
    const b = await h.tree.agent("b");
    const [question] = await h.store.read((view) => view.openRequestsOf(b.threadId));
    h.damageRow("requests", question!.id);
    await h.crash();
    await waitUntil("b has answered", async () => (await look(h).work("/root/b")).state === "ended");
    expect((await look(h).work("/root/b")).outcome).toMatchObject({
      ending: "completed",
      text: expect.stringContaining("the stored question cannot be read"),
    });
    expect(await h.tree.requests()).toEqual([]);
    expect((await look(h).events("request.closed")).map(({ data }) => data)).toEqual([
      { requestId: question!.id, status: "cancelled" },
    ]);
    await expect(h.tree.answer(question!.id, "ten")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    await sound(h);
  });

  test("REC-1 while the tree is open: who needs the row first mends it, and a run under way is stopped", async () => {
    await using h = await harness(tree({ store }));
    const work = await underWay(h);
    const [[a], [b]] = [await look(h).runs("/root/a"), await look(h).runs("/root/b")];
    h.damageRow("runs", a!.id);
    h.damageRow("runs", b!.id);
    h.provider.gates.open("a");
    await (await h.tree.agent("b")).status();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    expect((await look(h).runs("/root")).map(({ status }) => status)).toEqual(["completed"]);
    for (const path of ["/root/a", "/root/b"])
      expect(await look(h).work(path)).toMatchObject({ outcome: { ending: "runtime_lost" } });
    await sound(h);
  });

  test("REC-1 REC-2 of a command: it is refused, and those behind it and mail of others are noticed", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("heard"))] } });
    const id = h.tree.id;
    await h.tree.close();
    const send = (message: string) =>
      commandTree(h.store, id, "send", { target: "/root", message }, { commandId: message, claim: false });
    for (const message of ["m1", "m2"]) expect(await send(message)).toMatchObject({ appliedBy: "nobody" });
    const [broken] = await h.store.read((view) => view.pendingCommands(id));
    h.damageRow("commands", broken!.id);
    h.tree = await h.runtime.openTree({ id });
    await h.clock.advance(1000);
    await h.store.send([sampleMail(id, id, "other", { kind: "user", trigger: true })]);
    await h.clock.advance(1000);
    await h.tree.idle();
    expect((await look(h).mail("/root")).map(({ content, state }) => [content.text, state])).toEqual([
      ["m2", "settled"],
      ["text other", "settled"],
    ]);
    expect(await setAside(h)).toEqual([{ path: "/root", table: "commands", id: broken!.id, open: true }]);
    await expect(send("m1")).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      message: expect.stringContaining("send it again"),
    });
    await sound(h);
  });

  test("REC-2 a command that fails for good is answered with its error, and those behind it go on", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("heard"))] } });
    // The first is applied and refused; the second finds the store busy, and is applied with the next look.
    const commits = [new InvariantError("it cannot be"), null, new TransientError("STORE_BUSY", "not now")];
    h.onWrite = (_, kind) => {
      const error = (kind === "commit" ? commits.shift() : null) ?? null;
      return error === null ? null : { kind: "error", error };
    };
    const commands = [1, 2].map((at) =>
      sampleCommand(h.tree.id, at, { verb: "send", arguments: { target: "/root", message: `m${at}` } }),
    );
    for (const one of commands) await h.store.command(one);
    await h.clock.advance(1000);
    const rows = await h.store.read((view) => commands.map(({ id }) => view.command(id)));
    expect(rows).toMatchObject([
      { state: "refused", answer: { code: "INVARIANT_BROKEN", message: "it cannot be" } },
      { state: "done" },
    ]);
  });

  test("REC-1 BUD-4 of a settled run: the works that it served still end, and it counts what it has used", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("a", "first"), say("started"), repeat(say("woken"))],
        "/root/a": [together(gate("a"), say("seven"))],
      },
    });
    const work = await h.tree.root.send("go");
    await waitUntil("it awaits", async () => (await work.record()).state === "awaiting_children");
    const [run] = await look(h).runs("/root");
    h.damageRow("runs", run!.id);
    h.provider.gates.open("a");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "woken" });
    expect((await look(h).runs("/root"))[0]).toMatchObject({ id: run!.id, ordinal: 1, usage: run!.usage });
    await sound(h);
  });
});

test("REC-1 a run under way whose transcript cannot be read is lost with its works, and the rest goes on", async () => {
  await using h = await harness({
    store: "sqlite",
    scripts: {
      "/root": [spawn("a", "first"), wait({ targets: ["a"] }), repeat(say("heard"))],
      "/root/a": [together(gate("a"), say("from a"))],
    },
  });
  const work = await h.tree.root.send("go");
  await h.provider.gates.arrived("a");
  await waitUntil("the root waits", async () => (await h.tree.root.status()).kind === "waiting");
  h.damageItems((await h.tree.agent("a")).threadId);
  await h.crash();
  expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "heard" });
  expect((await look(h).work("/root/a")).outcome).toMatchObject({ ending: "runtime_lost" });
  await h.tree.idle();
  expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
  expect(h.tree.control.tree.permits.inUse).toBe(0);
});
