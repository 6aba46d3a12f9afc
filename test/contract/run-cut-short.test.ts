/** A response that did not come to its end is no answer: cut off at the limit of output, filtered, or without a finish. */
import { describe, expect, test } from "vitest";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import {
  call,
  end,
  finish,
  list,
  repeat,
  say,
  think,
  together,
} from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const cut = (text: string) => together(say(text), finish("length"));

/** Leaves out the finish of its first responses. */
function withoutFinish(inner: OwnLoopAdapter, responses: number): OwnLoopAdapter {
  let left = responses;
  return {
    ...inner,
    openSession: async (input) => {
      const session = await inner.openSession(input);
      return {
        close: () => session.close(),
        async *step(request, signal) {
          const whole = left <= 0;
          left -= 1;
          for await (const event of session.step(request, signal))
            if (whole || event.type !== "finish") yield event;
        },
      };
    },
  };
}

describe.each(STORES)("responses cut short on %s", (store) => {
  test("WRK-3 one that reached the limit of output is gone on with once, and what comes then is the answer", async () => {
    await using h = await harness({ store, scripts: { "/root": [cut("forty-"), say("forty-two")] } });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "forty-two" });
    expect(look.inputs("/root", 1)).toEqual([expect.stringMatching(/^\[runtime: cut_short\]\n/)]);
    const items = (await look.items("/root")).map((item) => ("phase" in item ? item.phase : item.kind));
    expect(items.slice(items.indexOf("user"))).toEqual(["user", "intermediate", "context", "answer"]);
    expect(await look.runs("/root")).toMatchObject([{ status: "completed", steps: 2 }]);
  });

  test("WRK-3 two in a row end the work `failed`, with what was said last", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [cut("I will now write the report."), cut("The rep"), say("never asked")] },
    });
    const look = new Look(h);
    const failed = { error: { code: "RESPONSE_TOO_LONG" }, text: "The rep" };
    expect(await h.ask("go")).toMatchObject({ ending: "failed", ...failed });
    expect(h.provider.requests("/root")).toHaveLength(2);
    expect(await look.runs("/root")).toMatchObject([{ status: "failed", reason: "failed", ...failed }]);
  });

  test("WRK-3 calls that came whole are made, and a run that goes on with them is told again", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [cut("a"), together(list(), finish("length")), cut("b"), say("done")],
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "done" });
    expect(await look.outputs("/root", "list_agents")).toMatchObject([{ isError: false }]);
  });

  test("WRK-3 reasoning that led to no text is not sent back", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(think("hm"), finish("length"), end()), say("done")] },
    });
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "done" });
    expect(h.provider.requests("/root")[1]!.messages.filter(({ role }) => role === "assistant")).toEqual([]);
  });

  test("RUN-3 going on counts as a step: at the limit of steps the run wraps up", async () => {
    await using h = await harness({
      store,
      tree: { limits: { stepsPerRun: 1 } },
      scripts: { "/root": [cut("one"), cut("two"), say("never asked")] },
    });
    expect(await h.ask("go")).toMatchObject({ ending: "turn_limit", text: "two" });
    expect(h.provider.requests("/root")).toHaveLength(2);
  });

  test("WRK-3 one that a filter cut off ends the work `failed`; its text is kept and its calls are not made", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(say("I can"), call("list_agents"), finish("content_filter")), say("and again")],
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({
      ending: "failed",
      error: { code: "RESPONSE_FILTERED" },
      text: "I can",
    });
    expect(await look.events("tool.called")).toEqual([]);
    expect(await h.ask("again")).toMatchObject({ ending: "completed", text: "and again" });
  });

  test("RUN-4 one without a finish is a cut connection: made again where nothing was shown", async () => {
    const played = scripted({ "*": [end()] });
    const silent = withoutFinish(played, 1);
    await using h = await harness({ store, runtime: { providers: { scripted: silent } } });
    const work = await h.tree.root.send("go");
    const ended = work.outcome();
    await h.clock.advance(60_000);
    expect(await ended).toMatchObject({ ending: "empty_result" });
    expect(played.requests("/root").map((request) => request.attempt)).toEqual([1, 2]);
  });

  test("RUN-4 one without a finish that has shown something fails the run and keeps its text", async () => {
    const halved = withoutFinish(scripted({ "*": [repeat(together(say("half"), list()))] }), 9);
    await using h = await harness({ store, runtime: { providers: { scripted: halved } } });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({
      ending: "provider_error",
      error: { code: "PROVIDER_UNREACHABLE" },
      text: "half",
    });
    expect(await look.events("tool.called")).toEqual([]);
  });
});
