/** What the user has written and no provider has accepted: it is the thread's draft, whoever has refused it, and nothing of it is lost (C1.15, C4.9). */
import { describe, expect, onTestFinished, test } from "vitest";
import { refuse } from "../../src/providers/scripted/native/faults.ts";
import { noFork } from "../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { fail, gate, repeat, say, together, usage } from "../../src/providers/scripted/script.ts";
import { RejectedError } from "../../src/protocol/errors.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";

const ANSWERS = { "*": [repeat(say("an answer"))] };
const REFUSED = fail({ code: "PROVIDER_REFUSED" });
const REFUSES = { "*": [repeat(REFUSED)] };

describe.each(STORES)("a message that no provider has accepted on %s", (store) => {
  const open = async (more: HarnessOptions = {}): Promise<Harness> => {
    const h = await harness({ store, scripts: ANSWERS, ...more });
    onTestFinished(() => h[Symbol.asyncDispose]());
    return h;
  };
  const draft = (h: Harness) => h.runtime.threads.draft(h.tree.id);
  const send = async (h: Harness, message: string, provider?: string) => {
    const { id } = await h.runtime.threads.continue(
      h.tree.id,
      message,
      provider === undefined ? {} : { provider },
    );
    const outcome = await h.tree.work(id).outcome();
    const request = await h.store.read((view) => view.work(id)!.requestMailId);
    return { ...outcome, request };
  };

  const PLACES = ["before it was sent", "as its session is opened", "by our loop's answer", "by its own's"];
  test.for(PLACES)("C4.9 C4.13 S2-26 is a draft, the same where it is refused %s", async (where) => {
    const native = noFork(ANSWERS);
    const small = where === "before it was sent" ? { lineage: { handoffBytes: 1 } } : {};
    const h = await open({ others: { native, no: scripted(REFUSES) }, runtime: small });
    await h.ask("one");
    const no = refuse(new RejectedError("PROVIDER_REFUSED", "not today", {}));
    if (where === "as its session is opened") native.fault("openSession", no);
    if (where === "by its own's") native.fault("startTurn", no);
    const { ending, request } = await send(h, "two", where === "by our loop's answer" ? "no" : "native");
    expect(ending).toBe(where === "as its session is opened" ? "failed" : "provider_error");
    expect(await draft(h)).toEqual({
      threadId: h.tree.id,
      text: "two",
      sourceMessageId: request,
      createdAt: h.clock.now(),
      clearedAt: null,
    });
    expect((await send(h, "two, better", "scripted")).ending).toBe("completed");
    expect(await draft(h)).toBeNull();
  });

  test("C4.9 BUD-2 is a draft where its tree has spent what it may", async () => {
    const h = await open({ tree: { budgets: { tokens: 1 } } });
    expect((await send(h, "one")).ending).toBe("budget_exhausted");
    expect((await draft(h))!.text).toBe("one");
  });

  test("C4.9 BUD-2 is a draft where what is under way spends that, and it still waits for its turn", async () => {
    const h = await open({
      tree: { budgets: { tokens: 10_000 } },
      scripts: {
        "/root": [
          together(gate("spends"), usage({ outputTokens: 20_000 }), say("an answer")),
          repeat(say("more")),
        ],
      },
    });
    const first = await h.tree.root.send("one");
    await h.provider.gates.arrived("spends");
    const second = await h.tree.root.send("two", { onBusy: "queue" });
    const third = await h.tree.root.send("three", { onBusy: "queue" });
    h.provider.gates.open("spends");
    await first.outcome();
    expect((await second.outcome()).ending).toBe("budget_exhausted");
    expect((await third.outcome()).ending).toBe("budget_exhausted");
    expect((await draft(h))!.text).toBe("two\n\nthree");
  });

  test("C4.9 C1.15 takes the place of the draft that its user went on from", async () => {
    const h = await open({ scripts: REFUSES });
    for (const message of ["one", "one, better"]) {
      expect((await send(h, message)).ending).toBe("provider_error");
      expect((await draft(h))!.text).toBe(message);
      await h.clock.advance(1000);
    }
  });

  test("C4.9 C1.15 is joined to a draft that has come since it was sent", async () => {
    const late = together(gate("late", { beforeAcceptance: true }), REFUSED);
    const h = await open({ scripts: { "/root": [late, repeat(REFUSED)] } });
    const first = await h.tree.root.send("one");
    const second = await h.tree.root.send("two", { onBusy: "queue" });
    await h.clock.advance(1000);
    h.provider.gates.open("late");
    expect((await first.outcome()).ending).toBe("provider_error");
    expect((await second.outcome()).ending).toBe("provider_error");
    expect((await draft(h))!.text).toBe("one\n\ntwo");
  });

  test("C4.9 MBX-9 is whole, however long it was", async () => {
    const h = await open({ scripts: REFUSES });
    const long = "a long word ".repeat(20_000);
    expect((await send(h, long)).ending).toBe("provider_error");
    expect((await draft(h))!.text).toBe(long);
  });

  test("C4.13 C2.9 one that was accepted is in the transcript, and no draft, however its run ends", async () => {
    const broken = together(say("so far"), fail({ code: "PROVIDER_REFUSED", accepted: true }));
    const h = await open({ scripts: { "/root": [REFUSED, broken] } });
    await send(h, "one");
    expect((await draft(h))!.text).toBe("one");
    expect((await send(h, "two")).ending).toBe("provider_error");
    expect(await draft(h)).toBeNull();
    expect((await h.tree.root.transcript()).filter(({ kind }) => kind === "user")).toMatchObject([
      { text: "two" },
    ]);
  });
});
