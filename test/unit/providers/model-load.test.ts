/** Models by the names that the command line takes. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { loadModel } from "../../../src/providers/model/load-model.ts";
import { deltasOf, openSession, run } from "../../support/model-provider.ts";
import { text } from "../../support/model-wire/reply.ts";
import { startVendorServer } from "../../support/vendor-server/vendor-server.ts";

const here = [import.meta.dirname];
const elsewhere = mkdtempSync(join(tmpdir(), "coppice-load-"));
afterAll(() => rmSync(elsewhere, { recursive: true }));

describe("a model by name", () => {
  test.for([
    ["openai/gpt-5", "OPENAI", "/v1/responses", "authorization"],
    ["anthropic/claude-sonnet-4-5", "ANTHROPIC", "/v1/messages", "x-api-key"],
    ["openai-compatible/org/model:7b", "OPENAI_COMPATIBLE", "/v1/chat/completions", "authorization"],
  ] as const)(
    "%s speaks with its vendor at the address of the environment",
    async ([spec, prefix, path, header]) => {
      await using server = await startVendorServer();
      server.reply({ parts: [text("Here.")] });
      const environment = { [`${prefix}_API_KEY`]: "the-key", [`${prefix}_BASE_URL`]: server.baseUrl };
      const events = await run(await openSession(loadModel(spec, environment, here) as LanguageModelV4));
      expect(deltasOf(events, "text")).toEqual(["Here."]);
      expect(events.map(({ type }) => type)).toContain("usage");
      const [request] = server.requests;
      expect(request).toMatchObject({ path, body: { model: spec.slice(spec.indexOf("/") + 1) } });
      expect(request?.headers[header]).toContain("the-key");
    },
  );

  test.for([
    ["openai/gpt-5", {}, "OPENAI_API_KEY"],
    ["anthropic/claude", { ANTHROPIC_API_KEY: "" }, "ANTHROPIC_API_KEY"],
    ["openai-compatible/llama", {}, "OPENAI_COMPATIBLE_BASE_URL"],
  ] as const)("%s names the variable that is not set", ([spec, environment, variable]) => {
    expect(() => loadModel(spec, environment, here)).toThrow(
      expect.objectContaining({ code: "PROVIDER_NOT_CONFIGURED", details: { spec, variable } }),
    );
  });

  test.for(["gpt-5", "openai/", "/gpt-5", "toString/x", "other/model"])(
    "%s is refused with the form",
    (spec) => {
      expect(() => loadModel(spec, {}, here)).toThrow(
        expect.objectContaining({
          code: "PROVIDER_NOT_CONFIGURED",
          message: expect.stringContaining("openai/<model>"),
        }),
      );
    },
  );

  test("is looked for in each folder, and what to install is said when none has the package", () => {
    const environment = { OPENAI_API_KEY: "the-key" };
    const model = loadModel("openai/gpt-5", environment, [elsewhere, ...here]);
    expect(model).toMatchObject({ specificationVersion: "v4", modelId: "gpt-5" });
    expect(() => loadModel("openai/gpt-5", environment, [elsewhere])).toThrow(
      expect.objectContaining({
        code: "PROVIDER_NOT_CONFIGURED",
        message: expect.stringContaining("npm install @ai-sdk/openai@4"),
      }),
    );
    expect(loadModel("openai/gpt-5", environment)).toMatchObject({ modelId: "gpt-5" });
  });
});
