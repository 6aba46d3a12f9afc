/** MBX-8 with MBX-3: a full mailbox never makes an idle agent unreachable. */
import { describe, expect, test } from "vitest";
import { followUp, gate, say, send, spawn, together } from "../../src/providers/scripted/script.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import type { MailDraft } from "../../src/protocol/mail.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look, textAt } from "../support/look.ts";

const FULL = { code: "MAILBOX_FULL" };

describe.each(STORES)("a full mailbox of an idle agent on %s", (store) => {
  test("MBX-8 MBX-3 after 1,000 queue-only messages a request starts the run that reads them all", async () => {
    await using h = await harness({ store, scripts: { "*": [say("ready"), gate("in"), say("read")] } });
    const { agent, work } = await h.tree.root.spawn("w", "stand by");
    await work.outcome();
    await Promise.all(Array.from({ length: 1000 }, (_, index) => agent.tell(`note ${index}`)));
    await expect(agent.tell("one more")).rejects.toMatchObject({
      ...FULL,
      message: expect.stringContaining("the next request is taken all the same"),
      details: { use: { unread: 1000 }, retry: "when_read" },
    });
    const asked = await agent.send("read");
    expect((await agent.summary()).unread).toBe(1001);
    // One at a time: the box is bounded by its limit and one.
    await expect(agent.send("again")).rejects.toMatchObject(FULL);
    await expect(agent.tell("one more")).rejects.toMatchObject(FULL);
    await h.provider.gates.arrived("in");
    h.provider.gates.open("in");
    await expect(asked.outcome()).resolves.toMatchObject({ ending: "completed" });
    expect(await agent.summary()).toMatchObject({ unread: 0, status: { kind: "idle" } });
    const read = look(h).inputs("/root/w", -1).join("\n");
    for (const text of ["note 0", "note 999", "read"]) expect(read).toContain(text);
    await agent.tell("there is room again");
  });

  test("MBX-8 follow-ups of agents and input to the root go in the same way; queue-only mail and mail to the busy do not", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxMessages: 2 } },
      scripts: {
        "/root": [
          together(send("w", "no"), followUp("w", "wake up"), followUp("w", "twice"), send("w", "no")),
          gate("busy"),
          ...Array.from({ length: 3 }, () => say("done")),
        ],
        "/root/w": [say("ready"), gate("w"), say("read"), say("read")],
      },
    });
    const { agent, work } = await h.tree.root.spawn("w", "stand by");
    await work.outcome();
    for (const to of [agent, h.tree.root]) for (const text of ["a", "b"]) await to.tell(text);
    await expect(h.tree.root.tell("c")).rejects.toMatchObject(FULL);
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    await h.provider.gates.arrived("w");
    const sent = await look(h).outputs("/root", "send_message");
    const followed = await look(h).outputs("/root", "followup_task");
    expect([...sent, ...followed].map(({ isError }) => isError)).toEqual([true, true, false, true]);
    expect(textAt(followed[1]!, "code")).toBe("MAILBOX_FULL");
    // Both run by now, and have read: a box that fills up again is refused to everybody until it is read.
    for (const to of [agent, h.tree.root]) {
      for (const text of ["d", "e"]) await to.tell(text).catch(() => undefined);
      await expect(to.tell("f")).rejects.toMatchObject(FULL);
      await expect(to.send("f", { onBusy: "queue" })).rejects.toMatchObject(FULL);
    }
    h.provider.gates.open("w");
    h.provider.gates.open("busy");
    await expect(asked.outcome()).resolves.toMatchObject({ ending: "completed" });
  });

  test("MBX-8 over the bytes, too, a request goes in that an empty mailbox would hold", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxBytes: 100, resultReservationBytes: 10 } },
      scripts: { "*": [say("ready"), say("read")] },
    });
    const { agent, work } = await h.tree.root.spawn("w", "stand by");
    await work.outcome();
    await agent.tell("x".repeat(100));
    await expect(agent.tell("y")).rejects.toMatchObject(FULL);
    await expect(agent.send("y".repeat(101))).rejects.toMatchObject(FULL);
    await expect((await agent.send("y".repeat(100))).outcome()).resolves.toMatchObject({ text: "read" });
    expect((await agent.summary()).unread).toBe(0);
  });

  test("MBX-8 REC-2 what another process appends follows the same rule, and is read", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxMessages: 2 } },
      scripts: { "*": [say("ready"), gate("in"), say("read"), say("read")] },
    });
    const { agent, work } = await h.tree.root.spawn("w", "stand by");
    await work.outcome();
    for (const text of ["a", "b"]) await agent.tell(text);
    const draft = (name: string, trigger: boolean) => draftTo(h, agent.threadId, name, trigger);
    const drafts = [draft("1", false), draft("2", true), draft("3", true), draft("2", true)];
    const kinds = async () => (await h.store.send(drafts)).map(({ kind }) => kind);
    expect(await kinds()).toEqual(["full", "accepted", "full", "duplicate"]);
    await h.clock.advance(200);
    await h.provider.gates.arrived("in");
    // Running, it has read: there is room for two, of whatever kind.
    expect(await kinds()).toEqual(["accepted", "duplicate", "accepted", "duplicate"]);
    h.provider.gates.open("in");
    await look(h).until("all is read", async () => {
      await h.clock.advance(100);
      return (await agent.summary()).unread === 0;
    });
  });

  test("MBX-8 SPN-6 a request that is sent again under its key goes in once, before and after it is read", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxMessages: 2 } },
      scripts: { "*": [say("ready"), gate("in"), say("read")] },
    });
    const { agent, work } = await h.tree.root.spawn("w", "stand by");
    await work.outcome();
    for (const text of ["a", "b"]) await agent.tell(text);
    const command = () =>
      commandTree(
        h.store,
        h.tree.id,
        "followup",
        { target: "/root/w", message: "read" },
        { clock: h.clock, provenDead: () => false, commandId: "once" },
      );
    const both = Promise.all([command(), command()]);
    await h.clock.advance(1000);
    const [first, second] = await both;
    expect(second).toEqual(first);
    await h.provider.gates.arrived("in");
    for (const text of ["c", "d"]) await agent.tell(text);
    expect(await command()).toEqual(first);
    const again = await agent.send("read", { commandId: "k" }).catch((error: unknown) => error);
    expect(again).toMatchObject(FULL);
    h.provider.gates.open("in");
    await h.tree.idle();
    const asks = (await look(h).mail("/root/w")).filter(({ content }) => content.text === "read");
    expect(asks.length).toBe(1);
  });

  test("MBX-8 a request that fails before it is read leaves the way free for the next one", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxMessages: 1 } },
      scripts: { "/root": [spawn("w", "go"), say("done")], "*": [say("ready"), gate("in"), say("read")] },
    });
    await h.ask("go");
    await h.tree.idle();
    const agent = await h.tree.agent("/root/w");
    await agent.tell("a").catch(() => undefined);
    const asked = await agent.send("read");
    await agent.interrupt();
    await expect(asked.outcome()).resolves.toMatchObject({ ending: "interrupted" });
    const next = await agent.send("read");
    h.provider.gates.open("in");
    await expect(next.outcome()).resolves.toMatchObject({ ending: "completed" });
  });
});

function draftTo(h: Harness, recipient: MailDraft["recipient"], name: string, trigger: boolean): MailDraft {
  return {
    id: `msg_${name.padStart(21, "0")}`,
    treeId: h.tree.id,
    recipient,
    recipientPath: "/root/w",
    author: { kind: "user", name: "cli" },
    kind: "user",
    authority: "user",
    trigger,
    steer: false,
    nextRun: false,
    workId: null,
    resultOf: null,
    content: { text: name, bytes: 1, artifact: null },
    start: null,
    redirectedFrom: null,
    key: null,
    createdAt: h.clock.now(),
  };
}
