/** Step-level rules bind the built-in providers in full (RUN-5). `scripted` carries all other tests; here is `model`. */
import { describe, expect, test } from "vitest";
import { createModelProvider } from "../../src/providers/model/model-provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";
import { vendors } from "../support/model-provider.ts";
import { call, text } from "../support/model-wire/reply.ts";
import { startVendorServer } from "../support/vendor-server/vendor-server.ts";

describe.each(STORES)("built-in providers on %s", (store) => {
  test("RUN-5 both declare that the loop is ours and exact, and that waits are parked", () => {
    const declared = { loop: "ours", capabilities: { exact: true, parksWaits: true } };
    expect(scripted({})).toMatchObject(declared);
    expect(createModelProvider({ models: () => vendors[0]!.model("http://127.0.0.1:9") })).toMatchObject(
      declared,
    );
  });

  test.each(vendors)(
    "RUN-5 `model` steers at step boundaries, stores each step first and wraps up ($vendor)",
    async ({ model }) => {
      await using server = await startVendorServer();
      await using h = await harness({
        store,
        tree: { limits: { stepsPerRun: 1 } },
        runtime: { providers: { model: createModelProvider({ models: { one: model(server.baseUrl) } }) } },
      });
      const look = new Look(h);
      const first = Promise.withResolvers<void>();
      const second = Promise.withResolvers<void>();
      server.reply({ parts: [call("call_1", "list_agents", "{}")], after: first.promise });
      server.reply({ parts: [text("what I have")], after: second.promise });
      const work = await h.tree.root.send("go");
      const asked = await server.next();
      expect(JSON.stringify(asked.body)).toContain("spawn_agent");
      await h.tree.root.send("and this");
      first.resolve();
      const wrapUp = await server.next();
      const body = JSON.stringify(wrapUp.body);
      expect(body).toContain("and this");
      expect(body).toContain("[runtime: wrap_up]");
      expect(body).not.toContain('"spawn_agent"');
      const items = await look.items("/root");
      expect(items.map((item) => item.kind).slice(-2)).toEqual(["assistant", "tool_result"]);
      expect((await look.runs("/root"))[0]).toMatchObject({ steps: 1 });
      second.resolve();
      expect(await work.outcome()).toMatchObject({ ending: "turn_limit", text: "what I have" });
    },
  );
});
