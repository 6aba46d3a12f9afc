/** MBX-8 to MBX-10: bounds of a mailbox, large payloads and broken ones. */
import { describe, expect, test } from "vitest";
import {
  call,
  followUp,
  gate,
  list,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { sha256 } from "../../src/platform/digest.ts";
import { byteLength } from "../../src/platform/text.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { harness, STORES } from "../support/harness.ts";
import { detailsOf, look, textAt } from "../support/look.ts";
import { occupyPermits, ONE_PERMIT } from "../support/permits.ts";

const KIB = 1024;

describe.each(STORES)("a mailbox's bounds on %s", (store) => {
  test("MBX-8 over a number of messages the sender learns limit, use and when to retry, and nothing is stored", async () => {
    await using h = await harness({
      store,
      runtime: ONE_PERMIT,
      tree: { limits: { mailboxMessages: 3 } },
      scripts: { "/root": [send("/root/w", "from an agent"), say("done")] },
    });
    await occupyPermits(h);
    const { agent } = await h.tree.root.spawn("w", "go");
    await agent.tell("2");
    await agent.tell("3");
    const before = await look(h).snapshot();
    const refusal = {
      code: "MAILBOX_FULL",
      retryable: true,
      details: {
        path: "/root/w",
        limit: { messages: 3, bytes: 4 * KIB * KIB },
        use: { unread: 3, unreadBytes: 4, reserved: 0, reservedBytes: 0 },
        wanted: { messages: 1, bytes: 1 },
        retry: "when_read",
      },
    };
    await expect(agent.tell("4")).rejects.toMatchObject(refusal);
    await expect(agent.send("4")).rejects.toMatchObject({ ...refusal, details: { path: "/root/w" } });
    expect(await look(h).snapshot()).toEqual(before);
    await h.ask("write to it");
    const [told] = await look(h).outputs("/root", "send_message");
    expect(told).toMatchObject({
      isError: true,
      output: { code: "MAILBOX_FULL", retryable: true, details: { retry: "when_read" } },
    });
    // Who writes without the lease meets the same bound.
    const [sent] = await h.store.send([
      {
        id: "msg_0123456789abcdefghijk",
        treeId: h.tree.id,
        recipient: agent.threadId,
        recipientPath: agent.path,
        author: { kind: "user", name: "cli" },
        kind: "user",
        authority: "user",
        trigger: false,
        steer: false,
        nextRun: false,
        workId: null,
        resultOf: null,
        content: { text: "x", bytes: 1, artifact: null },
        start: null,
        redirectedFrom: null,
        key: null,
        createdAt: h.clock.now(),
      },
    ]);
    expect(sent).toMatchObject({ kind: "full", capacity: { messages: 3 } });
  });

  test("MBX-8 a number of bytes is a bound too, to the byte", async () => {
    await using h = await harness({
      store,
      runtime: ONE_PERMIT,
      tree: { limits: { mailboxBytes: 100, resultReservationBytes: 10 } },
      scripts: {},
    });
    await occupyPermits(h);
    const { agent } = await h.tree.root.spawn("w", "x".repeat(60));
    await expect(agent.tell("y".repeat(41))).rejects.toMatchObject({
      code: "MAILBOX_FULL",
      details: { limit: { bytes: 100 }, use: { unreadBytes: 60 }, wanted: { bytes: 41 } },
    });
    await agent.tell("y".repeat(40));
    await expect(agent.tell("z")).rejects.toMatchObject({ code: "MAILBOX_FULL" });
  });

  test("MBX-8 each open work keeps room for its result; a request without that room is refused to the asker", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxMessages: 3, running: 8 } },
      scripts: {
        "/root": [
          together(...["a", "b", "c"].map((name) => spawn(name, "go"))),
          together(spawn("d", "go"), followUp("a", "more"), send("/root", "to myself")),
          wait({ targets: ["a", "b", "c"], timeout_ms: 60_000 }),
          say("done"),
        ],
        "*": [gate("in"), say("ok")],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("in", 3);
    await look(h).until("the root waits", async () => (await h.tree.root.status()).kind === "waiting");
    expect(await look(h).view((view) => view.mailbox(h.tree.id))).toMatchObject({
      reservedMessages: 3,
      reservedBytes: 24 * KIB,
    });
    const refused = [
      (await look(h).outputs("/root", "spawn_agent"))[3]!,
      (await look(h).outputs("/root", "followup_task"))[0]!,
      (await look(h).outputs("/root", "send_message"))[0]!,
    ];
    for (const one of refused) {
      expect(one).toMatchObject({ isError: true, output: { code: "MAILBOX_FULL" } });
      expect(detailsOf(one)).toMatchObject({
        path: "/root",
        use: { unread: 0, reserved: 3, reservedBytes: 24 * KIB },
        retry: "when_a_work_ends",
      });
    }
    expect((await h.tree.counts()).registered).toBe(4);
    // However full it is, the results come in.
    h.provider.gates.open("in");
    await expect(asked.outcome()).resolves.toMatchObject({ ending: "completed" });
    expect((await look(h).mail("/root")).filter(({ kind }) => kind === "final_answer").length).toBe(3);
    expect(await look(h).view((view) => view.mailbox(h.tree.id))).toMatchObject({
      reservedMessages: 0,
      reservedBytes: 0,
    });
  });

  test("MBX-8 a result that finds no other room brings its reservation at most, header included, the rest as an artifact", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxBytes: 20 * KIB, mailboxMessages: 10 } },
      scripts: {
        "/root": [spawn("a", "go"), gate("full"), say("waiting"), say("woken")],
        "/root/a": [gate("in"), say("r".repeat(10 * KIB))],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("full");
    await h.tree.root.tell("x".repeat(12 * KIB));
    await expect(h.tree.root.tell("y")).rejects.toMatchObject({ code: "MAILBOX_FULL" });
    h.provider.gates.open("in");
    await look(h).until("the result is in", async () => (await look(h).mail("/root")).length === 3);
    const mail = (await look(h).mail("/root"))[2]!;
    expect(mail.content.artifact).toMatchObject({ bytes: 10 * KIB });
    const box = await look(h).view((view) => view.mailbox(h.tree.id));
    expect(box.unreadBytes).toBeLessThanOrEqual(20 * KIB);
    h.provider.gates.open("full");
    await asked.outcome();
    const shown = h.provider
      .requests("/root")
      .flatMap(({ messages }) => messages)
      .flatMap((message) =>
        message.role === "user" && message.text.includes("FINAL_ANSWER") ? [message.text] : [],
      )[0]!;
    expect(byteLength(shown)).toBeLessThanOrEqual(8 * KIB);
  });

  test("MBX-8 results that were passed on, and the runtime's notices, go in over the limit", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxMessages: 1 } },
      scripts: {
        "/root/b": [gate("in"), say("for a")],
        "/root/a": [followUp("/root/b", "for me"), gate("never"), say("no")],
        "*": [say("ok")],
      },
    });
    const b = await h.tree.root.spawn("b", "stand by");
    await h.provider.gates.arrived("in");
    const a = await h.tree.root.spawn("a", "ask b");
    await h.provider.gates.arrived("never");
    await a.agent.close();
    await h.tree.root.tell("fills it");
    h.provider.gates.open("in");
    await b.work.outcome();
    await h.tree.idle();
    const mail = await look(h).mail("/root");
    expect(mail.map(({ kind, redirectedFrom, trigger }) => [kind, redirectedFrom, trigger])).toEqual([
      ["user", null, false],
      ["final_answer", "/root/a", false],
    ]);
    await expect(h.tree.root.tell("more")).rejects.toMatchObject({
      code: "MAILBOX_FULL",
      details: { use: { unread: 2 } },
    });
  });

  test("MBX-8 the runtime's notices go in over the limit, at most one per cause", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailboxMessages: 1 } },
      scripts: { "*": [list(), say("ok"), say("ok")] },
    });
    await h.tree.root.tell("fills it");
    const poor = await h.tree.root.spawn("poor", "go", { budgets: { tokens: 10 } });
    await expect(poor.work.outcome()).resolves.toMatchObject({ ending: "budget_exhausted" });
    await expect(poor.agent.send("more")).rejects.toMatchObject({ code: "BUDGET_EXHAUSTED" });
    const notices = (await look(h).mail("/root")).filter(({ kind }) => kind === "notice");
    expect(notices.map(({ content }) => content.text)).toEqual([
      expect.stringContaining("tokens budget of /root/poor"),
    ]);
  });

  test("MBX-8 MBX-9 `codex`: a result is whole, over any limit, and bears no figures", async () => {
    const text = "r".repeat(300 * KIB);
    await using h = await harness({
      store,
      tree: { profile: "codex", limits: { mailboxMessages: 1, mailboxBytes: KIB } },
      scripts: { "/root/w": [say(text)] },
    });
    await h.tree.root.tell("fills it");
    await h.tree.root.spawn("w", "go");
    await h.tree.idle();
    const [, result] = await look(h).mail("/root");
    expect(result).toMatchObject({ kind: "final_answer", trigger: false, content: { text, artifact: null } });
  });

  test("MBX-9 a payload over 64 KiB is an artifact; the mail has head, tail, size, digest and reference, which can be read", async () => {
    const text = `HEAD${"m".repeat(70 * KIB)}TAIL`;
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("w", text),
          say("started"),
          (context) => {
            const [, id] = /Artifact: (art_\w+)/.exec(context.inputs.join("\n")) ?? [];
            return call("read_artifact", { id: id ?? "none", offset: 71_000, max_bytes: 4000 });
          },
          say("read"),
        ],
        "/root/w": [say(text)],
      },
    });
    await h.tree.root.tell("y".repeat(64 * KIB));
    await h.ask("go");
    const [request] = await look(h).mail("/root/w");
    expect((await look(h).mail("/root"))[0]!.content).toMatchObject({ bytes: 64 * KIB, artifact: null });
    const result = (await look(h).mail("/root")).find(({ kind }) => kind === "final_answer");
    for (const mail of [request!, result!]) {
      const { content } = mail;
      expect(content.artifact).toEqual({
        id: expect.stringMatching(/^art_/) as string,
        bytes: text.length,
        digest: sha256(text),
      });
      expect(content.text).toBe(
        `${text.slice(0, 4 * KIB)}\n[${text.length - 6 * KIB} bytes left out]\n${text.slice(-2 * KIB)}`,
      );
      const stored = await look(h).view((view) => view.artifact(content.artifact!.id));
      expect(stored?.text).toBe(text);
    }
    const shown = look(h).inputs("/root/w", 0).at(-1)!;
    expect(shown).toContain(
      `Artifact: ${request!.content.artifact!.id}, ${text.length} bytes, sha256 ${sha256(text)}`,
    );
    const [part] = await look(h).outputs("/root", "read_artifact");
    expect(part!.output).toMatchObject({
      bytes: text.length,
      offset: 71_000,
      text: text.slice(71_000),
      next_offset: null,
    });
  });

  test("MBX-9 no output of a list or a wait is unbounded", async () => {
    const long = "w".repeat(40 * KIB);
    const value = { text: long };
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(
            spawn("w", "go"),
            spawn("v", "go", { output_schema: { type: "object", properties: { text: { type: "string" } } } }),
          ),
          wait({ targets: ["w", "v"], timeout_ms: 60_000 }),
          (context) => {
            const { results } = context.resultOf("wait_agent") as {
              results: { agent: string; artifact: string }[];
            };
            const id = results.find(({ agent }) => agent === "/root/w")!.artifact;
            return together(
              call("read_artifact", { id, offset: 39 * KIB }),
              call("read_artifact", { id, offset: 40 * KIB + 1 }),
            );
          },
          list(),
          say("done"),
        ],
        "/root/w": [say(long)],
        "/root/v": [say(JSON.stringify(value))],
      },
    });
    await h.ask("go");
    const [waited] = await look(h).outputs("/root", "wait_agent");
    const results = waited!.output["results"] as JsonObject[];
    expect(results.length).toBe(2);
    for (const one of results) {
      expect(byteLength(JSON.stringify(one))).toBeLessThanOrEqual(9 * KIB);
      expect(textAt(one, "text")).toHaveLength(8 * KIB);
      expect(one["value"]).toBeUndefined();
    }
    // What was left out is not lost.
    const [part, beyond] = await look(h).outputs("/root", "read_artifact");
    expect(part!.output).toMatchObject({ bytes: 40 * KIB, text: "w".repeat(KIB), next_offset: null });
    expect(beyond!.output).toMatchObject({ code: "INVALID_ARGUMENT", details: { argument: "offset" } });
    const [listed] = await look(h).outputs("/root", "list_agents");
    expect(byteLength(JSON.stringify(listed!.output))).toBeLessThanOrEqual(6 * KIB);
    expect((await look(h).work("/root/v")).outcome!.value).toEqual(value);
  });

  test("MBX-10 a stored message that cannot be read is dead-lettered with the reason, and the agent goes on", async () => {
    await using h = await harness({ store, scripts: { "*": [say("ok"), say("read")] } });
    const { agent, work } = await h.tree.root.spawn("w", "go");
    await work.outcome();
    await agent.tell("first");
    const broken = await agent.tell("broken");
    await agent.tell("third");
    h.damageMail(broken.id);
    await (await agent.send("read")).outcome();
    expect(await h.tree.receipt(broken.id)).toMatchObject({ state: "dead_lettered", reason: "unreadable" });
    const texts = look(h).inputs("/root/w", -1);
    expect(texts.filter((text) => !text.startsWith("[runtime"))).toEqual(["first", "third", "read"]);
    expect((await look(h).events("mail.dead_lettered")).map(({ data }) => data)).toEqual([
      { mailId: broken.id, reason: "unreadable" },
    ]);
    expect(await agent.summary()).toMatchObject({ unread: 0, status: { kind: "idle" } });
  });

  test("MBX-10 WRK-4 an unreadable request ends its work; an unreadable result leaves a notice that wakes", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [spawn("a", "go"), gate("answering"), say("started"), say("woken"), say("woken again")],
        "/root/a": [gate("a"), say("the result")],
        "/root/q": [say("again")],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("answering");
    const queued = await h.tree.root.spawn("q", "unreadable");
    const [request] = await look(h).mail("/root/q");
    h.damageMail(request!.id);
    h.provider.gates.open("a");
    await expect(queued.work.outcome()).resolves.toMatchObject({
      ending: "failed",
      error: { code: "STORE_CORRUPT" },
    });
    expect(await queued.agent.status()).toMatchObject({ kind: "idle" });
    const result = (await look(h).mail("/root")).find(({ kind }) => kind === "final_answer")!;
    expect(result.state).toBe("accepted");
    h.damageMail(result.id);
    h.provider.gates.open("answering");
    await expect(asked.outcome()).resolves.toMatchObject({ ending: "completed", text: "woken" });
    expect(look(h).inputs("/root", -1).join()).toMatch(
      /Message Type: NOTICE[^]*could not be delivered; it ended completed/,
    );
    expect(await h.tree.receipt(result.id)).toMatchObject({ state: "dead_lettered", reason: "unreadable" });
    await expect((await queued.agent.send("again")).outcome()).resolves.toMatchObject({ text: "again" });
  });
});
