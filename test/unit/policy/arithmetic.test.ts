/** Effects, budgets, prices, rates and mode hints: the arithmetic of policy. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { clip, narrow, toolsWithin, within } from "../../../src/policy/effects.ts";
import { chooseModeHint, hintToSend } from "../../../src/policy/mode-hint.ts";
import {
  admit,
  type BudgetScope,
  budgetExhausted,
  costOf,
  estimateRequest,
  priceOf,
} from "../../../src/policy/budget.ts";
import { admitRate } from "../../../src/policy/rates.ts";
import { EFFECTS, effectsOf } from "../../../src/protocol/agent.ts";
import { importsOf } from "../../architecture/scanner.ts";

describe("effects", () => {
  test("POL-1 narrow by intersection, in one order", () => {
    expect(narrow(["network", "read", "write"], ["write", "network"])).toEqual(["write", "network"]);
    expect(narrow()).toEqual(EFFECTS);
    expect(within(["read"], ["read", "write"])).toBe(true);
    expect(within(["read", "execute"], ["read", "write"])).toBe(false);
    expect(clip(["execute", "read"], ["read"])).toEqual({ granted: ["read"], denied: ["execute"] });
  });

  test("POL-1 a tool that declares none has all", () => {
    expect(effectsOf({})).toEqual(EFFECTS);
    expect(effectsOf({ effects: [] })).toEqual(EFFECTS);
    expect(toolsWithin([{ name: "a" }, { name: "b", effects: ["read"] }], ["read"])).toEqual(["b"]);
  });
});

describe("the folder", () => {
  test("POL-3 imports nothing of threads, lineage or mail", () => {
    const folder = fileURLToPath(new URL("../../../src/policy/", import.meta.url));
    const files = readdirSync(folder).filter((name) => name.endsWith(".ts"));
    const specifiers = files.flatMap((name) =>
      importsOf({ path: `src/policy/${name}`, text: readFileSync(folder + name, "utf8") }).map(
        (one) => one.specifier,
      ),
    );
    const forbidden =
      /lineage|thread|mail|transfer|transcript|handoff|session|control|store|agent-path|protocol\/(?:ids|run|work)\.ts/;
    expect(files.length).toBeGreaterThan(5);
    expect(specifiers.filter((specifier) => forbidden.test(specifier))).toEqual([]);
  });
});

describe("mode hints", () => {
  const choose = (configured: string | null, ofModel: string | null | undefined, effort: string | null) =>
    chooseModeHint({ configured, ofModel, effort });

  test("POL-4 a configured text comes first, then the model's, then the effort", () => {
    expect(choose("mine", "its", "ultra")).toEqual({ mode: "configured", text: "mine" });
    expect(choose(null, "its", "ultra")).toEqual({ mode: "configured", text: "its" });
    expect(choose(null, undefined, "ultra").mode).toBe("proactive");
    for (const effort of ["max", "high", "Ultra", null]) {
      expect(choose(null, null, effort).mode).toBe("explicit_request_only");
    }
  });

  test("POL-4 an empty text is a choice and sends nothing", () => {
    expect(hintToSend(choose("", "its", "ultra"), null)).toBeNull();
    expect(hintToSend(choose(null, "", "ultra"), null)).toBeNull();
  });

  test("POL-4 it is sent only when it changes", () => {
    const calm = choose(null, null, "high");
    const eager = choose(null, null, "ultra");
    expect(hintToSend(calm, null)).toBe(calm.text);
    expect(hintToSend(calm, calm.text)).toBeNull();
    expect(hintToSend(eager, calm.text)).toBe(eager.text);
    expect(eager.text).not.toBe(calm.text);
  });
});

describe("budgets", () => {
  const scope = (changes: Partial<BudgetScope>): BudgetScope => ({
    path: "/root",
    budget: "tokens",
    limit: 100,
    spent: 0,
    reserved: 0,
    ...changes,
  });
  const request = { tokens: 10, money: null };

  test.for([
    ["start", { spent: 60, reserved: 30 }],
    ["wait", { spent: 60, reserved: 31 }],
    ["wait", { spent: 90, reserved: 1 }],
    ["exhausted", { spent: 91, reserved: 0 }],
    ["exhausted", { limit: 0 }],
    ["start", { limit: null, spent: 1e9 }],
    ["start", { budget: "money", limit: 0 }],
    ["start", { budget: "wallClock", spent: 99 }],
    ["exhausted", { budget: "wallClock", spent: 100 }],
  ] as const)("a request is told to %s at %o", ([kind, changes]) => {
    expect(admit([scope(changes)], request).kind).toBe(kind);
  });

  test("a spent scope decides before one that has to wait", () => {
    const waiting = scope({ spent: 50, reserved: 50 });
    const spent = scope({ path: "/root/a", spent: 100 });
    expect(admit([waiting, spent], request)).toEqual({ kind: "exhausted", scope: spent });
    expect(admit([waiting, scope({})], request)).toEqual({ kind: "wait", scope: waiting });
  });

  test("its refusal names limit, value, use and what frees it", () => {
    expect(budgetExhausted(scope({ spent: 100 })).details).toEqual({
      limit: "tokens",
      path: "/root",
      value: 100,
      use: 100,
      frees: "a higher budget",
    });
  });

  test("BUD-7 cost is per million, cached input apart, and unknown without a price", () => {
    const prices = { "a/b": { input: 2, cachedInput: 0.5, output: 8 } };
    const price = priceOf(prices, "a", "b");
    const usage = { inputTokens: 1_000_000, cachedInputTokens: 400_000, outputTokens: 500_000 };
    expect(costOf(usage, price)).toBeCloseTo(1.2 + 0.2 + 4, 10);
    expect(costOf(usage, priceOf(prices, "a", "c"))).toBeNull();
    expect(priceOf(prices, "a", null)).toBeNull();
    expect(priceOf({}, "constructor", "name")).toBeNull();
    expect(estimateRequest(1000, 500, price)).toEqual({ tokens: 1500, money: 0.006 });
    expect(estimateRequest(1000, 500, null)).toEqual({ tokens: 1500, money: null });
  });
});

describe("rates", () => {
  test("count the last minute and say when there is room", () => {
    expect(admitRate([0, 30_000], 40_000, 3)).toEqual({ kind: "admitted", times: [0, 30_000, 40_000] });
    expect(admitRate([0, 30_000], 40_000, 2)).toEqual({
      kind: "refused",
      limit: 2,
      use: 2,
      retryAfterMs: 20_000,
    });
    expect(admitRate([0, 30_000], 60_000, 2)).toEqual({ kind: "admitted", times: [30_000, 60_000] });
    expect(admitRate([0, 30_000], 40_000, 1)).toMatchObject({ retryAfterMs: 50_000 });
  });

  test("have an explicit zero and an explicit infinity", () => {
    expect(admitRate([], 5, 0)).toEqual({ kind: "refused", limit: 0, use: 0, retryAfterMs: null });
    expect(admitRate([1, 2], 5, null)).toEqual({ kind: "admitted", times: [] });
  });

  test("do not hang on a clock that was set back", () => {
    expect(admitRate([90_000_000], 1000, 1)).toMatchObject({ kind: "refused", retryAfterMs: 60_000 });
  });
});
