/** SEC-3, C1.10, C11.11, C17.5: what words of one thread others may read, and records that are not what was stored. */
import { describe, expect, test } from "vitest";
import { call, fail, gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { scripted, type ScriptedProvider } from "../../src/providers/scripted/provider.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { harness, type Harness, STORES, type StoreKind } from "../support/harness.ts";

const SECRET = "hunter2-very-secret-value";

/** Says what it took; what says REFUSE it refuses before it accepts. */
const moody = (name: string) =>
  repeat(({ inputs }) =>
    inputs.at(-1)!.includes("REFUSE") ? fail({ code: "PROVIDER_REFUSED" }) : say(`${name} took it`),
  );

async function readyHandoff(h: Harness) {
  await h.ask("one");
  const refused = await h.tree.root.send("two REFUSE", { provider: "b" });
  await refused.outcome();
  const { rows } = await h.runtime.threads.handoffs(h.tree.id, { limit: 100 });
  return rows.find(({ status, deliveredAt }) => status === "ready" && deliveredAt === null)!;
}

const open = (store: StoreKind, b: ScriptedProvider = scripted({ "/root": [moody("B")] })) =>
  harness({
    store,
    scripts: { "/root": [moody("A")] },
    others: { b },
    runtime: { secrets: [SECRET], threadTools: { allow: "all", approval: "none" } },
  });

describe.each(STORES)("secrets between threads, on %s", (store) => {
  test("C6.12 SEC-3 a command on a tree that nobody owns knows the secrets that it is given", async () => {
    await using h = await open(store);
    const ready = await readyHandoff(h);
    const { id } = h.tree;
    await h.runtime.close();
    const options = { clock: h.clock, secrets: [SECRET] };
    await commandTree(h.store, id, "edit_handoff", { handoff: ready.id, text: `use ${SECRET}` }, options);
    await commandTree(
      h.store,
      id,
      "pin",
      { thread: id, section: "decisions", text: `pin ${SECRET}` },
      options,
    );
    await commandTree(h.store, id, "rename", { thread: id, title: `title ${SECRET}` }, options);
    const seen = await h.store.read((view) => ({
      texts: view.handoffsOf(id, { limit: 10 }).rows.map(({ summaryText }) => summaryText),
      events: view.events(id, 0, 500).filter(({ data }) => JSON.stringify(data).includes(SECRET)),
    }));
    expect(seen.texts.some((text) => text.startsWith("use "))).toBe(true);
    expect(seen.texts.join(" ")).not.toContain(SECRET);
    expect(seen.events).toEqual([]);
  });

  test("SEC-3 a title is shown to an agent of another provider without its secret, by each tool that shows one", async () => {
    let id = "";
    const b = scripted({
      "/root": [
        together(
          call("read_thread", () => ({ thread_id: id })),
          call("wait_threads", () => ({ thread_ids: [id], timeout_ms: 0 })),
          call("fork_thread", () => ({ thread_id: id })),
        ),
        repeat(say("done")),
      ],
    });
    await using h = await open(store, b);
    id = h.tree.id;
    await h.ask("one");
    await h.runtime.threads.rename(id, `deploy with ${SECRET}`);
    const other = await h.runtime.openTree({ provider: "b" });
    expect(await (await other.root.send("go")).outcome()).toMatchObject({ ending: "completed" });
    const outputs = b
      .requests("/root")
      .at(-1)!
      .messages.filter(({ role }) => role === "tool");
    expect(outputs).toHaveLength(3);
    expect(JSON.stringify(outputs)).toContain("deploy with");
    expect(JSON.stringify(outputs)).not.toContain(SECRET);
  });
});

describe("records that are not what was stored", () => {
  test("C1.10 C11.11 a handoff whose text was changed is sent to nobody, and the message is kept", async () => {
    const b = scripted({ "/root": [moody("B")] });
    await using h = await open("sqlite", b);
    const ready = await readyHandoff(h);
    const mine = await h.runtime.threads.editHandoff(ready.id, "my own words");
    h.edit("UPDATE handoffs SET body = replace(body, 'my own words', 'other words') WHERE id = ?", mine.id);
    await h.crash();
    const requests = b.requests("/root").length;
    const work = await h.tree.root.send("three", { provider: "b" });
    expect(await work.outcome()).toMatchObject({
      ending: "provider_error",
      error: { code: "THREAD_CONTEXT_TAMPERED", message: expect.stringContaining(mine.id) },
    });
    expect(b.requests("/root")).toHaveLength(requests);
    expect((await h.runtime.threads.draft(h.tree.id))?.text).toContain("three");
  });

  test.each([
    ["contextDigest", "'deadbeef'"],
    ["contextRevision", "7"],
    ["inherited", "'deadbeef'"],
  ])("C17.5 a run whose binding names another %s is not projected into the thread", async (field, value) => {
    await using h = await harness({
      store: "sqlite",
      scripts: { "/root": [say("one"), together(gate("g"), say("two")), repeat(say("more"))] },
    });
    await h.ask("one");
    await h.tree.root.send("two");
    await h.provider.gates.arrived("g");
    await h.clock.settle();
    h.cut();
    const run = (await h.store.read((view) => view.agent(h.tree.id)!.currentRun))!;
    h.edit(`UPDATE runs SET body = json_set(body, '$.binding.${field}', ${value}) WHERE id = ?`, run);
    await h.crash();
    await h.clock.settle();
    const after = await h.store.read((view) => view.run(run)!);
    expect(after.status).not.toBe("running");
    expect(after.nextContextRevision).toBeNull();
  });
});
