/** What models do with threads: lines that are kept, and the tools that reach other trees (XTR, lineage C3.9, C5, C7). */
import { z } from "zod";
import { describe, expect, test } from "vitest";
import { call, end, fail, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const write = defineTool({
  name: "write_file",
  input: z.strictObject({ path: z.string(), content: z.string() }),
  effects: ["write"],
  run: () => "written",
});

const pin = (section: string, text: string) => call("pin_context", { section, text });

describe.each(STORES)("pins on %s", (store) => {
  test("S1-36 C3.9 a line that a run pins stands in the thread's context word for word", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [pin("decisions", "Use UTC everywhere."), say("done")] },
    });
    await h.ask("go");
    const context = await h.runtime.threads.context(h.tree.id);
    expect(context?.decisions.map(({ text }) => text)).toEqual(["Use UTC everywhere."]);
  });

  test("C3.9 a section that is none, and a blank line, are refused to the model", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(pin("secrets", "x"), pin("openItems", " ")), say("done")] },
    });
    await h.ask("go");
    const outputs = await new Look(h).outputs("/root", "pin_context");
    expect(outputs.map(({ isError, output }) => [isError, output["code"]])).toEqual([
      [true, "INVALID_ARGUMENT"],
      [true, "INVALID_ARGUMENT"],
    ]);
  });

  test("WRK-7 X-6 a result without text carries what was pinned and the files that were changed", async () => {
    await using h = await harness({
      store,
      runtime: { tools: [write], secrets: ["hunter2"] },
      scripts: {
        "/root": [spawn("w", "go", { wake: "never", detached: true }), say("started"), say("read")],
        "/root/w": [
          together(
            pin("decisions", "The password is hunter2."),
            call("write_file", { path: "src/a.ts", content: "a" }),
          ),
          fail({ code: "PROVIDER_REFUSED", message: "no", status: 400 }),
          end(),
        ],
      },
    });
    await h.ask("go");
    await h.tree.idle();
    const { outcome } = await new Look(h).work("/root/w");
    expect(outcome).toMatchObject({
      ending: "provider_error",
      text: "",
      salvage: { files: ["src/a.ts"], pins: [expect.stringMatching(/^decisions: The password is /)] },
    });
    const [result] = (await new Look(h).mail("/root")).filter(({ kind }) => kind === "final_answer");
    expect(result!.content.text).toMatch(
      /Pinned:\n- decisions: The password is [^]*Files changed:\n- src\/a\.ts/,
    );
    expect(result!.content.text).not.toContain("hunter2");
  });
});
