/** Mail that others put into the store, and mail that cannot be read, where no run takes it in (MBX-10, HDR). */
import { describe, expect, test } from "vitest";
import type { MailDraft } from "../../src/protocol/mail.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { sampleId, sampleMail } from "../../src/testing/store-records.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const scripts = { "*": [repeat(say("ok"))] };

async function send(h: Harness, given: Partial<MailDraft>): Promise<void> {
  const draft = sampleMail(h.tree.id, h.tree.root.threadId, 1, { trigger: true, text: "hello", ...given });
  expect(await h.store.send([draft])).toMatchObject([{ kind: "accepted" }]);
  await h.clock.advance(1_000);
}

describe.each(STORES)("mail of strangers on %s", (store) => {
  test.each([
    ["a work that is not there", { workId: sampleId("wrk", "nobody") }],
    ["the result of one", { resultOf: sampleId("wrk", "nobody") }],
    ["bytes that it does not have", { content: { text: "hello", bytes: -5_000, artifact: null } }],
    ["no time", { createdAt: NaN }],
  ] as const)("MBX-10 REC-2 a message that names %s is a plain one", async (_name, given) => {
    await using h = await harness({ store, scripts });
    await send(h, given);
    await look(h).until("it is taken in", async () => (await look(h).runs("/root")).length === 1);
    expect(await h.ask("and on")).toMatchObject({ ending: "completed" });
    const [mail] = await look(h).mail("/root");
    expect(mail).toMatchObject({ state: "settled", workId: null, resultOf: null, content: { bytes: 5 } });
    await h.crash();
    expect(await h.ask("again")).toMatchObject({ ending: "completed" });
  });

  test("HDR-1 MBX-10 a host-driven root gets queue-only mail, also of those who send it another kind", async () => {
    await using h = await harness({ store, scripts, tree: { hostDriven: true } });
    await send(h, {});
    expect(await look(h).mail("/root")).toMatchObject([{ trigger: false, state: "accepted" }]);
    await h.tree.idle();
  });

  test("MBX-10 INT-7 a close leaves no message that cannot be read behind", async () => {
    await using h = await harness({ store, scripts });
    const draft = sampleMail(h.tree.id, h.tree.root.threadId, 1, { trigger: true });
    await h.store.send([draft]);
    h.damageMail(draft.id);
    await h.tree.root.close();
    expect(await look(h).mail("/root")).toMatchObject([{ state: "dead_lettered", reason: "unreadable" }]);
    expect(await h.store.read((view) => [view.triggered(h.tree.id), view.unreadable(h.tree.id)])).toEqual([
      [],
      [],
    ]);
  });

  test("MBX-10 HDR-2 WRK-4 a host is told of what cannot be read by a notice, and by no number", async () => {
    await using h = await harness({ store, scripts, tree: { hostDriven: true } });
    const draft = sampleMail(h.tree.id, h.tree.root.threadId, 1);
    await h.store.send([draft]);
    h.damageMail(draft.id);
    using tools = h.tree.root.tools();
    const asked = await tools.find(({ name }) => name === "list_agents")!.call({});
    expect(JSON.stringify(asked)).not.toContain("unread message");
    expect(await look(h).mail("/root")).toMatchObject([{ state: "dead_lettered", reason: "unreadable" }]);
    expect((await h.tree.root.summary()).unread).toBe(0);
  });

  test("SPN-6 MBX-12 keys that are no text of Unicode are told apart, and each is known again", async () => {
    await using h = await harness({ store, scripts });
    const told = async (key: string) => (await h.tree.root.tell("m", { commandId: key })).id;
    const [first, second] = [await told("\ud800"), await told("\ud801")];
    expect(first).not.toBe(second);
    expect([await told("\ud800"), await told("\ud801")]).toEqual([first, second]);
    const own = { author: { kind: "user", name: "cli" } as const };
    const drafts = ["\ud800", "\ud801"].map((key, at) =>
      sampleMail(h.tree.id, h.tree.root.threadId, at, { ...own, key }),
    );
    expect((await h.store.send(drafts)).map(({ kind }) => kind)).toEqual(["accepted", "accepted"]);
  });
});
